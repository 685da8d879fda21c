//! `deliver`, `get` and `get_ok`.

use tanda_engine::{
    Event, Form, FrameLimit, GetError, Got, Request, SettleItem, Settlement, Take, TopologyCode,
};
use tanda_wire::firemq::consume::{Get, Subscribe};
use tanda_wire::firemq::{Properties, Value};

use super::{
    FireConfig, Peer, VHOST, deliveries, deliveries_of, envelope, id, kept, map, to_q,
    topology_error,
};

const GET: Get<'_> = Get {
    rid: 8,
    queue: "q",
    no_ack: false,
};

/// Asks for one message; the token of the request.
fn getting(peer: &mut Peer, get: &Get<'_>) -> u32 {
    peer.say(get);
    let request = peer.request();
    let Request::Get { reply, spec } = request else {
        panic!("{request:?}")
    };
    assert_eq!((spec.vhost, spec.queue.as_str()), (VHOST, get.queue));
    assert_eq!(spec.take == Take::NoAck, get.no_ack);
    let is_held = |take| {
        matches!(
            take,
            Take::Held {
                ack_timeout_ms: Some(_)
            }
        )
    };
    assert_eq!(is_held(spec.take), !get.no_ack);
    reply.token
}

fn got(token: u32, result: Result<Got, GetError>) -> Event {
    Event::Got { token, result }
}

/// Of the engine for a body that is larger than a frame.
fn large(form: Form) -> tanda_engine::DeliveryBatch {
    let properties = match form {
        Form::Fire => kept(false, b"", b""),
        Form::Amqp | Form::Fila => vec![0, 0],
    };
    let large = envelope("ex", "key", &properties, &[b'x'; 1_000]);
    let small = envelope("ex", "key", &properties, b"small");
    deliveries_of(1, form, &[small.clone(), large, small])
}

fn small_frames() -> Peer {
    Peer::open_with(FireConfig {
        max_frame: 1_000,
        ..FireConfig::default()
    })
}

#[test]
fn a_delivery_says_all_that_was_published() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let mut props = Vec::new();
    Properties {
        content_type: "text/plain",
        expiration_ms: 60_000,
        priority: 3,
        ..Properties::default()
    }
    .encode(&mut props);
    let headers = map(&[
        ("nil", Value::Nil),
        ("big", Value::Uint(u64::MAX)),
        (
            "ext",
            Value::Ext {
                kind: 5,
                data: b"x",
            },
        ),
    ]);
    let content = envelope("ex", "k", &kept(true, &props, &headers), b"body");
    let batch = deliveries_of(1, Form::Fire, &[content]);
    peer.event(Event::Delivery { token, batch });
    let line = "deliver sub=1 tag=1 exchange=ex key=k \
                props={content_type=text/plain expiration=60000 priority=3} \
                headers={nil=nil big=18446744073709551615 ext=ext(5 x)} | body";
    assert_eq!(peer.lines(), [line]);
}

#[test]
fn tags_are_unique_and_increase_from_1_on_the_connection() {
    let mut peer = Peer::open();
    let first = peer.subscribe_q();
    let second = peer.subscribe(&Subscribe {
        no_ack: true,
        ..to_q(2)
    });
    for token in [first, second, first] {
        let batch = deliveries(1, 1);
        peer.event(Event::Delivery { token, batch });
    }
    let token = getting(&mut peer, &GET);
    let result = Ok(Got {
        batch: Some(deliveries(1, 1)),
        remaining: 0,
    });
    peer.event(got(token, result));
    let lines = [
        "deliver sub=1 tag=1 exchange=ex key=key | body",
        "deliver sub=2 tag=2 exchange=ex key=key | body",
        "deliver sub=1 tag=3 exchange=ex key=key | body",
        "get_ok rid=8 tag=4 exchange=ex key=key | body",
    ];
    assert_eq!(peer.lines(), lines);
}

