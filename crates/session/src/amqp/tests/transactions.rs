//! `tx`: all or nothing.

use tanda_engine::{
    AdminReply, AdminRequest, Event, Millis, PublishError, PublishResult, Request, Settlement,
    TopologyCode,
};
use tanda_wire::amqp::{PropertyValues, basic, channel, confirm, tx};

use super::{Peer, channel_close, frame, id, line, message, plain, short, topology_error};

fn transactional() -> Peer {
    let mut peer = Peer::open();
    peer.say(1, tx::Select {});
    assert_eq!(peer.lines(), [line(1, tx::SelectOk {})]);
    peer
}

fn ack(delivery_tag: u64) -> Vec<u8> {
    frame(
        1,
        basic::Ack {
            delivery_tag,
            multiple: false,
        },
    )
}

#[test]
fn pitfall_54_confirms_and_transactions_exclude_each_other() {
    let mut peer = transactional();
    peer.say(1, confirm::Select { no_wait: false });
    let text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode";
    peer.expect_channel_close(1, 406, text, (85, 10));
    peer.confirm_select(1);
    peer.say(1, tx::Select {});
    let text = "PRECONDITION_FAILED - cannot switch from confirm to tx mode";
    peer.expect_channel_close(1, 406, text, (90, 10));
    let text = "PRECONDITION_FAILED - channel is not transactional";
    peer.say(1, tx::Commit {});
    peer.expect_channel_close(1, 406, text, (90, 20));
    peer.say(1, tx::Rollback {});
    peer.expect_channel_close(1, 406, text, (90, 30));
}

#[test]
fn pitfall_55_publishes_and_acks_wait_for_the_commit() {
    let mut peer = transactional();
    let token = peer.consume_q();
    peer.deliver(token, 3);
    let reject = basic::Reject {
        delivery_tag: 2,
        requeue: true,
    };
    peer.send(
        &[
            plain(1, "q", b"a"),
            ack(1),
            frame(1, reject),
            plain(1, "q", b"b"),
        ]
        .concat(),
    );
    assert!(peer.requests().is_empty());
    peer.say(1, tx::Commit {});
    let request = peer.request();
    let Request::Transaction {
        reply,
        publish,
        settle,
    } = request
    else {
        panic!("{request:?}")
    };
    assert_eq!(publish.items.len(), 2);
    assert!(publish.confirm);
    let settled: Vec<_> = settle
        .items
        .iter()
        .map(|it| (it.id, it.settlement))
        .collect();
    assert_eq!(
        settled,
        [
            (id(1), Settlement::Ack),
            (id(2), Settlement::Nack { requeue: true })
        ]
    );
    assert!(!peer.session.wants_input() || peer.bytes().is_empty());
    peer.event(Event::Committed {
        token: reply.token,
        published: vec![PublishResult::Stored(id(9)); 2],
        settled: vec![Ok(Millis(0)); 2],
    });
    assert_eq!(peer.lines(), [line(1, tx::CommitOk {})]);
    let request = peer.request();
    assert!(
        matches!(request, Request::Grant { credit: 2, .. }),
        "{request:?}"
    );
    // Nothing is left of it.
    peer.say(1, tx::Commit {});
    assert_eq!(peer.lines(), [line(1, tx::CommitOk {})]);
    assert!(peer.requests().is_empty());
}

#[test]
fn pitfall_55_a_rollback_forgets_both_and_keeps_the_messages_held() {
    let mut peer = transactional();
    let token = peer.consume_q();
    peer.deliver(token, 2);
    peer.send(&[plain(1, "q", b"a"), ack(2), ack(1)].concat());
    peer.say(1, tx::Rollback {});
    assert_eq!(peer.lines(), [line(1, tx::RollbackOk {})]);
    assert!(peer.requests().is_empty());
    peer.send(&[ack(1), ack(2)].concat());
    assert_eq!(peer.bytes(), b"");
    peer.say(1, tx::Commit {});
    let request = peer.request();
    let Request::Transaction {
        publish, settle, ..
    } = request
    else {
        panic!("{request:?}")
    };
    assert_eq!((publish.items.len(), settle.items.len()), (0, 2));
}

#[test]
fn pitfall_55_returns_come_before_the_commit_is_answered() {
    let mut peer = transactional();
    let publish = basic::Publish {
        mandatory: true,
        ..basic::Publish::default()
    };
    peer.send(&message(1, publish, &PropertyValues::default(), b"x"));
    peer.say(1, tx::Commit {});
    let request = peer.request();
    let Request::Transaction { reply, .. } = request else {
        panic!("{request:?}")
    };
    let published = vec![PublishResult::Unroutable];
    peer.event(Event::Committed {
        token: reply.token,
        published,
        settled: vec![],
    });
    let lines = peer.lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains("NO_ROUTE"));
    assert_eq!(lines[3], line(1, tx::CommitOk {}));
}

