//! What a user may not do is 403.

use std::sync::Arc;

use tanda_wire::firemq::consume::Get;
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};
use tanda_wire::firemq::{Header, RawMap, Value};

use super::{FireConfig, Peer, hello, map, message, publish, stored, to_q};
use crate::Session;
use crate::login::{Identity, Permission, TopicAccess};

/// May configure what begins with `c`, write what begins with `w`, read what begins with `r`; in
/// the exchange `w.topic` only keys that begin with `ok`.
#[derive(Debug)]
struct Limited;

impl Identity for Limited {
    fn name(&self) -> &'static str {
        "anna"
    }

    fn may_open(&self, _vhost: &str) -> bool {
        true
    }

    fn may(&self, permission: Permission, _vhost: &str, name: &str) -> bool {
        name.starts_with(match permission {
            Permission::Configure => 'c',
            Permission::Write => 'w',
            Permission::Read => 'r',
        })
    }

    fn restricts_keys(&self, _vhost: &str, exchange: &str) -> bool {
        exchange.ends_with(".topic")
    }

    fn may_use_key(&self, access: TopicAccess<'_>) -> bool {
        access.key.starts_with("ok")
    }
}

fn limited() -> Peer {
    Peer::open_as(FireConfig::default(), &hello(), Arc::new(Limited))
}

fn refused<'a>(request: &impl Header<'a>, what: &str) {
    let mut peer = limited();
    peer.say(request);
    let msg = format!("{what} in vhost '/' refused for user 'anna'");
    assert_eq!(peer.lines(), [format!("error rid=1 code=403 msg={msg}")]);
    assert_eq!(peer.requests().len(), 0);
    assert!(!peer.session.is_closing());
}

fn allowed<'a>(request: &impl Header<'a>) {
    let mut peer = limited();
    peer.say(request);
    assert_eq!(peer.bytes(), b"");
    assert!(!peer.requests().is_empty());
}

#[test]
fn exchanges_are_configured() {
    let declare = |name| DeclareExchange {
        rid: 1,
        name,
        kind: "fanout",
        ..DeclareExchange::default()
    };
    allowed(&declare("c.ex"));
    refused(&declare("ex"), "configure access to exchange 'ex'");
    // To look for one asks for nothing.
    allowed(&DeclareExchange {
        passive: true,
        ..declare("ex")
    });
    let delete = |name| DeleteExchange {
        rid: 1,
        name,
        if_unused: false,
    };
    allowed(&delete("c.ex"));
    refused(&delete("ex"), "configure access to exchange 'ex'");
    let args = map(&[("alternate-exchange", Value::Str("w"))]);
    let alternate = DeclareExchange {
        args: RawMap::decode(&args).unwrap(),
        ..declare("c")
    };
    refused(&alternate, "read access to exchange 'c'");
}

#[test]
fn queues_are_configured_and_read() {
    let declare = |name| DeclareQueue {
        rid: 1,
        name,
        ..DeclareQueue::default()
    };
    allowed(&declare("c.q"));
    refused(&declare("q"), "configure access to queue 'q'");
    let generated = "configure access to queue 'amq.gen-AAAAAAAAAAAAAAAAAAAAAA'";
    refused(&declare(""), generated);
    let delete = |name| DeleteQueue {
        rid: 1,
        name,
        ..DeleteQueue::default()
    };
    allowed(&delete("c.q"));
    refused(&delete("r"), "configure access to queue 'r'");
    allowed(&PurgeQueue { rid: 1, name: "r" });
    refused(
        &PurgeQueue { rid: 1, name: "c" },
        "read access to queue 'c'",
    );
    let get = |queue| Get {
        rid: 1,
        queue,
        no_ack: false,
    };
    allowed(&get("r"));
    refused(&get("w"), "read access to queue 'w'");
    let subscribe = |queue| tanda_wire::firemq::consume::Subscribe {
        rid: 1,
        queue,
        ..to_q(1)
    };
    allowed(&subscribe("r"));
    refused(&subscribe("w"), "read access to queue 'w'");
}

#[test]
fn bindings_read_their_source_and_write_their_destination() {
    let bind = |exchange, queue, key| Bind {
        rid: 1,
        exchange,
        queue,
        key,
        ..Bind::default()
    };
    allowed(&bind("r", "w", "k"));
    refused(&bind("r", "q", "k"), "write access to queue 'q'");
    refused(&bind("w", "w", "k"), "read access to exchange 'w'");
    allowed(&bind("r.topic", "w", "ok"));
    refused(
        &bind("r.topic", "w", "no"),
        "read access to topic 'no' in exchange 'r.topic'",
    );
    let unbind = Unbind {
        rid: 1,
        exchange: "r",
        to_exchange: "x",
        ..Unbind::default()
    };
    refused(&unbind, "write access to exchange 'x'");
}

#[test]
fn messages_are_written_and_refused_ones_are_nacked() {
    let mut peer = limited();
    let to = |seq, exchange, key| {
        super::frame(&Publish {
            exchange,
            ..publish(seq, key)
        })
    };
    let all = [
        to(1, "w", "k"),
        to(2, "x", "k"),
        to(3, "w.topic", "ok"),
        to(4, "w.topic", "no"),
        to(5, "w", "k"),
        message(6, "w", b"to the default exchange"),
    ];
    peer.send(&all.concat());
    let user = "in vhost '/' refused for user 'anna'";
    let lines = [
        format!("confirm seq=2 nack=true code=403 msg=write access to exchange 'x' {user}"),
        format!(
            "confirm seq=4 nack=true code=403 msg=write access to topic 'no' in exchange \
             'w.topic' {user}"
        ),
        format!(
            "confirm seq=6 nack=true code=403 msg=write access to exchange 'amq.default' {user}"
        ),
    ];
    assert_eq!(peer.lines(), lines);
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 3);
    peer.event(stored(token, 3));
    assert_eq!(peer.lines(), ["confirm upto=5"]);
    peer.send(&message(0, "q", b""));
    let msg = format!("write access to exchange 'amq.default' {user}");
    assert_eq!(peer.lines(), [format!("error code=403 msg={msg}")]);
}

#[test]
fn new_permissions_count_at_once() {
    let mut peer = Peer::open();
    peer.send(&message(1, "q", b"x"));
    peer.requests();
    peer.session.on_identity(peer.now, Arc::new(Limited));
    peer.send(&message(2, "q", b"x"));
    let lines = peer.lines();
    assert!(
        lines[0].starts_with("confirm seq=2 nack=true code=403 "),
        "{lines:?}"
    );
}
