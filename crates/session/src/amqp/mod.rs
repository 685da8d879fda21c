//! One AMQP 0-9-1 connection.
//!
//! ```text
//!                 on_bytes
//!  socket ──────► frames ─► Handshake, Open ─► publish, settle, consume, topology, tx
//!                                                 │ one batch per read
//!                                                 ▼
//!                              engine ◄─────── Requests ◄─ next_request
//!                                 │ on_event
//!                                 ▼
//!  socket ◄────── Outbound ◄─ events, deliver
//!         output
//! ```
//!
//! RabbitMQ's behaviour is followed where the specification leaves a choice or RabbitMQ differs
//! from it. A driver treats it as [`crate::Session`] says.
//!
//! Frames of a channel whose method the engine has not answered stay in the input, and so does
//! everything behind them: a channel does one thing after the other, as clients expect.

mod alarm;
mod channel;
mod checks;
mod config;
mod confirms;
mod consume;
mod deliver;
mod driven;
mod endings;
mod events;
mod fault;
mod handshake;
mod input;
mod link;
mod methods;
mod names;
mod open;
mod outbound;
mod pending;
mod publish;
mod published;
mod renewal;
mod repeat;
mod replies;
mod sasl;
mod settle;
mod topology;
mod tx;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{ConnId, Event, Millis, Request, VhostId};
use tanda_wire::amqp::frame::FRAME_MIN_SIZE;

use crate::heartbeat::Due;
use crate::login::{Identity, Login, LoginError, Nobody};
use crate::requests::Requests;
pub use config::AmqpConfig;
use handshake::{Handshake, Turn};
use link::{Capabilities, Link};
use open::Open;
use outbound::Outbound;
use pending::{Pending, Waiting};

/// No frame of a handshake is larger. The specification says 4096; some clients have much to say
/// of themselves.
const HANDSHAKE_FRAME_MAX: u32 = 4 * FRAME_MIN_SIZE;

/// One connection's state. Without I/O, clock and threads.
#[derive(Debug)]
pub struct AmqpSession {
    link: Link,
    state: State,
    /// The name in the peer's certificate.
    certificate: Option<String>,
    alarm: Option<String>,
    /// Why whole frames may be left in the input.
    stall: Stall,
    /// Bytes of the input that were looked at before.
    seen_bytes: usize,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most connections are open for all of their lives"
)]
enum State {
    /// Nothing but a protocol header may come.
    Header {
        deadline: Millis,
    },
    Handshake(Handshake),
    Open(Open),
    Closing(Closing),
    Gone,
}

/// No request is taken any more.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// The peer was told, and may answer.
    awaits_close_ok: bool,
    /// The peer has closed, and is not answered yet.
    owes_close_ok: bool,
    /// When to close whatever is missing.
    give_up_at: Millis,
}

/// What the frame at the front of the input waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    /// Nothing: it is not whole.
    None,
    /// The answer to a method of this channel.
    Channel(u16),
    /// The end of an alarm.
    Alarm,
    /// Room.
    Room,
}

impl AmqpSession {
    /// A connection that was just accepted. `certificate` is the name in the certificate that the
    /// peer proved in its TLS handshake.
    #[must_use]
    pub fn new(
        conn: ConnId,
        config: Arc<AmqpConfig>,
        certificate: Option<String>,
        now: Millis,
    ) -> Self {
        let deadline = now.after_ms(config.handshake_timeout_ms);
        let certificate = certificate.filter(|_| config.external);
        let link = Link {
            conn,
            config,
            now,
            pending: Pending::default(),
            requests: Requests::new(conn),
            outbound: Outbound::default(),
            identity: Arc::new(Nobody),
            login: None,
            vhost: VhostId::DEFAULT,
            vhost_name: String::new(),
            capabilities: Capabilities::default(),
            frame_max: HANDSHAKE_FRAME_MAX,
            channel_max: 0,
            audit: Vec::new(),
            is_connected: false,
            is_renewing: false,
            names_made: 0,
        };
        Self {
            link,
            state: State::Header { deadline },
            certificate,
            alarm: None,
            stall: Stall::None,
            seen_bytes: 0,
        }
    }