#[test]
fn what_was_out_before_is_redelivered() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let mut batch = deliveries(1, 1);
    batch.items[0].deliveries = 2;
    peer.event(Event::Delivery {
        token,
        batch: batch.clone(),
    });
    let line = "deliver sub=1 tag=1 redelivered=true exchange=ex key=key | body";
    assert_eq!(peer.lines(), [line]);
    let token = getting(&mut peer, &GET);
    let result = Ok(Got {
        batch: Some(batch),
        remaining: 1,
    });
    peer.event(got(token, result));
    let line = "get_ok rid=8 tag=2 redelivered=true exchange=ex key=key remaining=1 | body";
    assert_eq!(peer.lines(), [line]);
}

#[test]
fn an_empty_queue_is_ok_with_empty() {
    let mut peer = Peer::open();
    let token = getting(&mut peer, &GET);
    peer.event(got(token, Ok(Got::default())));
    assert_eq!(peer.lines(), ["ok rid=8 empty=true"]);
    peer.event(got(token, Ok(Got::default())));
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn a_get_that_fails_is_an_error_of_its_request() {
    let mut peer = Peer::open();
    let token = getting(&mut peer, &GET);
    peer.event(got(token, Err(GetError::NotFound)));
    let line = "error rid=8 code=404 msg=no queue 'q' in vhost '/'";
    assert_eq!(peer.lines(), [line]);
    let token = getting(&mut peer, &GET);
    let locked = topology_error::<()>(TopologyCode::ResourceLocked, "locked").unwrap_err();
    peer.event(got(token, Err(GetError::Topology(locked))));
    assert_eq!(peer.lines(), ["error rid=8 code=405 msg=locked"]);
}

#[test]
fn a_get_without_ack_needs_none() {
    let mut peer = Peer::open();
    let no_ack = Get {
        no_ack: true,
        ..GET
    };
    let token = getting(&mut peer, &no_ack);
    let result = Ok(Got {
        batch: Some(deliveries(1, 1)),
        remaining: 0,
    });
    peer.event(got(token, result));
    assert_eq!(peer.lines().len(), 1);
    peer.say(&tanda_wire::firemq::consume::Ack {
        tag: 1,
        multiple: false,
    });
    assert_eq!(peer.lines(), ["error code=406 msg=unknown delivery tag 1"]);
}

#[test]
fn what_is_got_and_held_is_bounded() {
    let mut peer = Peer::open_with(FireConfig {
        unacked_max: 1,
        ..FireConfig::default()
    });
    let token = getting(&mut peer, &GET);
    let result = Ok(Got {
        batch: Some(deliveries(1, 1)),
        remaining: 0,
    });
    peer.event(got(token, result));
    peer.lines();
    peer.say(&GET);
    let msg = "the connection holds 1 unacknowledged messages";
    assert_eq!(peer.lines(), [format!("error rid=8 code=406 msg={msg}")]);
    let no_ack = Get {
        no_ack: true,
        ..GET
    };
    getting(&mut peer, &no_ack);
}

/// What the engine is told of frames of 1000 bytes.
const LIMIT: FrameLimit = FrameLimit::Fire(960);

fn is_unfit(item: &SettleItem, number: u64) -> bool {
    let is_so = matches!(
        item.settlement,
        Settlement::Unfit {
            frame_limit: LIMIT,
            ..
        }
    );
    is_so && item.id == id(number)
}

#[test]
fn a_message_larger_than_a_frame_is_passed_over_and_stays_for_others() {
    for form in [Form::Fire, Form::Amqp] {
        let mut peer = small_frames();
        let token = peer.subscribe_q();
        let batch = large(form);
        peer.event(Event::Delivery { token, batch });
        let lines = peer.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "deliver sub=1 tag=1 exchange=ex key=key | small");
        let behind = "deliver sub=1 tag=2 exchange=ex key=key | ";
        assert!(lines[1].starts_with(behind), "{lines:?}");
        let requests = peer.requests();
        let [
            Request::Settle { batch, .. },
            Request::Grant { credit: 1, .. },
            Request::Pool { .. },
        ] = &requests[..]
        else {
            panic!("{requests:?}")
        };
        let [item] = &batch.items[..] else {
            panic!("{batch:?}")
        };
        assert!(is_unfit(item, 2), "{item:?}");
    }
}

