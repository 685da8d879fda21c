//! What a session wrote, and what must hold between its frames.

use std::collections::BTreeSet;

use tanda_wire::firemq::frame::{Split, split_frame};
use tanda_wire::firemq::message::ToClient;
use tanda_wire::firemq::publish::Confirm;

/// The side of the peer that reads.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Not decoded yet.
    bytes: Vec<u8>,
    tag: u64,
    upto: u64,
    rejected: BTreeSet<u64>,
    is_over: bool,
}

impl Reader {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        let held = core::mem::take(&mut self.bytes);
        while let Some(rest) = held.get(at..)
            && !rest.is_empty()
        {
            // Without acknowledgements a message is sent however large it is.
            match split_frame(rest, u32::MAX) {
                Ok(Split::Frame(frame)) => {
                    at += frame.consumed;
                    let decoded = ToClient::decode(frame.op, frame.header);
                    assert!(matches!(decoded, Ok(Some(_))), "{}: {decoded:?}", frame.op);
                    if let Ok(Some(message)) = decoded {
                        self.on_message(&message);
                    }
                }
                Ok(Split::Incomplete { .. }) => break,
                Err(error) => {
                    assert_eq!(Err::<(), _>(error), Ok(()), "what was written is frames");
                    break;
                }
            }
        }
        self.bytes = held.get(at..).unwrap_or_default().to_vec();
    }

    /// A part of a frame may have left when the socket goes.
    pub(super) fn forget(&mut self) {
        self.bytes.clear();
    }

    fn on_message(&mut self, message: &ToClient<'_>) {
        assert!(!self.is_over, "{message:?} after a fatal error");
        if let ToClient::Error(error) = message {
            self.is_over = error.fatal;
            assert!(error.code.name() != "unknown", "{error:?}");
        } else if let ToClient::Deliver(deliver) = message {
            self.on_tag(deliver.tag);
        } else if let ToClient::GetOk(got) = message {
            self.on_tag(got.tag);
        } else if let ToClient::Confirm(confirm) = message {
            self.on_confirm(confirm);
        }
    }

    fn on_tag(&mut self, tag: u64) {
        assert!(tag > self.tag, "tag {tag} after {}", self.tag);
        self.tag = tag;
    }

    fn on_confirm(&mut self, confirm: &Confirm<'_>) {
        if confirm.nack {
            let seq = confirm.seq;
            assert!(seq > self.upto, "{seq} is rejected after {}", self.upto);
            assert!(self.rejected.insert(seq), "{seq} is rejected again");
        } else {
            assert!(confirm.upto > self.upto, "{confirm:?} after {}", self.upto);
            self.upto = confirm.upto;
        }
    }
}
