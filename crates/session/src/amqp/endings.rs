//! The ways in which a connection ends.

use tanda_engine::{AdminRequest, Millis};
use tanda_wire::amqp::{ReplyCode, connection};

use super::fault::Fault;
use super::open::Open;
use super::pending::Waiting;
use super::{AmqpSession, Closing, State};

impl AmqpSession {
    /// The server wants to stop: tells the peer, takes nothing more.
    pub fn begin_shutdown(&mut self, now: Millis) {
        self.tell(now);
        let text = "broker forced connection closure with reason 'shutdown'";
        self.end(&Fault::new(ReplyCode::ConnectionForced, text));
    }

    /// Who logged in is gone, or has to log in again.
    pub fn on_dismissed(&mut self, now: Millis, why: &str) {
        self.tell(now);
        self.end(&Fault::new(ReplyCode::ConnectionForced, why));
    }

    /// The connection must give up what it holds: tells the peer, takes nothing more.
    pub fn on_overload(&mut self, now: Millis) {
        self.tell(now);
        let text = "connections hold too much memory, and this one holds most";
        self.end(&Fault::new(ReplyCode::ResourceError, text));
    }

    /// The peer sends no more: nothing it could still be told matters in this protocol.
    pub fn on_end(&mut self, now: Millis) {
        self.tell(now);
        if self.is_receiving() {
            self.send_rest();
            self.state = State::Closing(Closing::done(self.link.now));
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

    /// Ends an open connection with a `connection.close`; one that is not open just ends.
    fn end(&mut self, fault: &Fault) {
        match &self.state {
            State::Header { .. } | State::Handshake(_) => {
                self.state = State::Closing(Closing::done(self.link.now));
            }
            State::Open(_) => self.fail(fault, true),
            State::Closing(_) | State::Gone => {}
        }
    }

    /// Ends the connection, and says why. `hears`: the peer's answer can be understood.
    pub(super) fn fail(&mut self, fault: &Fault, hears: bool) {
        self.send_rest();
        self.link.close_connection(fault);
        let now = self.link.now;
        self.state = State::Closing(if hears {
            let give_up_at = now.after_ms(self.link.config.close_timeout_ms);
            Closing {
                awaits_close_ok: true,
                owes_close_ok: false,
                give_up_at,
            }
        } else {
            Closing::done(now)
        });
    }

    /// The peer closes the connection. Its own queues have to be gone when it hears of that.
    pub(super) fn on_close(&mut self) {
        self.send_rest();
        if let State::Open(open) = &mut self.state
            && core::mem::take(&mut open.has_own_queues)
        {
            let request = AdminRequest::RemoveOwnQueues;
            self.link.ask(Waiting::Closing, request);
        }
        let give_up_at = self.link.now.after_ms(self.link.config.close_timeout_ms);
        self.state = State::Closing(Closing {
            awaits_close_ok: false,
            owes_close_ok: true,
            give_up_at,
        });
        self.say_close_ok();
    }

    /// Answers `connection.close` when nothing is to be done before.
    pub(super) fn say_close_ok(&mut self) {
        if let State::Closing(closing) = &mut self.state
            && closing.owes_close_ok
            && (!self.link.pending.delays_close() || closing.give_up_at <= self.link.now)
        {
            closing.owes_close_ok = false;
            self.link.outbound.method(0, connection::CloseOk {});
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
            awaits_close_ok: false,
            owes_close_ok: false,
            give_up_at: now,
        }
    }
}

impl Open {
    /// Panics when counters contradict what they count. For tests and the simulator.
    pub(super) fn assert_invariants(&self) {
        let own = self.channels.iter().map(|it| it.partial.own.len());
        assert_eq!(
            own.sum::<usize>(),
            self.partial_bytes,
            "bytes of unfinished messages"
        );
        for channel in self.channels.iter() {
            channel.unacked.assert_invariants();
            let at_tail = channel.partial.tail_at.is_some();
            let owns_tail = self.tail == Some(channel.number);
            assert_eq!(at_tail, owns_tail, "who stands at the end of the batch");
            for (tag, token) in &channel.consumers {
                let consumer = self.consumers.by_token.get(token);
                let found = consumer.map(|it| (it.channel, &it.tag));
                assert_eq!(found, Some((channel.number, tag)), "consumer {token}");
            }
        }
        let segments = self.batch.segments.iter().map(|segment| segment.count);
        assert_eq!(segments.sum::<usize>(), self.batch.items.len(), "messages");
    }
}
