//! A session of AMQP, FireMQ or Amaquet as its fuzz target drives it: the time, the socket, the
//! engine, and what must hold between them whatever is spoken.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tanda_engine::{ConnId, Event, Millis, Request};
use tanda_session::Session;
use tanda_session::login::{Identity, LoginError, Unrestricted};

use crate::answers;
use crate::script::Script;

pub(crate) const CONN: ConnId = ConnId(9);
pub(crate) const START: Millis = Millis(1_000_000);
/// Consumers and requests that are kept to be spoken of.
const TOKENS_MAX: usize = 64;
/// What a session may hold beyond what is bounded by its configuration: a read and its answers.
const HELD_BYTES_MAX: usize = 1 << 20;

/// What is known of the protocol.
pub(crate) trait Dialect {
    type Session: Session;

    /// The session wrote this.
    fn on_output(&mut self, bytes: &[u8]);

    /// The session was closed: a part of a frame may have left.
    fn on_closed(&mut self);

    /// Makes an event one that the engine may send.
    fn make_sound(_event: &mut Event) {}

    /// An answer to a request that has one.
    fn answer(script: &mut Script<'_>, request: &Request) -> Option<Event> {
        answers::answer(script, request)
    }

    /// Any event for a token.
    fn any(script: &mut Script<'_>, token: u32) -> Event {
        answers::any(script, token)
    }
}

/// One session and what is known of it outside.
pub(crate) struct Driven<D: Dialect> {
    pub(crate) session: D::Session,
    pub(crate) dialect: D,
    input: BytesMut,
    pub(crate) now: Millis,
    /// Requests that the engine has and has not answered.
    owed: Vec<Request>,
    /// Tokens of consumers, live or not.
    consumers: Vec<u32>,
    refusals: u8,
    heard: Heard,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Connect,
    Disconnect,
}

impl<D: Dialect> Driven<D> {
    pub(crate) fn of(session: D::Session, dialect: D) -> Self {
        Self {
            session,
            dialect,
            input: BytesMut::new(),
            now: START,
            owed: Vec::new(),
            consumers: Vec::new(),
            refusals: 0,
            heard: Heard::Nothing,
            is_closed: false,
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if self.session.wants_read() {
            self.input.extend_from_slice(bytes);
        }
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(crate) fn event(&mut self, mut event: Event) {
        if let Event::Subscribed { token, .. } | Event::Watching { token, .. } = &event
            && self.consumers.len() < TOKENS_MAX
        {
            self.consumers.push(*token);
        }
        D::make_sound(&mut event);
        self.session.on_event(self.now, event);
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(crate) fn answer(&mut self, script: &mut Script<'_>) {
        if self.owed.is_empty() {
            return;
        }
        let at = script.pick(self.owed.len());
        let request = self.owed.remove(at);
        if let Some(event) = D::answer(script, &request) {
            self.event(event);
        }
    }

    pub(crate) fn any_event(&mut self, script: &mut Script<'_>) {
        let token = self.token(script);
        let event = D::any(script, token);
        self.event(event);
    }

    pub(crate) fn deliver(&mut self, script: &mut Script<'_>) {
        let token = self.token(script);
        let count = 1 + script.pick(5);
        let batch = answers::deliveries(script, count);
        self.event(Event::Delivery { token, batch });
    }

    pub(crate) fn token(&self, script: &mut Script<'_>) -> u32 {
        let known = self.consumers.get(script.pick(self.consumers.len()));
        match (script.byte(), known) {
            (0..=200, Some(token)) => *token,
            _ => script.u32(),
        }
    }

    pub(crate) fn read(&mut self, bytes: usize) {
        let output = self.session.output();
        let taken = output.len().min(bytes);
        self.dialect
            .on_output(output.get(..taken).unwrap_or_default());
        output.advance(taken);
        self.session.on_written(taken);
    }

    pub(crate) fn wait(&mut self, tenths: u16) {
        self.now = self.now.after_ms(u64::from(tenths) * 100);
        self.session.on_timer(self.now);
    }

    pub(crate) const fn refuse(&mut self, count: u8) {
        self.refusals = count % 8;
    }

    pub(crate) fn alarm(&mut self, which: u8) {
        let reason = (which & 1 == 0).then_some("memory");
        self.session.on_alarm(self.now, reason);
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(crate) fn log_in(&mut self, which: u8) {
        let answer: Result<Arc<dyn Identity>, LoginError> = if which == 0 {
            Err(LoginError::Refused)
        } else {
            Ok(Arc::new(Unrestricted::new("guest")))
        };
        if self.session.take_login().is_some() || which > 250 {
            self.session.on_login(self.now, answer);
        }
    }

    pub(crate) fn end(&mut self, which: u8) {
        match which % 3 {
            0 => self.session.begin_shutdown(self.now),
            1 => self.session.on_overload(self.now),
            _ => self.session.on_end(self.now),
        }
    }

    pub(crate) fn close(&mut self) {
        self.session.close();
        self.is_closed = true;
        self.dialect.on_closed();
    }

    /// What must hold after every step.
    pub(crate) fn check(&mut self) {
        self.session.assert_invariants();
        while let Some(request) = self.session.next_request() {
            if self.refusals > 0 {
                self.refusals -= 1;
                self.session.on_refused(request);
                continue;
            }
            self.hear(request);
        }
        let held = self.session.held_bytes();
        assert!(held < HELD_BYTES_MAX, "{held} bytes held");
        assert!(self.input.len() < HELD_BYTES_MAX, "input is read ahead");
    }

    fn hear(&mut self, request: Request) {
        let before = self.heard;
        if matches!(request, Request::Connect { conn: CONN, .. }) {
            assert_eq!(before, Heard::Nothing, "{request:?}");
            self.heard = Heard::Connect;
        } else {
            let gives_back = matches!(
                request,
                Request::KeysUndelivered { .. } | Request::GotUndelivered { .. }
            );
            let after = gives_back && before == Heard::Disconnect;
            assert!(before == Heard::Connect || after, "{request:?}");
        }
        if matches!(request, Request::Disconnect { conn: CONN }) {
            self.heard = Heard::Disconnect;
        }
        if self.owed.len() < TOKENS_MAX {
            self.owed.push(request);
        }
    }

    /// What must hold in the end.
    pub(crate) fn finish(&mut self) {
        if !self.is_closed {
            // What was read may make room for more.
            for _ in 0..TOKENS_MAX {
                self.read(usize::MAX);
            }
            assert!(self.session.output().is_empty(), "all is written");
        }
        self.refusals = 0;
        self.close();
        self.now = self.now.after_ms(1_000);
        self.session.on_timer(self.now);
        self.check();
        assert_ne!(self.heard, Heard::Connect, "a Disconnect is owed");
        assert!(!self.session.wants_read());
    }
}
