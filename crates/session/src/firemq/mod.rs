//! One FireMQ connection.
//!
//! ```text
//!                 on_bytes
//!  socket ──────► frames ─► Handshake, Open ─► publish, settle, subscribe, topology
//!                                                 │ one batch per read
//!                                                 ▼
//!                              engine ◄─────── Requests ◄─ next_request
//!                                 │ on_event
//!                                 ▼
//!  socket ◄────── Outbound ◄─ events, published, deliver
//!         output
//! ```
//!
//! A driver treats it as [`crate::Session`] says. Input and output are a byte stream in which each
//! frame stands behind its length; the door of a transport that frames messages itself adds these
//! lengths to what it reads and cuts the output at them.
//!
//! Requests are sent to the engine in the order in which they came, and do not wait for each
//! other's answers: the peer knows those by their `rid`. What the document does not say:
//!
//! - Before `welcome` every error is fatal.
//! - The peer's `close` is answered when everything is answered that came before it.
//! - A second `hello`, and an op that only servers send, are 503 and not fatal.
//! - A `publish` whose `seq` is not the last one and 1 is 503 and fatal: both sides would count
//!   differently from then on. One that cannot be read is nacked with 502 when its `seq` can be
//!   read; else there is an `error`.
//! - `credit` for a subscription that is not there is ignored, since it may cross `cancelled`, and
//!   `unsubscribe` is ok, since nothing comes any more.
//! - A subscription id that is in use, and more subscriptions than allowed: 530.
//! - Names and keys longer than 255 bytes, and a binding of both a queue and an exchange, or of
//!   neither: 406.
//! - A message that is larger than a frame ends an acknowledging subscription with `cancelled` 406
//!   and is a 406 for `get`; others get it. Without acknowledgements it is gone from the queue
//!   already, so it is sent all the same.

mod alarm;
mod config;
mod confirms;
mod deliver;
mod driven;
mod endings;
mod events;
mod fault;
mod handshake;
mod input;
mod link;
mod open;
mod outbound;
mod pending;
mod publish;
mod published;
mod replies;
mod settle;
mod subscribe;
mod topology;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{ConnId, Event, Millis, Request, VhostId};
use tanda_wire::firemq::frame::MAX_FRAME_BEFORE_WELCOME;

use crate::heartbeat::Due;
use crate::login::{Identity, LoginError, Nobody};
use crate::pending::Pending;
use crate::requests::Requests;
pub use config::FireConfig;
use handshake::{Handshake, Origin, Turn};
use link::Link;
use open::Open;
use outbound::Outbound;
use pending::Waiting;

/// One connection's state. Without I/O, clock and threads.
#[derive(Debug)]
pub struct FireSession {
    link: Link,
    state: State,
    origin: Origin,
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
    /// Nothing but the four bytes of the protocol's name may come.
    Preamble {
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
    awaits_close: bool,
    /// The peer has closed, and is not answered yet.
    owes_close: bool,
    /// When to close whatever is missing.
    give_up_at: Millis,
}

/// What the frame at the front of the input waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    /// Nothing: it is not whole.
    None,
    /// The end of an earlier subscription.
    Subscription,
    /// The end of an alarm.
    Alarm,
    /// Room.
    Room,
}

