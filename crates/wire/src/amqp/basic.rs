//! Class `basic`: messages (§1.8), with RabbitMQ's `nack` and its server-sent `cancel`.

use super::methods::methods;
use super::strings::ShortStr;
use super::table::Table;

methods! {
    /// A method of the class `basic`.
    class Basic<'a> = 60, "basic";

    /// From the client: limits what is unacknowledged.
    Qos = 10, "qos" {
        fields {
            /// Bytes; RabbitMQ refuses other than 0, which is no limit.
            prefetch_size: u32,
            /// Messages; 0 is no limit.
            prefetch_count: u16,
        }
        bits {
            /// RabbitMQ: of the channel as a whole, not of each later consumer.
            global,
        }
    }

    /// From the server: answers `qos`.
    QosOk = 11, "qos-ok" {}

    /// From the client: starts a consumer.
    Consume<'a> = 20, "consume" {
        reserved { u16 }
        fields {
            /// The queue; empty: the last declared on this channel.
            queue: ShortStr<'a>,
            /// The consumer's name on the channel; empty: the server makes one.
            consumer_tag: ShortStr<'a>,
        }
        bits {
            /// Without messages of this connection; RabbitMQ ignores it.
            no_local,
            /// Messages count as acknowledged when they are sent.
            no_ack,
            /// No other consumer may use the queue.
            exclusive,
            /// No answer is wanted.
            no_wait,
        }
        then {
            /// The consumer's arguments.
            arguments: Table<'a>,
        }
    }

    /// From the server: answers `consume`.
    ConsumeOk<'a> = 21, "consume-ok" {
        fields {
            /// The consumer.
            consumer_tag: ShortStr<'a>,
        }
    }

    /// From both: ends a consumer; from the server when its queue is gone.
    Cancel<'a> = 30, "cancel" {
        fields {
            /// The consumer.
            consumer_tag: ShortStr<'a>,
        }
        bits {
            /// No answer is wanted.
            no_wait,
        }
    }

    /// From both: answers `cancel`.
    CancelOk<'a> = 31, "cancel-ok" {
        fields {
            /// The consumer.
            consumer_tag: ShortStr<'a>,
        }
    }

    /// From the client: publishes a message; its content follows.
    Publish<'a> = 40, "publish", content {
        reserved { u16 }
        fields {
            /// The exchange; empty: the default exchange.
            exchange: ShortStr<'a>,
            /// The key it is routed by.
            routing_key: ShortStr<'a>,
        }
        bits {
            /// Comes back when it reaches no queue.
            mandatory,
            /// Comes back when it reaches no consumer; RabbitMQ refuses it.
            immediate,
        }
    }

    /// From the server: a message comes back; its content follows.
    Return<'a> = 50, "return", content {
        fields {
            /// Why, as a [`super::ReplyCode`].
            reply_code: u16,
            /// Why, for people.
            reply_text: ShortStr<'a>,
            /// The exchange it was published to.
            exchange: ShortStr<'a>,
            /// The key it was published with.
            routing_key: ShortStr<'a>,
        }
    }

    /// From the server: a message for a consumer; its content follows.
    Deliver<'a> = 60, "deliver", content {
        fields {
            /// The consumer.
            consumer_tag: ShortStr<'a>,
            /// What the message is settled by.
            delivery_tag: u64,
        }
        bits {
            /// It may have been delivered before.
            redelivered,
        }
        then {
            /// The exchange it was published to.
            exchange: ShortStr<'a>,
            /// The key it was published with.
            routing_key: ShortStr<'a>,
        }
    }

    /// From the client: asks for one message.
    Get<'a> = 70, "get" {
        reserved { u16 }
        fields {
            /// The queue; empty: the last declared on this channel.
            queue: ShortStr<'a>,
        }
        bits {
            /// The message counts as acknowledged when it is sent.
            no_ack,
        }
    }

    /// From the server: answers `get` with a message; its content follows.
    GetOk<'a> = 71, "get-ok", content {
        fields {
            /// What the message is settled by.
            delivery_tag: u64,
        }
        bits {
            /// It may have been delivered before.
            redelivered,
        }
        then {
            /// The exchange it was published to.
            exchange: ShortStr<'a>,
            /// The key it was published with.
            routing_key: ShortStr<'a>,
            /// Messages that are left, ready.
            message_count: u32,
        }
    }

    /// From the server: answers `get` when there is no message.
    GetEmpty = 72, "get-empty" {
        rest { ShortStr<'_> }
    }

    /// From the client: messages are done. From the server: publishes are confirmed.
    Ack = 80, "ack" {
        fields {
            /// The message; 0 with `multiple`: all of them.
            delivery_tag: u64,
        }
        bits {
            /// All up to this one.
            multiple,
        }
    }

    /// From the client: does not want a message.
    Reject = 90, "reject" {
        fields {
            /// The message.
            delivery_tag: u64,
        }
        bits {
            /// It goes back to the queue.
            requeue,
        }
    }

    /// From the client: gives back all it has; not answered.
    RecoverAsync = 100, "recover-async" {
        bits {
            /// They may go to others.
            requeue,
        }
    }

    /// From the client: gives back all it has.
    Recover = 110, "recover" {
        bits {
            /// They may go to others.
            requeue,
        }
    }

    /// From the server: answers `recover`.
    RecoverOk = 111, "recover-ok" {}

    /// From the client: does not want messages. From the server: publishes are not confirmed.
    Nack = 120, "nack" {
        fields {
            /// The message; 0 with `multiple`: all of them.
            delivery_tag: u64,
        }
        bits {
            /// All up to this one.
            multiple,
            /// They go back to the queue.
            requeue,
        }
    }
}