#[test]
fn each_message_of_a_transaction_comes_back_for_its_own_result() {
    let mut peer = transactional();
    for mandatory in [false, true, true] {
        let publish = basic::Publish {
            mandatory,
            ..basic::Publish::default()
        };
        let body = if mandatory { b"told" } else { b"mute" };
        peer.send(&message(1, publish, &PropertyValues::default(), body));
    }
    peer.say(1, tx::Commit {});
    let request = peer.request();
    let Request::Transaction { reply, .. } = request else {
        panic!("{request:?}")
    };
    let published = vec![
        PublishResult::Stored(id(1)),
        PublishResult::Stored(id(2)),
        PublishResult::Unroutable,
    ];
    peer.event(Event::Committed {
        token: reply.token,
        published,
        settled: vec![],
    });
    let lines = peer.lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains("NO_ROUTE") && lines[2].contains("told"));
    assert_eq!(lines[3], line(1, tx::CommitOk {}));
}

#[test]
fn pitfall_55_a_missing_exchange_is_found_when_publishing() {
    let mut peer = transactional();
    let publish = basic::Publish {
        exchange: short("ex"),
        ..basic::Publish::default()
    };
    let one = message(1, publish, &PropertyValues::default(), b"x");
    peer.send(&one);
    let (token, request) = peer.asked();
    assert!(matches!(request, AdminRequest::DeclareExchange(it) if it.passive && it.name == "ex"));
    peer.admin(token, AdminReply::ExchangeDeclared(Ok(())));
    assert_eq!(peer.bytes(), b"");
    // It is asked for once.
    peer.send(&one);
    assert!(peer.requests().is_empty());
    let publish = basic::Publish {
        exchange: short("no"),
        ..basic::Publish::default()
    };
    peer.send(&message(1, publish, &PropertyValues::default(), b"x"));
    let (token, _) = peer.asked();
    let error = topology_error(TopologyCode::NotFound, "no exchange 'no' in vhost '/'");
    peer.admin(token, AdminReply::ExchangeDeclared(error));
    let text = "NOT_FOUND - no exchange 'no' in vhost '/'";
    assert_eq!(peer.lines(), [channel_close(1, 404, text, (60, 40))]);
    assert!(peer.requests().is_empty());
}

#[test]
fn a_commit_of_which_nothing_came_ends_the_channel_and_gives_back() {
    let mut peer = transactional();
    let token = peer.consume_q();
    peer.deliver(token, 1);
    peer.send(&[plain(1, "q", b"a"), ack(1)].concat());
    peer.say(1, tx::Commit {});
    let request = peer.request();
    let Request::Transaction { reply, .. } = request else {
        panic!("{request:?}")
    };
    peer.event(Event::Committed {
        token: reply.token,
        published: vec![PublishResult::Refused(PublishError::QueueFull)],
        settled: vec![],
    });
    let text = "PRECONDITION_FAILED - partial tx completion: QueueFull";
    assert_eq!(peer.lines(), [channel_close(1, 406, text, (90, 20))]);
    let request = peer.request();
    assert!(
        matches!(request, Request::Unsubscribe { .. }),
        "{request:?}"
    );
}

#[test]
fn a_channel_that_ends_gives_back_what_waited_for_a_commit() {
    let mut peer = transactional();
    let token = peer.consume_q();
    peer.deliver(token, 2);
    peer.send(&[plain(1, "q", b"a"), ack(1)].concat());
    peer.say(1, channel::Close::default());
    // The consumer takes both back; nothing else is asked.
    let request = peer.request();
    assert!(
        matches!(request, Request::Unsubscribe { .. }),
        "{request:?}"
    );
    peer.bytes();
    peer.open_channel(1);
    peer.say(1, tx::Commit {});
    let text = "PRECONDITION_FAILED - channel is not transactional";
    peer.expect_channel_close(1, 406, text, (90, 20));
}

#[test]
fn a_transaction_is_bounded() {
    let config = super::AmqpConfig {
        tx_bytes_max: 1_000,
        ..super::AmqpConfig::default()
    };
    let mut peer = Peer::open_with(config);
    peer.open_channel(1);
    peer.say(1, tx::Select {});
    peer.bytes();
    peer.send(&plain(1, "q", &[0; 600]));
    assert_eq!(peer.bytes(), b"");
    peer.send(&plain(1, "q", &[0; 600]));
    let text = "PRECONDITION_FAILED - the transaction holds too much";
    peer.expect_channel_close(1, 406, text, (60, 40));
}
