//! Something runs short in the broker: who publishes has to wait, and is told why.

use tanda_engine::Millis;
use tanda_wire::amqp::{Arguments, FrameType, ShortStr, Split, connection, split_frame};

use super::link::Link;
use super::open::Open;
use super::{AmqpSession, State};

/// Bytes read ahead of a message that has to wait, to notice that the peer leaves.
pub(super) const READ_AHEAD_BYTES: usize = 256 << 10;

impl AmqpSession {
    pub(super) fn set_alarm(&mut self, now: Millis, reason: Option<&str>) {
        self.tell(now);
        self.alarm = reason.map(str::to_owned);
        if let State::Open(open) = &mut self.state {
            open.alarm.clone_from(&self.alarm);
            open.on_alarm(&mut self.link);
        }
        self.after_input();
    }
}

impl Open {
    /// Who publishes hears of the alarm once, and once that it is over.
    fn on_alarm(&mut self, link: &mut Link) {
        match &self.alarm {
            Some(reason) if self.is_publisher && !self.said_blocked => {
                self.said_blocked = true;
                if link.capabilities.connection_blocked {
                    let text = format!("low on {reason}");
                    let reason = ShortStr::clip(&text);
                    link.outbound.method(0, connection::Blocked { reason });
                }
            }
            None if self.said_blocked => {
                self.said_blocked = false;
                if link.capabilities.connection_blocked {
                    link.outbound.method(0, connection::Unblocked {});
                }
            }
            Some(_) | None => {}
        }
    }

    /// The peer publishes.
    #[inline]
    pub(super) fn note_publisher(&mut self, link: &mut Link) {
        if !self.is_publisher {
            self.is_publisher = true;
            self.on_alarm(link);
        }
    }
}

/// Whether the peer closes the connection somewhere in these bytes, which begin with a frame.
pub(super) fn holds_close(mut input: &[u8], frame_max: u32) -> bool {
    let close = const { connection::Close::ID.to_bytes() };
    while let Ok(Split::Frame(frame)) = split_frame(input, frame_max) {
        if frame.channel == 0
            && frame.frame_type == FrameType::Method
            && frame.payload.starts_with(&close)
        {
            return true;
        }
        input = input.get(frame.consumed()..).unwrap_or_default();
    }
    false
}
