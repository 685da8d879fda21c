//! What the engine may say to a session of Amaquet: right answers, wrong ones, and events out of
//! nowhere.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, Datum, DatumForm, Event, Form, GetError, Got, KeyAnswer, KeyError,
    KeyType, MessageId, Millis, PublishError, PublishResult, QueueNotFound, Redriven, Request,
    SettleError, TopologyCode, TopologyError, VersionedDatum, VhostCounts, VhostId, WatchedMessage,
};

use crate::answers::deliveries;
use crate::script::Script;

fn text(script: &mut Script<'_>) -> String {
    String::from_utf8_lossy(script.short()).into_owned()
}

fn datum(script: &mut Script<'_>) -> Datum {
    // What is said to be JSON or text was looked at when it came.
    match script.byte() % 3 {
        0 => Datum::new(DatumForm::Json, b"{\"a\":[1]}"),
        1 => Datum::new(DatumForm::Text, text(script).as_bytes()),
        _ => Datum::new(DatumForm::Bytes, script.short()),
    }
}

fn versioned(script: &mut Script<'_>) -> VersionedDatum {
    VersionedDatum {
        value: datum(script),
        version: script.u64(),
    }
}

fn key_answer(script: &mut Script<'_>) -> KeyAnswer {
    let name = |script: &mut Script<'_>| text(script).into_boxed_str();
    match script.byte() % 20 {
        0 => KeyAnswer::Bool(true),
        1 => KeyAnswer::Kind(KeyType::Map),
        2 => KeyAnswer::ExpiresAt(Millis(script.u64())),
        3 => KeyAnswer::TtlMs(None),
        4 => KeyAnswer::Scanned {
            keys: vec![name(script), name(script)],
            cursor: Some(name(script)),
        },
        5 => KeyAnswer::Version(script.u64()),
        6 => KeyAnswer::Value(versioned(script)),
        7 => KeyAnswer::Values(vec![Some(versioned(script)), None]),
        8 => KeyAnswer::Swapped {
            previous: Some(datum(script)),
            version: 7,
        },
        9 => KeyAnswer::Integer(i64::MIN),
        10 => KeyAnswer::Datum(datum(script)),
        11 => KeyAnswer::Fields(vec![(name(script), datum(script))]),
        12 => KeyAnswer::Count(script.u64()),
        13 => KeyAnswer::Items(vec![datum(script), datum(script)]),
        14 => KeyAnswer::Members(vec![name(script)]),
        15 => KeyAnswer::Score(f64::from_bits(script.u64())),
        16 => KeyAnswer::Ranked(vec![(name(script), -0.5)]),
        17 => KeyAnswer::Locked {
            key: name(script),
            token: 5,
            expires_at: Millis(9),
            waited: false,
        },
        _ => KeyAnswer::Locked {
            key: name(script),
            token: 6,
            expires_at: Millis(9),
            waited: true,
        },
    }
}

fn key_error(script: &mut Script<'_>) -> KeyError {
    let found = KeyType::Lock;
    match script.byte() % 16 {
        0 => KeyError::NotFound,
        1 => KeyError::WrongType { found },
        2 => KeyError::Exists,
        3 => KeyError::VersionConflict { found: 1 },
        4 => KeyError::Overflow { value: 1 },
        5 => KeyError::Held { until: Millis(1) },
        6 => KeyError::StaleToken,
        7 => KeyError::TimedOut,
        8 => KeyError::AnswerTooLarge { bytes_max: 1 },
        9 => KeyError::BadCursor,
        10 => KeyError::VhostNotFound,
        11 => KeyError::TooManyKeys { max: 1 },
        12 => KeyError::Storage,
        _ => KeyError::Cancelled,
    }
}

fn keys(script: &mut Script<'_>, token: u32) -> Event {
    let result = if script.byte() < 180 {
        Ok(key_answer(script))
    } else {
        Err(key_error(script))
    };
    Event::Keys {
        token,
        vhost: VhostId::DEFAULT,
        result: Box::new(result),
    }
}

fn topology(script: &mut Script<'_>) -> TopologyError {
    const CODES: [TopologyCode; 5] = [
        TopologyCode::NotFound,
        TopologyCode::WrongType,
        TopologyCode::AccessRefused,
        TopologyCode::Storage,
        TopologyCode::Internal,
    ];
    let code = CODES.get(script.pick(CODES.len())).copied();
    TopologyError {
        code: code.unwrap_or(TopologyCode::NotFound),
        text: format!("no {}", text(script)),
    }
}