    /// See [`crate::Session::on_bytes`]. Bodies are copied once, into the request.
    pub fn on_bytes(&mut self, now: Millis, input: &mut BytesMut) {
        self.tell(now);
        if input.len() > self.seen_bytes
            && let State::Open(open) = &mut self.state
        {
            open.heartbeat.on_heard(self.link.now);
        }
        if matches!(self.state, State::Header { .. }) {
            self.take_header(input);
        }
        self.take_frames(input);
        if matches!(self.state, State::Gone) {
            input.clear();
        }
        self.seen_bytes = input.len();
        self.after_input();
    }

    /// See [`crate::Session::next_request`].
    #[must_use]
    pub fn next_request(&mut self) -> Option<Request> {
        self.link.requests.pop(self.link.now)
    }

    /// See [`crate::Session::on_refused`]. Nothing is given up: it is offered again by
    /// `next_request` after [`AmqpSession::next_deadline`].
    pub fn on_refused(&mut self, request: Request) {
        self.link.requests.keep(self.link.now, request);
        self.after_input();
    }

    /// See [`crate::Session::on_event`].
    pub fn on_event(&mut self, now: Millis, event: Event) {
        self.tell(now);
        match &mut self.state {
            State::Header { .. } | State::Gone => {}
            State::Handshake(handshake) => {
                let turn = handshake.on_event(&mut self.link, event);
                self.on_turn(turn);
            }
            State::Open(open) => {
                if let Err(fault) = open.on_event(&mut self.link, event) {
                    self.fail(&fault, true);
                }
            }
            State::Closing(_) => self.on_last_event(&event),
        }
        self.link.report_drained();
        self.after_input();
    }

    /// See [`crate::Session::output`].
    pub fn output(&mut self) -> &mut BytesMut {
        self.link.outbound.writing()
    }

    /// The socket took this many bytes of the output.
    pub fn on_written(&mut self, bytes: usize) {
        self.link.outbound.on_written(bytes);
        self.link.report_drained();
        self.after_input();
    }

    /// Does what is due at `now`.
    pub fn on_timer(&mut self, now: Millis) {
        self.tell(now);
        let now = self.link.now;
        let end_at = match &self.state {
            State::Header { deadline } => Some(*deadline),
            State::Handshake(handshake) => Some(handshake.deadline),
            State::Open(_) | State::Closing(_) | State::Gone => None,
        };
        if end_at.is_some_and(|at| at <= now) {
            self.state = State::Closing(Closing::done(now));
        }
        self.say_close_ok();
        if let State::Open(open) = &mut self.state {
            match open.heartbeat.due(now, self.link.outbound.queued()) {
                Due::Nothing => {}
                Due::Send => {
                    self.link.outbound.on_idle();
                    self.link.outbound.heartbeat();
                    open.heartbeat.on_sent(self.link.outbound.queued());
                }
                Due::Dead => self.on_dead(),
            }
        }
        self.after_input();
    }

