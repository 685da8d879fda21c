//! The ways in which a connection ends.

use tanda_engine::Millis;

use super::{Closing, FilaSession, State};

impl FilaSession {
    /// The server wants to stop: tells the peer, takes no more requests, finishes what is under
    /// way. [`FilaSession::is_closing`] says when that is done.
    pub fn begin_shutdown(&mut self, now: Millis) {
        self.tell(now);
        match &mut self.state {
            State::AwaitHandshake(_) => self.begin_closing(),
            State::Open(open) => {
                open.on_shutdown(&mut self.link);
                self.begin_closing();
            }
            State::Closing(_) | State::Gone => {}
        }
    }

    /// The connection must give up what it holds: tells the peer, takes no more requests, finishes
    /// what is under way. No request of the peer is to blame, so the answer names none.
    pub fn on_overload(&mut self, now: Millis) {
        self.tell(now);
        if self.is_receiving() {
            self.link.channel_full(0);
            self.begin_closing();
        }
    }

    /// The peer sends no more, but may still read: takes no more requests, finishes what is under
    /// way, as after a `Disconnect`. Bytes of an unfinished frame are lost with their request.
    pub fn on_end(&mut self, now: Millis) {
        self.tell(now);
        if self.is_receiving() {
            self.begin_closing();
        }
    }

    /// The socket is gone. What was received before still goes to the engine.
    pub fn close(&mut self) {
        let was_connected = match core::mem::replace(&mut self.state, State::Gone) {
            State::AwaitHandshake(_) | State::Gone => false,
            State::Open(_) | State::Closing(_) => self.link.is_connected,
        };
        self.drained_due = None;
        self.lone_length = None;
        self.link.outbound.shut();
        if was_connected {
            let conn = self.link.conn;
            self.link.requests.on_gone(conn);
        }
    }

    pub(super) fn begin_closing(&mut self) {
        self.link.cancel_all();
        self.lone_length = None;
        let give_up_at = self.link.now.after_ms(self.link.config.pong_timeout_ms);
        self.state = State::Closing(Closing { give_up_at });
    }

    /// Nobody is there to read what waits.
    pub(super) fn on_dead(&mut self) {
        self.link.cancel_all();
        self.link.outbound.shut();
        self.state = State::Closing(Closing {
            give_up_at: self.link.now,
        });
    }
}