fn admin_reply(script: &mut Script<'_>, request: Option<&AdminRequest>) -> AdminReply {
    if let Some(AdminRequest::OpenVhost { .. }) = request {
        return AdminReply::Vhost(if script.byte() < 200 {
            Ok(VhostId(3))
        } else {
            Err(topology(script))
        });
    }
    match script.byte() % 8 {
        0 => AdminReply::Created(Ok("q1".to_owned())),
        1 => AdminReply::Inspected(Err(QueueNotFound)),
        2 => AdminReply::Deleted(Ok(())),
        3 => AdminReply::Redriven(Ok(Redriven::default())),
        4 => AdminReply::Channels(Ok(vec![text(script)])),
        5 => AdminReply::Channels(Err(topology(script))),
        6 => AdminReply::VhostCounts(VhostCounts::default()),
        _ => AdminReply::RebalancingSet,
    }
}

fn published(script: &mut Script<'_>, count: usize) -> Vec<PublishResult> {
    let count = if script.byte() == 0 { count + 1 } else { count };
    let any = |script: &mut Script<'_>| match script.byte() % 8 {
        0 => PublishResult::Unroutable,
        1 => PublishResult::Refused(PublishError::QueueFull),
        2 => PublishResult::Refused(PublishError::QueueNotFound),
        3 => PublishResult::Refused(PublishError::ExchangeNotTopic),
        4 => PublishResult::Duplicate(MessageId(1)),
        5 => PublishResult::Sent { receivers: 3 },
        _ => PublishResult::Stored(MessageId(1)),
    };
    (0..count).map(|_| any(script)).collect()
}

fn got(script: &mut Script<'_>, token: u32) -> Event {
    let result = match script.byte() {
        0..=20 => Err(GetError::NotFound),
        21..=70 => Ok(Got::default()),
        how => {
            let count = 1 + script.pick(4);
            let mut batch = deliveries(script, count);
            batch.lease_expires_at = Millis(u64::from(how & 1));
            Ok(Got {
                batch: Some(batch),
                remaining: 1,
            })
        }
    };
    Event::Got { token, result }
}

/// An answer to a request that has one.
pub(super) fn answer(script: &mut Script<'_>, request: &Request) -> Option<Event> {
    let event = if let Request::Keys { reply, .. } = request {
        keys(script, reply.token)
    } else if let Request::Publish { reply, batch } = request {
        let token = reply.token;
        let results = published(script, batch.items.len());
        Event::Published { token, results }
    } else if let Request::Get { reply, .. } = request {
        got(script, reply.token)
    } else if let Request::Settle { reply, batch } = request {
        let any = |script: &mut Script<'_>| match script.byte() {
            0..=100 => Err(SettleError::MessageNotFound),
            _ => Ok(Millis(7)),
        };
        let results = batch.items.iter().map(|_| any(script)).collect();
        let token = reply.token;
        Event::Settled { token, results }
    } else if let Request::Admin { reply, request } = request {
        let token = reply.token;
        let reply = Box::new(admin_reply(script, Some(request)));
        Event::Admin { token, reply }
    } else if let Request::Watch { sub, .. } = request {
        let result = match script.byte() {
            0..=200 => Ok(()),
            _ => Err(topology(script)),
        };
        let token = sub.token;
        Event::Watching { token, result }
    } else {
        return None;
    };
    Some(event)
}

/// Any event for a token.
pub(super) fn any(script: &mut Script<'_>, token: u32) -> Event {
    match script.byte() % 8 {
        0 => keys(script, token),
        1 => got(script, token),
        2 => {
            let results = published(script, 1);
            Event::Published { token, results }
        }
        3 => {
            let reply = Box::new(admin_reply(script, None));
            Event::Admin { token, reply }
        }
        4 => Event::WatchEnded { token },
        5 => Event::Settled {
            token,
            results: vec![Ok(Millis(1))],
        },
        6 => Event::Watching {
            token,
            result: Err(topology(script)),
        },
        _ => Event::StorageFailed { token },
    }
}

/// A message for a subscription.
pub(super) fn watched(script: &mut Script<'_>) -> WatchedMessage {
    const FORMS: [Form; 3] = [Form::Amqp, Form::Fila, Form::Fire];
    let content = if script.byte() < 128 {
        Bytes::from_static(b"\x02ex\x03key\0\0\0\x02\0\0\0\0\0\x04body")
    } else {
        Bytes::copy_from_slice(script.short())
    };
    let form = FORMS.get(script.pick(FORMS.len())).copied();
    WatchedMessage {
        content,
        form: form.unwrap_or_default(),
        channel: text(script).into(),
        published_at: Millis(script.u64()),
        dropped: u64::from(script.byte()),
    }
}
