//! Every method by name: its arguments as JSON, and a method made from JSON.

use serde_json::{Map, Value as J};
use tanda_wire::amqp::encode::write_method;
use tanda_wire::amqp::{Arguments, Method, MethodId};
use tanda_wire::amqp::{access, basic, channel, confirm, connection, exchange, queue, tx};

use crate::json::Json;

macro_rules! registry {
    ($( $class:ident $Class:ident { $( $Name:ident { $( $field:ident ),* } )* } )*) => {
        /// The arguments of a method.
        pub(crate) fn arguments_json(method: &Method<'_>) -> J {
            let mut object = Map::new();
            match method {
                $($( Method::$Class($class::Method::$Name($class::$Name { $( $field ),* })) => {
                    $( object.insert(stringify!($field).into(), $field.to_json()); )*
                } )*)*
            }
            J::Object(object)
        }

        /// The method of these numbers with these arguments, and the frame that
        /// `write_method` makes of its struct.
        pub(crate) fn method_from_json(
            id: MethodId,
            channel: u16,
            arguments: &J,
        ) -> Option<(Method<'_>, bool, Vec<u8>)> {
            $($(
                let make = || $class::$Name {
                    $( $field: Json::from_json(&arguments[stringify!($field)]) ),*
                };
                if let Some(made) = make_if(id, channel, make) {
                    return Some(made);
                }
            )*)*
            None
        }
    };
}

/// What `make` makes, when these are its numbers.
fn make_if<'v, M: Arguments<'v> + Into<Method<'v>>>(
    id: MethodId,
    channel: u16,
    make: impl FnOnce() -> M,
) -> Option<(Method<'v>, bool, Vec<u8>)> {
    if id != M::ID {
        return None;
    }
    let method = make();
    let mut frame = Vec::new();
    write_method(&mut frame, channel, &method);
    Some((method.into(), M::HAS_CONTENT, frame))
}

registry! {
    connection Connection {
        Start { version_major, version_minor, server_properties, mechanisms, locales }
        StartOk { client_properties, mechanism, response, locale }
        Secure { challenge }
        SecureOk { response }
        Tune { channel_max, frame_max, heartbeat }
        TuneOk { channel_max, frame_max, heartbeat }
        Open { virtual_host }
        OpenOk {}
        Close { reply_code, reply_text, class_id, method_id }
        CloseOk {}
        Blocked { reason }
        Unblocked {}
        UpdateSecret { new_secret, reason }
        UpdateSecretOk {}
    }
    channel Channel {
        Open {}
        OpenOk {}
        Flow { active }
        FlowOk { active }
        Close { reply_code, reply_text, class_id, method_id }
        CloseOk {}
    }
    access Access {
        Request { realm, exclusive, passive, active, write, read }
        RequestOk { ticket }
    }
    exchange Exchange {
        Declare {
            exchange, exchange_type, passive, durable, auto_delete, internal, no_wait, arguments
        }
        DeclareOk {}
        Delete { exchange, if_unused, no_wait }
        DeleteOk {}
        Bind { destination, source, routing_key, no_wait, arguments }
        BindOk {}
        Unbind { destination, source, routing_key, no_wait, arguments }
        UnbindOk {}
    }
    queue Queue {
        Declare { queue, passive, durable, exclusive, auto_delete, no_wait, arguments }
        DeclareOk { queue, message_count, consumer_count }
        Bind { queue, exchange, routing_key, no_wait, arguments }
        BindOk {}
        Purge { queue, no_wait }
        PurgeOk { message_count }
        Delete { queue, if_unused, if_empty, no_wait }
        DeleteOk { message_count }
        Unbind { queue, exchange, routing_key, arguments }
        UnbindOk {}
    }
    basic Basic {
        Qos { prefetch_size, prefetch_count, global }
        QosOk {}
        Consume { queue, consumer_tag, no_local, no_ack, exclusive, no_wait, arguments }
        ConsumeOk { consumer_tag }
        Cancel { consumer_tag, no_wait }
        CancelOk { consumer_tag }
        Publish { exchange, routing_key, mandatory, immediate }
        Return { reply_code, reply_text, exchange, routing_key }
        Deliver { consumer_tag, delivery_tag, redelivered, exchange, routing_key }
        Get { queue, no_ack }
        GetOk { delivery_tag, redelivered, exchange, routing_key, message_count }
        GetEmpty {}
        Ack { delivery_tag, multiple }
        Reject { delivery_tag, requeue }
        RecoverAsync { requeue }
        Recover { requeue }
        RecoverOk {}
        Nack { delivery_tag, multiple, requeue }
    }
    confirm Confirm {
        Select { no_wait }
        SelectOk {}
    }
    tx Tx {
        Select {}
        SelectOk {}
        Commit {}
        CommitOk {}
        Rollback {}
        RollbackOk {}
    }
}
