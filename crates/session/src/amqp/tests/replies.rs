//! Direct reply-to.

use tanda_engine::{AdminReply, AdminRequest, Event, LeaseMode, Request, TopologyCode};
use tanda_wire::amqp::{Properties, PropertyValues, basic, channel, queue};

use super::{Peer, declared, line, message, short, topology_error};
use crate::envelope::Envelope;

const REPLY_TO: &str = "amq.rabbitmq.reply-to";

fn consume() -> basic::Consume<'static> {
    basic::Consume {
        queue: short(REPLY_TO),
        consumer_tag: short("r"),
        no_ack: true,
        ..basic::Consume::default()
    }
}

/// A channel that consumes replies, and their address.
fn consuming() -> (Peer, String, u32) {
    let mut peer = Peer::open();
    peer.say(1, consume());
    let (token, request) = peer.asked();
    let AdminRequest::DeclareQueue(declare) = request else {
        panic!("{request:?}")
    };
    assert!(declare.exclusive && declare.auto_delete && !declare.durable);
    let address = declare.name.clone();
    assert!(
        address.starts_with("amq.rabbitmq.reply-to.") && address.len() > 40,
        "{address}"
    );
    peer.admin(token, declared(&address, 0, 0));
    let request = peer.request();
    let Request::Subscribe { sub, spec } = request else {
        panic!("{request:?}")
    };
    assert_eq!(
        (spec.queue.as_str(), spec.lease),
        (address.as_str(), LeaseMode::NoAck)
    );
    peer.event(Event::Subscribed {
        token: sub.token,
        consumer: 1,
    });
    assert_eq!(
        peer.lines(),
        [line(
            1,
            basic::ConsumeOk {
                consumer_tag: short("r")
            }
        )]
    );
    (peer, address, sub.token)
}

#[test]
fn pitfall_50_replies_come_to_a_queue_of_the_channel() {
    let (mut peer, address, token) = consuming();
    let properties = PropertyValues {
        reply_to: Some(short(REPLY_TO)),
        ..PropertyValues::default()
    };
    peer.send(&message(
        1,
        basic::Publish::default(),
        &properties,
        b"question",
    ));
    let (_, batch) = peer.published();
    let envelope = Envelope::read(batch.items[0].content.of(&batch.data)).unwrap();
    let sent = Properties::decode(envelope.properties).unwrap();
    assert_eq!(sent.reply_to().unwrap().to_str().unwrap(), address);
    let reply = super::envelope("", &address, &[0, 0], b"answer");
    let batch = super::deliveries_of(1, tanda_engine::Form::Amqp, &[reply]);
    peer.event(Event::Delivery { token, batch });
    let deliver = basic::Deliver {
        consumer_tag: short("r"),
        delivery_tag: 1,
        redelivered: false,
        exchange: short(""),
        routing_key: short(&address),
    };
    assert_eq!(peer.lines()[0], line(1, deliver));
}

#[test]
fn pitfall_50_replies_are_not_acknowledged_and_have_one_consumer() {
    let mut peer = Peer::open();
    peer.say(
        1,
        basic::Consume {
            no_ack: false,
            ..consume()
        },
    );
    let text = "PRECONDITION_FAILED - reply consumer cannot acknowledge";
    peer.expect_channel_close(1, 406, text, (60, 20));
    let (mut peer, address, _) = consuming();
    peer.say(
        1,
        basic::Consume {
            consumer_tag: short("other"),
            ..consume()
        },
    );
    let text = "PRECONDITION_FAILED - reply consumer already set";
    peer.expect_channel_close(1, 406, text, (60, 20));
    // The queue goes with the channel.
    let requests = peer.requests();
    let [Request::Unsubscribe { .. }, Request::Admin { request, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert!(matches!(request, AdminRequest::RemoveQueue { name, .. } if *name == address));
}

#[test]
fn pitfall_50_another_channel_has_no_part_in_it() {
    let (mut peer, _, _) = consuming();
    peer.open_channel(2);
    let properties = PropertyValues {
        reply_to: Some(short(REPLY_TO)),
        ..PropertyValues::default()
    };
    peer.send(&message(
        2,
        basic::Publish::default(),
        &properties,
        b"question",
    ));
    let text = "PRECONDITION_FAILED - fast reply consumer does not exist";
    peer.expect_channel_close(2, 406, text, (60, 40));
}

#[test]
fn pitfall_50_a_passive_declare_says_whether_somebody_waits() {
    let (mut peer, address, _) = consuming();
    let declare = |name| queue::Declare {
        queue: short(name),
        passive: true,
        ..queue::Declare::default()
    };
    let there = |name| queue::DeclareOk {
        queue: short(name),
        message_count: 0,
        consumer_count: 1,
    };
    peer.say(1, declare(REPLY_TO));
    assert_eq!(peer.lines(), [line(1, there(REPLY_TO))]);
    // Its own, or that of another connection.
    for reply in [
        declared(&address, 5, 1),
        AdminReply::QueueDeclared(topology_error(TopologyCode::ResourceLocked, "locked")),
    ] {
        peer.say(1, declare(&address));
        let (token, request) = peer.asked();
        assert!(matches!(request, AdminRequest::DeclareQueue(ref it) if it.passive));
        peer.admin(token, reply);
        assert_eq!(peer.lines(), [line(1, there(&address))]);
    }
    // Whatever is asked, nothing is declared.
    let gone = queue::Declare {
        queue: short("amq.rabbitmq.reply-to.x"),
        ..queue::Declare::default()
    };
    peer.say(1, gone);
    let (token, request) = peer.asked();
    assert!(matches!(request, AdminRequest::DeclareQueue(ref it) if it.passive));
    let text = "no queue 'amq.rabbitmq.reply-to.x' in vhost '/'";
    peer.admin(
        token,
        AdminReply::QueueDeclared(topology_error(TopologyCode::NotFound, text)),
    );
    peer.expect_channel_close(1, 404, &format!("NOT_FOUND - {text}"), (50, 10));
}

#[test]
fn the_queue_for_replies_goes_with_its_consumer() {
    let (mut peer, address, _) = consuming();
    peer.say(
        1,
        basic::Cancel {
            consumer_tag: short("r"),
            no_wait: false,
        },
    );
    let requests = peer.requests();
    let [Request::Unsubscribe { .. }, Request::Admin { reply, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    let token = reply.token;
    peer.admin(token, declared(&address, 0, 0));
    assert_eq!(
        peer.lines(),
        [line(
            1,
            basic::CancelOk {
                consumer_tag: short("r")
            }
        )]
    );
    let (_, request) = peer.asked();
    assert!(matches!(request, AdminRequest::RemoveQueue { name, .. } if name == address));
    peer.say(1, consume());
    assert!(matches!(peer.asked().1, AdminRequest::DeclareQueue(it) if it.name != address));
    peer.say(1, channel::Flow { active: true });
}