impl FireSession {
    /// A connection that was just accepted. With a `preamble` its stream begins with `FMQ1`, as
    /// over TCP. `certificate` is the name in the certificate that the peer proved in its TLS
    /// handshake.
    #[must_use]
    pub fn new(
        conn: ConnId,
        config: Arc<FireConfig>,
        preamble: bool,
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
            frame_max: MAX_FRAME_BEFORE_WELCOME,
            audit: Vec::new(),
            is_connected: false,
        };
        let state = if preamble {
            State::Preamble { deadline }
        } else {
            State::Handshake(Handshake::new(deadline))
        };
        Self {
            link,
            state,
            origin: Origin {
                certificate,
                vhost: None,
            },
            alarm: None,
            stall: Stall::None,
            seen_bytes: 0,
        }
    }

    /// The virtual host in the URL by which the peer came; an empty one in its `hello` means this.
    #[must_use]
    pub fn with_vhost(mut self, vhost: Option<String>) -> Self {
        self.origin.vhost = vhost;
        self
    }

    /// See [`crate::Session::on_bytes`]. Bodies are copied once, into the request.
    pub fn on_bytes(&mut self, now: Millis, input: &mut BytesMut) {
        self.tell(now);
        if input.len() > self.seen_bytes
            && let State::Open(open) = &mut self.state
        {
            open.heartbeat.on_heard(self.link.now);
        }
        if matches!(self.state, State::Preamble { .. }) {
            self.take_preamble(input);
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
    /// `next_request` after [`FireSession::next_deadline`].
    pub fn on_refused(&mut self, request: Request) {
        self.link.requests.keep(self.link.now, request);
        self.after_input();
    }

    /// See [`crate::Session::on_event`].
    pub fn on_event(&mut self, now: Millis, event: Event) {
        self.tell(now);
        match &mut self.state {
            State::Preamble { .. } | State::Gone => {}
            State::Handshake(handshake) => {
                let turn = handshake.on_event(&mut self.link, event);
                self.on_turn(turn);
            }
            State::Open(open) => {
                if let Err(fault) = open.on_event(&mut self.link, event) {
                    self.fail(&fault);
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
            State::Preamble { deadline } => Some(*deadline),
            State::Handshake(handshake) => Some(handshake.deadline),
            State::Open(_) | State::Closing(_) | State::Gone => None,
        };
        if end_at.is_some_and(|at| at <= now) {
            self.state = State::Closing(Closing::done(now));
        }
        self.say_close();
        if let State::Open(open) = &mut self.state {
            match open.heartbeat.due(now, self.link.outbound.queued()) {
                Due::Nothing => {}
                Due::Send => {
                    self.link.outbound.on_idle();
                    self.link.outbound.ping();
                    open.heartbeat.on_sent(self.link.outbound.queued());
                }
                Due::Dead => self.on_dead(),
            }
        }
        self.after_input();
    }

    /// When [`FireSession::on_timer`] has something to do. May change with every call.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let state = match &self.state {
            State::Preamble { deadline } => Some(*deadline),
            State::Handshake(handshake) => Some(handshake.deadline),
            State::Open(open) => {
                let both = [open.heartbeat.deadline(), open.closes_at];
                both.into_iter().flatten().min()
            }
            State::Closing(closing) => Some(closing.give_up_at).filter(|_| !self.is_closing()),
            State::Gone => None,
        };
        let all = [state, self.link.requests.deadline()];
        all.into_iter().flatten().min()
    }

    /// See [`crate::Session::wants_read`].
    #[must_use]
    pub fn wants_read(&self) -> bool {
        if let State::Open(_) = &self.state
            && self.stall == Stall::Alarm
            && self.seen_bytes < alarm::READ_AHEAD_BYTES
        {
            return true;
        }
        self.wants_input()
    }

    /// See [`crate::Session::wants_input`].
    #[must_use]
    pub fn wants_input(&self) -> bool {
        match &self.state {
            State::Preamble { .. } | State::Closing(_) => true,
            State::Handshake(handshake) => handshake.takes_frames(),
            // What follows a `close` is thrown away.
            State::Open(open) if open.closes_at.is_some() => true,
            State::Open(open) => {
                self.link.has_room()
                    && match self.stall {
                        Stall::None | Stall::Room => true,
                        Stall::Subscription => !open.subs.are_ending(),
                        Stall::Alarm => self.alarm.is_none(),
                    }
            }
            State::Gone => false,
        }
    }

    /// Whether all is said: write the output, then close the socket.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        match &self.state {
            State::Preamble { .. } | State::Handshake(_) | State::Open(_) => false,
            State::Closing(closing) => {
                closing.give_up_at <= self.link.now || !closing.awaits_close && !closing.owes_close
            }
            State::Gone => true,
        }
    }

    /// See [`crate::Session::held_bytes`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let held = match &self.state {
            State::Open(open) => open.held_bytes(),
            State::Preamble { .. } | State::Handshake(_) | State::Closing(_) | State::Gone => 0,
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

    fn on_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Goes => {}
            Turn::Opened(heartbeat_ms) => {
                let mut open = Open::new(&self.link, heartbeat_ms);
                open.on_alarm(&mut self.link, self.alarm.is_some());
                self.state = State::Open(open);
            }
            Turn::GivenUp => self.on_close(),
            Turn::Failed(fault) => self.fail(&fault),
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
            self.say_close();
        }
    }

    /// What every call ends with: closes when all is answered that came before the peer's `close`,
    /// and tells the heartbeats what was said and whether the peer is listened to.
    fn after_input(&mut self) {
        self.close_when_answered();
        let reading = self.wants_read();
        if let State::Open(open) = &mut self.state {
            let now = self.link.now;
            open.heartbeat.on_said(now, self.link.outbound.queued());
            open.heartbeat.on_reading(now, reading);
        }
    }

    fn answer_login(&mut self, now: Millis, answer: Result<Arc<dyn Identity>, LoginError>) {
        self.tell(now);
        if let State::Handshake(handshake) = &mut self.state {
            let turn = handshake.on_login(&mut self.link, answer);
            self.on_turn(turn);
        }
        self.after_input();
    }

    /// Permissions have changed; what was found out by the old ones is asked again.
    fn set_identity(&mut self, now: Millis, identity: Arc<dyn Identity>) {
        self.tell(now);
        self.link.identity = identity;
        if let State::Open(open) = &mut self.state {
            open.written = None;
        }
    }
}