#[test]
fn headers_that_have_no_room_in_a_frame_keep_the_message_from_the_peer() {
    let mut content = b"\0\x01\0\x01h".to_vec();
    content.extend_from_slice(&1_000_u16.to_be_bytes());
    content.extend_from_slice(&[b'z'; 1_000]);
    content.extend_from_slice(b"\0\0\0\x03abc");
    let mut peer = small_frames();
    let token = peer.subscribe_q();
    let batch = deliveries_of(1, Form::Fila, &[content]);
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.lines(), [""; 0]);
    let requests = peer.requests();
    let Some(Request::Settle { batch, .. }) = requests.first() else {
        panic!("{requests:?}")
    };
    assert!(is_unfit(&batch.items[0], 1), "{batch:?}");
}

#[test]
fn a_get_is_answered_with_the_next_message_that_fits() {
    for no_ack in [false, true] {
        let mut peer = small_frames();
        let get = Get { no_ack, ..GET };
        let token = getting(&mut peer, &get);
        let content = envelope("ex", "key", &kept(false, b"", b""), &[b'x'; 1_000]);
        let mut batch = deliveries_of(1, Form::Fire, &[content]);
        batch.items[0].is_leased = true;
        let result = Ok(Got {
            batch: Some(batch),
            remaining: 1,
        });
        peer.event(got(token, result));
        assert_eq!(peer.lines(), [""; 0]);
        let requests = peer.requests();
        let [Request::Settle { batch, .. }, Request::Get { reply, spec }] = &requests[..] else {
            panic!("{requests:?}")
        };
        assert!(is_unfit(&batch.items[0], 1), "{batch:?}");
        assert_eq!(spec.frame_limit, LIMIT);
        assert_eq!(spec.take == Take::NoAck, no_ack);
        let nothing = Ok(Got {
            batch: None,
            remaining: 1,
        });
        peer.event(got(reply.token, nothing));
        assert_eq!(peer.lines(), ["ok rid=8 empty=true"]);
    }
}

#[test]
fn one_that_is_gone_from_its_queue_is_sent() {
    let mut peer = small_frames();
    let token = peer.subscribe(&Subscribe {
        no_ack: true,
        ..to_q(1)
    });
    let batch = large(Form::Fire);
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.lines().len(), 3);
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn without_acks_one_that_may_not_fit_is_settled_when_it_was_sent_or_not() {
    let mut peer = small_frames();
    let token = peer.subscribe(&Subscribe {
        no_ack: true,
        ..to_q(1)
    });
    let mut batch = large(Form::Fire);
    for item in &mut batch.items {
        item.is_leased = true;
    }
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.lines().len(), 2);
    let requests = peer.requests();
    let [
        Request::Settle { batch, .. },
        Request::Grant { credit: 1, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    let [first, second, third] = &batch.items[..] else {
        panic!("{batch:?}")
    };
    assert!(is_unfit(second, 2), "{second:?}");
    for (item, number) in [(first, 1), (third, 3)] {
        assert_eq!((item.id, item.settlement), (id(number), Settlement::Ack));
    }
}

#[test]
fn a_delivery_that_was_written_is_told_to_the_engine() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let batch = deliveries(1, 3);
    let budget = batch.budget_bytes();
    peer.event(Event::Delivery { token, batch });
    peer.bytes();
    peer.pass_ms(20);
    let request = peer.session.next_request();
    assert!(
        matches!(request, Some(Request::Drained { bytes, .. }) if bytes == budget),
        "{request:?}"
    );
}
