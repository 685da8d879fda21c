//! What a session wrote: frames of a server, whose payloads are answers or events.

use tanda_wire::amaquet::envelope;
use tanda_wire::amaquet::{ErrorCode, Json, Kind, Sender, Split, split_frame};

/// The side of the peer that reads.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Not decoded yet.
    bytes: Vec<u8>,
}

impl Reader {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let held = core::mem::take(&mut self.bytes);
        let mut at = 0;
        while let Some(rest) = held.get(at..)
            && !rest.is_empty()
        {
            let split = split_frame(rest, Sender::Server, u32::MAX);
            assert!(split.is_ok(), "what was written is frames: {split:?}");
            let Ok(Split::Frame(frame)) = split else {
                break;
            };
            at += frame.consumed();
            if frame.header.kind == Kind::Event {
                check_event(frame.payload);
            } else {
                check_answer(frame.payload);
            }
        }
        self.bytes = held.get(at..).unwrap_or_default().to_vec();
    }

    /// A part of a frame may have left when the socket goes.
    pub(super) fn forget(&mut self) {
        self.bytes.clear();
    }
}

fn check_answer(payload: &[u8]) {
    let shown = payload.escape_ascii();
    let answer = envelope::read(payload);
    assert!(answer.is_some(), "no answer: {shown}");
    if let Some(envelope::Answer::Failure { code, message, .. }) = answer {
        assert!(ErrorCode::from_name(&code).is_some(), "{code}");
        assert!(!message.is_empty(), "{code} says nothing");
    }
}

fn check_event(payload: &[u8]) {
    let shown = payload.escape_ascii();
    let json = Json::parse(payload).ok();
    let fields = json.and_then(Json::as_object).into_iter().flatten();
    let names: Vec<String> = fields.map(|(name, _)| name.into_owned()).collect();
    let expected = ["key", "channel", "payload", "published_at", "dropped"];
    assert_eq!(names, expected, "{shown}");
}
