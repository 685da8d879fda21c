//! The ways in which a connection ends.

use tanda_engine::{AdminRequest, Millis};
use tanda_wire::firemq::ReplyCode;

use super::fault::Fault;
use super::pending::Waiting;
use super::{Closing, FireSession, State};

impl FireSession {
    /// The server wants to stop: tells the peer, takes nothing more.
    pub fn begin_shutdown(&mut self, now: Millis) {
        self.force_close(now, "the server shuts down");
    }

    /// Who logged in is gone, or has to log in again.
    pub fn on_dismissed(&mut self, now: Millis, why: &str) {
        self.force_close(now, why);
    }

    fn force_close(&mut self, now: Millis, why: &str) {
        self.tell(now);
        match &self.state {
            State::Preamble { .. } | State::Handshake(_) => {
                self.state = State::Closing(Closing::done(self.link.now));
            }
            State::Open(open) if open.closes_at.is_some() => self.finish_close(),
            State::Open(_) => {
                self.send_rest();
                self.link.outbound.close(ReplyCode::ConnectionForced, why);
                self.await_close(true);
            }
            State::Closing(_) | State::Gone => {}
        }
        self.after_input();
    }

    /// The connection must give up what it holds: tells the peer, takes nothing more.
    pub fn on_overload(&mut self, now: Millis) {
        self.tell(now);
        match &self.state {
            State::Preamble { .. } | State::Handshake(_) => {
                self.state = State::Closing(Closing::done(self.link.now));
            }
            State::Open(_) => {
                let text = "connections hold too much memory, and this one holds most";
                self.fail(&Fault::new(ReplyCode::ResourceError, text));
            }
            State::Closing(_) | State::Gone => {}
        }
    }

    /// The peer sends no more: nothing it could still be told matters in this protocol.
    pub fn on_end(&mut self, now: Millis) {
        self.tell(now);
        match &self.state {
            // It hears the answer to its `close`.
            State::Open(open) if open.closes_at.is_some() => {}
            State::Preamble { .. } | State::Handshake(_) | State::Open(_) => {
                self.send_rest();
                self.state = State::Closing(Closing::done(self.link.now));
            }
            State::Closing(closing) if closing.awaits_close => {
                self.state = State::Closing(Closing::done(self.link.now));
            }
            State::Closing(_) | State::Gone => {}
        }
    }

    /// The socket is gone. What was received before still goes to the engine.
    pub fn close(&mut self) {
        self.send_rest();
        self.state = State::Gone;
        self.link.outbound.shut();
        self.link.login = None;
        if core::mem::take(&mut self.link.is_connected) {
            self.link.requests.on_gone();
        }
    }

    /// Messages and settlements that were complete count.
    fn send_rest(&mut self) {
        if let State::Open(open) = &mut self.state {
            open.flush(&mut self.link);
        }
    }

    /// Ends the connection, and says why.
    pub(super) fn fail(&mut self, fault: &Fault) {
        self.send_rest();
        let fault = fault.clone().fatal();
        self.link.outbound.error(&fault);
        self.state = State::Closing(Closing::done(self.link.now));
    }

    /// The peer closes the connection. Nothing more is taken, and what came before is answered.
    pub(super) fn on_close(&mut self) {
        self.send_rest();
        let closes_at = self.link.now.after_ms(self.link.config.close_timeout_ms);
        match &mut self.state {
            State::Open(open) => open.closes_at = Some(closes_at),
            State::Preamble { .. } | State::Handshake(_) | State::Closing(_) | State::Gone => {
                self.finish_close();
            }
        }
    }

    /// Goes on with the peer's `close` when there is nothing left to answer.
    pub(super) fn close_when_answered(&mut self) {
        let State::Open(open) = &self.state else {
            return;
        };
        let is_answered = self.link.pending.len() == 0 && !open.subs.are_starting();
        let now = self.link.now;
        if open.closes_at.is_some_and(|at| is_answered || at <= now) {
            self.finish_close();
        }
    }

    /// The peer's own queues have to be gone when it hears that its connection is closed.
    fn finish_close(&mut self) {
        if let State::Open(open) = &mut self.state
            && core::mem::take(&mut open.has_own_queues)
        {
            let request = AdminRequest::RemoveOwnQueues;
            self.link.ask(Waiting::Closing, request);
        }
        self.await_close(false);
        self.say_close();
    }

    /// Nothing is taken any more but the peer's `close`, or not even that.
    fn await_close(&mut self, of_peer: bool) {
        let give_up_at = self.link.now.after_ms(self.link.config.close_timeout_ms);
        self.state = State::Closing(Closing {
            awaits_close: of_peer,
            owes_close: !of_peer,
            give_up_at,
        });
    }

    /// Answers the peer's `close` when nothing is to be done before.
    pub(super) fn say_close(&mut self) {
        if let State::Closing(closing) = &mut self.state
            && closing.owes_close
            && (!self.link.pending.delays_close() || closing.give_up_at <= self.link.now)
        {
            closing.owes_close = false;
            self.link.outbound.close(ReplyCode::Success, "");
        }
    }

    /// Nobody is there to read what waits.
    pub(super) fn on_dead(&mut self) {
        self.send_rest();
        self.link.outbound.shut();
        self.state = State::Closing(Closing::done(self.link.now));
    }
}

impl Closing {
    /// Nothing is waited for.
    pub(super) const fn done(now: Millis) -> Self {
        Self {
            awaits_close: false,
            owes_close: false,
            give_up_at: now,
        }
    }
}
