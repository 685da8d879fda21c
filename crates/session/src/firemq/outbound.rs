//! Frames on their way to the peer, each behind its length.

use std::ops::{Deref, DerefMut};

use tanda_wire::firemq::frame::{Framing, write_frame};
use tanda_wire::firemq::reply::ErrorReply;
use tanda_wire::firemq::session::{Close, Ping};
use tanda_wire::firemq::{Header, ReplyCode};

use super::fault::Fault;
use crate::outflow::Outflow;

/// Bytes of a text for people; it may repeat what a peer said.
const TEXT_BYTES_MAX: usize = 2_048;

/// The outbound side of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    flow: Outflow<()>,
}

impl Deref for Outbound {
    type Target = Outflow<()>;

    fn deref(&self) -> &Self::Target {
        &self.flow
    }
}

impl DerefMut for Outbound {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.flow
    }
}

impl Outbound {
    /// Appends a frame without a payload. Texts in it are short.
    pub(super) fn frame<'a, H: Header<'a>>(&mut self, header: &H) {
        self.raw(|out| {
            let written = write_frame(out, Framing::Stream, header, u32::MAX);
            debug_assert!(written.is_ok(), "{written:?}");
        });
    }

    /// Appends an `error`.
    pub(super) fn error(&mut self, fault: &Fault) {
        self.frame(&ErrorReply {
            rid: fault.rid,
            code: fault.code,
            msg: clip(&fault.text),
            fatal: fault.fatal,
        });
    }

    /// Appends a `close`.
    pub(super) fn close(&mut self, code: ReplyCode, msg: &str) {
        let msg = clip(msg);
        self.frame(&Close { code, msg });
    }

    /// Appends a `ping`.
    pub(super) fn ping(&mut self) {
        self.frame(&Ping {});
    }
}

/// The start of a text, cut between characters.
pub(super) fn clip(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "\u{e9}".repeat(1_500);
        assert_eq!(clip(&text).len(), TEXT_BYTES_MAX);
        let shifted = format!("x{text}");
        assert_eq!(clip(&shifted).len(), TEXT_BYTES_MAX - 1);
        assert_eq!(clip("short"), "short");
    }
}
