//! The ways in which a connection ends.

use tanda_engine::Millis;

use super::active::{Active, Stop};
use super::subs::Subs;
use super::{AmaquetSession, Closing, State};

impl AmaquetSession {
    /// The server wants to stop, or the connection has to: takes no more requests, finishes what is
    /// under way, and cancels what waits.
    pub fn begin_shutdown(&mut self, now: Millis) {
        self.tell(now);
        self.finish();
    }

    /// The peer sends no more. It may still read, but mostly it is gone, and what a command that
    /// waits would take for it would be lost.
    pub fn on_end(&mut self, now: Millis) {
        self.tell(now);
        if !matches!(self.state, State::Open) {
            return;
        }
        if self.partial.is_some() {
            return self.cut_off();
        }
        self.finish();
    }

    /// The socket is gone. What was received before still goes to the engine.
    pub fn close(&mut self) {
        self.partial = None;
        self.state = State::Gone;
        if self.link.is_connected {
            self.link.give_all_back();
        }
        self.link.outbound.shut();
        self.link.active = Active::default();
        self.link.subs = Subs::default();
        if core::mem::take(&mut self.link.is_connected) {
            self.link.was_connected = self.link.requests.on_gone();
        }
    }

    /// Takes no more, and closes when all that does not wait is answered.
    pub(super) fn finish(&mut self) {
        if matches!(self.state, State::Open) {
            self.link.stop_all(Stop::Closing);
            self.link.end_subscriptions();
            self.close_after(self.link.config.limits.close_timeout_ms);
        }
    }

    fn close_after(&mut self, patience_ms: u64) {
        self.partial = None;
        let give_up_at = self.link.now.after_ms(patience_ms);
        self.state = State::Closing(Closing { give_up_at });
    }
}
