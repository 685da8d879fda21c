//! What a peer may do is asked of who it is.

use std::sync::{Arc, Mutex};

use tanda_engine::{AdminReply, Request};
use tanda_wire::amqp::{Method, PropertyValues, Table, Value, basic, connection, exchange, queue};

use super::{
    AmqpConfig, Peer, TUNE_OK, client_properties, connection_close, frame, message, short, table,
};
use crate::Session;
use crate::login::{Identity, Permission, TopicAccess};

/// Somebody who may do what is listed, and remembers what was asked.
#[derive(Debug, Default)]
struct Clerk {
    may: Vec<(Permission, &'static str)>,
    keys: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Identity for Clerk {
    fn name(&self) -> &'static str {
        "clerk"
    }

    fn may_open(&self, vhost: &str) -> bool {
        vhost == "/"
    }

    fn may(&self, permission: Permission, vhost: &str, name: &str) -> bool {
        assert_eq!(vhost, "/");
        self.asked
            .lock()
            .unwrap()
            .push(format!("{} {name}", permission.name()));
        self.may.contains(&(permission, name))
    }

    fn restricts_keys(&self, _vhost: &str, exchange: &str) -> bool {
        exchange == "topics"
    }

    fn may_use_key(&self, access: TopicAccess<'_>) -> bool {
        self.keys.contains(&access.key)
    }
}

fn peer_of(clerk: Clerk) -> Peer {
    let mut peer = Peer::open_as(AmqpConfig::default(), &client_properties(), Arc::new(clerk));
    peer.open_channel(1);
    peer
}

/// A method is refused without this permission, and asked for with all.
fn needs<'a>(method: impl Into<Method<'a>>, needed: &[(Permission, &'static str)], kind: &str) {
    let method = method.into();
    for missing in 0..needed.len() {
        let mut may = needed.to_vec();
        let (permission, name) = may.remove(missing);
        let mut peer = peer_of(Clerk {
            may,
            ..Clerk::default()
        });
        peer.say(1, method);
        let lines = peer.lines();
        let kind = if name.starts_with('x') {
            "exchange"
        } else {
            kind
        };
        let text = format!(
            "ACCESS_REFUSED - {} access to {kind} '{name}' in vhost '/' refused for user 'clerk'",
            permission.name()
        );
        assert!(
            lines[0].contains(
                &format!("reply_code: 403, reply_text: {text:?}")
                    .replace("\\'", "'")
                    .replace('\'', "\\'")
            ),
            "{lines:?} {text}"
        );
        assert!(peer.requests().is_empty());
    }
    let mut peer = peer_of(Clerk {
        may: needed.to_vec(),
        ..Clerk::default()
    });
    peer.say(1, method);
    assert_eq!(peer.lines(), Vec::<String>::new());
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn every_method_of_exchanges_has_its_permissions() {
    use Permission::{Configure, Read, Write};
    let alternate = table(&[("alternate-exchange", Value::text("xa"))]);
    let declare = exchange::Declare {
        exchange: short("x"),
        ..exchange::Declare::default()
    };
    needs(declare, &[(Configure, "x")], "exchange");
    let with = exchange::Declare {
        arguments: Table::new(&alternate).unwrap(),
        ..declare
    };
    needs(
        with,
        &[(Configure, "x"), (Read, "x"), (Write, "xa")],
        "exchange",
    );
    needs(
        exchange::Declare {
            passive: true,
            ..declare
        },
        &[],
        "exchange",
    );
    let delete = exchange::Delete {
        exchange: short("x"),
        ..exchange::Delete::default()
    };
    needs(delete, &[(Configure, "x")], "exchange");
    let bind = exchange::Bind {
        source: short("xs"),
        destination: short("xd"),
        ..exchange::Bind::default()
    };
    needs(bind, &[(Write, "xd"), (Read, "xs")], "exchange");
    let unbind = exchange::Unbind {
        source: short("xs"),
        destination: short("xd"),
        ..exchange::Unbind::default()
    };
    needs(unbind, &[(Write, "xd"), (Read, "xs")], "exchange");
}

#[test]
fn every_method_of_queues_has_its_permissions() {
    use Permission::{Configure, Read, Write};
    let dead = table(&[("x-dead-letter-exchange", Value::text("xd"))]);
    let declare = queue::Declare {
        queue: short("q"),
        ..queue::Declare::default()
    };
    needs(declare, &[(Configure, "q")], "queue");
    let with = queue::Declare {
        arguments: Table::new(&dead).unwrap(),
        ..declare
    };
    needs(
        with,
        &[(Configure, "q"), (Read, "q"), (Write, "xd")],
        "queue",
    );
    needs(
        queue::Declare {
            passive: true,
            ..declare
        },
        &[],
        "queue",
    );
    let generated = "amq.gen-AAAAAAAAAAAAAAAAAAAAAA";
    needs(
        queue::Declare::default(),
        &[(Configure, generated)],
        "queue",
    );
    let bind = queue::Bind {
        queue: short("q"),
        exchange: short("xs"),
        ..queue::Bind::default()
    };
    needs(bind, &[(Write, "q"), (Read, "xs")], "queue");
    let unbind = queue::Unbind {
        queue: short("q"),
        exchange: short("xs"),
        ..queue::Unbind::default()
    };
    needs(unbind, &[(Write, "q"), (Read, "xs")], "queue");
    let purge = queue::Purge {
        queue: short("q"),
        no_wait: false,
    };
    needs(purge, &[(Read, "q")], "queue");
    let delete = queue::Delete {
        queue: short("q"),
        ..queue::Delete::default()
    };
    needs(delete, &[(Configure, "q")], "queue");
    let get = basic::Get {
        queue: short("q"),
        no_ack: false,
    };
    needs(get, &[(Read, "q")], "queue");
    let consume = basic::Consume {
        queue: short("q"),
        ..basic::Consume::default()
    };
    needs(consume, &[(Read, "q")], "queue");
}

#[test]
fn publishing_is_asked_for_once_for_many_messages() {
    let clerk = Arc::new(Clerk {
        may: vec![(Permission::Write, "x")],
        ..Clerk::default()
    });
    let identity: Arc<dyn Identity> = Arc::clone(&clerk) as Arc<dyn Identity>;
    let mut peer = Peer::open_as(AmqpConfig::default(), &client_properties(), identity);
    peer.open_channel(1);
    let publish = basic::Publish {
        exchange: short("x"),
        ..basic::Publish::default()
    };
    let one = message(1, publish, &PropertyValues::default(), b"a");
    peer.send(&one.repeat(5));
    assert_eq!(peer.published().1.items.len(), 5);
    assert_eq!(*clerk.asked.lock().unwrap(), ["write x"]);
    // New permissions are asked again.
    peer.session
        .on_identity(peer.now, Arc::new(Clerk::default()));
    peer.send(&one);
    let text =
        "ACCESS_REFUSED - write access to exchange 'x' in vhost '/' refused for user 'clerk'";
    peer.expect_channel_close(1, 403, text, (60, 40));
    // The default exchange has a name here.
    peer.send(&super::plain(1, "q", b"a"));
    let text = "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for \
                user 'clerk'";
    peer.expect_channel_close(1, 403, text, (60, 40));
}

#[test]
fn routing_keys_of_topic_exchanges_may_be_restricted() {
    let may = vec![
        (Permission::Write, "topics"),
        (Permission::Read, "topics"),
        (Permission::Write, "q"),
    ];
    let mut peer = peer_of(Clerk {
        may,
        keys: vec!["a.b"],
        ..Clerk::default()
    });
    let to = |key| {
        let publish = basic::Publish {
            exchange: short("topics"),
            routing_key: short(key),
            ..basic::Publish::default()
        };
        message(1, publish, &PropertyValues::default(), b"a")
    };
    peer.send(&to("a.b"));
    assert_eq!(peer.published().1.items.len(), 1);
    peer.send(&to("a.c"));
    let text = "ACCESS_REFUSED - write access to topic 'a.c' in exchange 'topics' in vhost '/' \
                refused for user 'clerk'";
    peer.expect_channel_close(1, 403, text, (60, 40));
    let bind = queue::Bind {
        queue: short("q"),
        exchange: short("topics"),
        routing_key: short("#"),
        ..queue::Bind::default()
    };
    peer.say(1, bind);
    let text = "ACCESS_REFUSED - read access to topic '#' in exchange 'topics' in vhost '/' \
                refused for user 'clerk'";
    peer.expect_channel_close(1, 403, text, (50, 20));
}

#[test]
fn pitfall_4_a_vhost_may_be_closed_to_somebody() {
    let mut peer = Peer::logging_in(AmqpConfig::default(), &client_properties());
    peer.session
        .on_login(peer.now, Ok(Arc::new(Clerk::default())));
    peer.bytes();
    let open = connection::Open {
        virtual_host: short("secret"),
    };
    peer.send(&[frame(0, TUNE_OK), frame(0, open)].concat());
    let requests = peer.requests();
    let [_, Request::Admin { reply, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    peer.admin(reply.token, AdminReply::Vhost(Ok(super::VHOST)));
    let text = "NOT_ALLOWED - access to vhost 'secret' refused for user 'clerk'";
    assert_eq!(peer.lines(), [connection_close(530, text, (10, 40))]);
}

#[test]
fn keys_in_headers_are_asked_for_like_the_routing_key() {
    let may = vec![(Permission::Write, "topics"), (Permission::Write, "x")];
    let mut peer = peer_of(Clerk {
        may,
        keys: vec!["a.b", "a.c"],
        ..Clerk::default()
    });
    let to = |exchange, list: &str, key: &str| {
        let publish = basic::Publish {
            exchange: short(exchange),
            routing_key: short("a.b"),
            ..basic::Publish::default()
        };
        let mut keys = Vec::new();
        tanda_wire::amqp::ArrayWriter::new(&mut keys).value(&Value::text(key));
        let keys = tanda_wire::amqp::Array::new(&keys).unwrap();
        let headers = table(&[(list, Value::Array(keys))]);
        let properties = PropertyValues {
            headers: Some(Table::new(&headers).unwrap()),
            ..PropertyValues::default()
        };
        message(1, publish, &properties, b"a")
    };
    for list in ["CC", "BCC"] {
        peer.send(&to("topics", list, "a.c"));
        assert_eq!(peer.published().1.items.len(), 1);
        // Where keys are not restricted, none is asked for.
        peer.send(&to("x", list, "b"));
        assert_eq!(peer.published().1.items.len(), 1);
        peer.send(&to("topics", list, "b"));
        let text = "ACCESS_REFUSED - write access to topic 'b' in exchange 'topics' in vhost '/' \
                    refused for user 'clerk'";
        peer.expect_channel_close(1, 403, text, (60, 40));
    }
}
