//! Something runs short in the broker: the peer is asked to pause, and waits when it does not.

use tanda_engine::Millis;
use tanda_wire::firemq::Op;
use tanda_wire::firemq::frame::{Split, split_frame};
use tanda_wire::firemq::session::Flow;

use super::link::Link;
use super::open::Open;
use super::{FireSession, State};

/// Bytes read ahead of a message that has to wait, to notice that the peer leaves.
pub(super) const READ_AHEAD_BYTES: usize = 256 << 10;

impl FireSession {
    pub(super) fn set_alarm(&mut self, now: Millis, reason: Option<&str>) {
        self.tell(now);
        self.alarm = reason.map(str::to_owned);
        if let State::Open(open) = &mut self.state {
            open.on_alarm(&mut self.link, self.alarm.is_some());
        }
        self.after_input();
    }
}

impl Open {
    /// The peer hears of each change; whether it publishes only shows when it does.
    pub(super) fn on_alarm(&mut self, link: &mut Link, pause: bool) {
        if self.is_paused != pause {
            self.is_paused = pause;
            link.outbound.frame(&Flow { pause });
        }
    }

    /// Whether a message at the front of these bytes has to wait. What comes before a `close` is
    /// taken all the same: there is no later for it, and not much that was read ahead.
    pub(super) fn must_pause(&mut self, input: &[u8], frame_max: u32) -> bool {
        if !self.is_paused || self.is_leaving {
            return false;
        }
        self.is_leaving = holds_close(input, frame_max);
        !self.is_leaving
    }
}

/// Whether the peer closes the connection somewhere in these bytes, which begin with a frame.
fn holds_close(mut input: &[u8], frame_max: u32) -> bool {
    while let Ok(Split::Frame(frame)) = split_frame(input, frame_max) {
        if frame.op == Op::Close {
            return true;
        }
        input = input.get(frame.consumed..).unwrap_or_default();
    }
    false
}