    /// When [`AmqpSession::on_timer`] has something to do. May change with every call.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let state = match &self.state {
            State::Header { deadline } => Some(*deadline),
            State::Handshake(handshake) => Some(handshake.deadline),
            State::Open(open) => open.heartbeat.deadline(),
            State::Closing(closing) => Some(closing.give_up_at).filter(|_| !self.is_closing()),
            State::Gone => None,
        };
        let all = [state, self.link.requests.deadline()];
        all.into_iter().flatten().min()
    }

    /// See [`crate::Session::wants_read`].
    #[must_use]
    pub fn wants_read(&self) -> bool {
        match &self.state {
            State::Header { .. } => true,
            // One frame at most is sent ahead of an answer, and then it waits in the socket.
            State::Handshake(handshake) => handshake.takes_frames(),
            State::Open(_) => {
                self.takes_frames()
                    || self.stall == Stall::Alarm && self.seen_bytes < alarm::READ_AHEAD_BYTES
            }
            State::Closing(_) => true,
            State::Gone => false,
        }
    }

    /// See [`crate::Session::wants_input`].
    #[must_use]
    pub fn wants_input(&self) -> bool {
        match &self.state {
            State::Header { .. } | State::Closing(_) => true,
            State::Handshake(handshake) => handshake.takes_frames(),
            State::Open(_) => self.takes_frames(),
            State::Gone => false,
        }
    }

    /// Whether all is said: write the output, then close the socket.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        match &self.state {
            State::Header { .. } | State::Handshake(_) | State::Open(_) => false,
            State::Closing(closing) => {
                closing.give_up_at <= self.link.now
                    || !closing.awaits_close_ok && !closing.owes_close_ok
            }
            State::Gone => true,
        }
    }

    /// See [`crate::Session::held_bytes`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let held = match &self.state {
            State::Open(open) => open.held_bytes(),
            State::Header { .. } | State::Handshake(_) | State::Closing(_) | State::Gone => 0,
        };
        held + self.link.outbound.held_bytes()
    }

    /// Panics when the state contradicts itself. For tests and the simulator.
    pub fn assert_invariants(&self) {
        self.link.outbound.assert_invariants();
        if let State::Open(open) = &self.state {
            open.assert_invariants();
        }
    }

    fn tell(&mut self, now: Millis) {
        self.link.now = self.link.now.max(now);
    }

    const fn is_receiving(&self) -> bool {
        match self.state {
            State::Header { .. } | State::Handshake(_) | State::Open(_) => true,
            State::Closing(_) | State::Gone => false,
        }
    }

    /// Whether the frame at the front of the input need not wait any longer.
    fn takes_frames(&self) -> bool {
        let State::Open(open) = &self.state else {
            return false;
        };
        self.link.has_room()
            && match self.stall {
                Stall::None | Stall::Room => true,
                Stall::Channel(number) => !open.is_busy(number),
                Stall::Alarm => self.alarm.is_none(),
            }
    }

    fn on_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Goes => {}
            Turn::Opened(heartbeat_ms) => {
                let open = Open::new(&self.link, heartbeat_ms, self.alarm.clone());
                self.state = State::Open(open);
            }
            Turn::GivenUp | Turn::Silent => {
                self.state = State::Closing(Closing::done(self.link.now));
            }
            Turn::Failed(fault) => self.fail(&fault, true),
        }
    }

    /// An event for a connection that is ending.
    fn on_last_event(&mut self, event: &Event) {
        let token = match event {
            Event::Admin { token, .. } | Event::StorageFailed { token } => *token,
            Event::Delivery { batch, .. } => {
                self.link.outbound.count_drained(batch.budget_bytes());
                return;
            }
            Event::Published { .. }
            | Event::Settled { .. }
            | Event::Subscribed { .. }
            | Event::SubscribeFailed { .. }
            | Event::SubscriptionEnded { .. }
            | Event::Committed { .. }
            | Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. }
            | Event::Got { .. } => return,
        };
        if let Some(Waiting::Closing) = self.link.pending.remove(token) {
            self.say_close_ok();
        }
    }

    /// Tells the heartbeats whether the peer is listened to.
    fn after_input(&mut self) {
        let reading = self.wants_read();
        if let State::Open(open) = &mut self.state {
            open.heartbeat.on_reading(self.link.now, reading);
        }
    }

    fn answer_login(&mut self, now: Millis, answer: Result<Arc<dyn Identity>, LoginError>) {
        self.tell(now);
        match &mut self.state {
            State::Handshake(handshake) => {
                let turn = handshake.on_login(&mut self.link, answer);
                self.on_turn(turn);
            }
            State::Open(_) => self.on_new_secret(answer),
            State::Header { .. } | State::Closing(_) | State::Gone => {}
        }
        self.after_input();
    }

    /// Permissions have changed; what was found out by the old ones is asked again.
    fn set_identity(&mut self, now: Millis, identity: Arc<dyn Identity>) {
        self.tell(now);
        self.link.identity = identity;
        if let State::Open(open) = &mut self.state {
            open.repeat.forget();
            for number in open.channels.numbers() {
                if let Some(channel) = open.channels.find(number) {
                    channel.written = None;
                }
            }
        }
    }

    fn take_question(&mut self) -> Option<Login> {
        self.link.login.take()
    }
}
