//! One Fila connection.
//!
//! ```text
//!                 on_bytes                       next_request
//!  socket ──────► frames ─► Open ─► on_*.rs ───► Requests ──────► engine
//!                             │ answers at once
//!                             ▼
//!  socket ◄────── Outbound ◄─ events.rs, replies.rs ◄──────────── engine
//!         output                                    on_event
//! ```
//!
//! The driver owns socket, buffers and clock and does this, in any order:
//! - bytes came, or an event was taken while `input` is not empty: [`FilaSession::on_bytes`];
//!   frames beyond the bounds stay in `input` until answers make room;
//! - after every call: pull [`FilaSession::next_request`] until it is empty, write what
//!   [`FilaSession::output`] holds, and report it with [`FilaSession::on_written`];
//! - read the socket only while [`FilaSession::wants_read`];
//! - call [`FilaSession::on_timer`] at [`FilaSession::next_deadline`];
//! - once [`FilaSession::is_closing`] and the output is written: shut the sending side, read to the
//!   end for a moment (unread bytes would turn the close into a reset that swallows the last
//!   answer), close, [`FilaSession::close`].

mod authority;
mod config;
mod driven;
mod endings;
mod errors;
mod events;
mod handshake;
mod input_room;
mod keepalive;
mod key_replies;
mod link;
mod on_admin;
mod on_cluster;
mod on_keys;
mod on_publish;
mod on_settle;
mod on_subscribe;
mod open;
mod outbound;
mod permissions;
mod queue_settings;
mod replies;
mod requests;
mod slots;
mod throttles;
mod unsent;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tanda_engine::{ConnId, Event, Millis, Request};
use tanda_wire::fila::frame::{FrameError, FrameHeader, LENGTH_BYTES, split_frame};

use authority::Authority;
pub use config::{Authentication, SessionConfig};
use handshake::AwaitHandshake;
use input_room::make_room;
use keepalive::Due;
use link::{Call, Link};
use open::{Next, Open};
use outbound::Outbound;
use requests::Requests;
use slots::Slots;

/// How long the engine may wait to hear that deliveries have left, unless something else is said
/// to it meanwhile: most consumers ack at once, and a report of its own would double the wakeups.
const DRAINED_HOLD_MS: u64 = 20;

/// How long a length over the limit may stand alone before it is answered without its request ID.
const LONE_LENGTH_MS: u64 = 1_000;

/// The largest handshake: its key is at most 65,535 bytes, and fields may be appended one day.
const HANDSHAKE_BYTES_MAX: u32 = 128 << 10;

/// One connection's state. Without I/O, clock and threads.
#[derive(Debug)]
pub struct FilaSession {
    link: Link,
    state: State,
    /// Bytes of the input that were looked at before.
    seen_bytes: usize,
    /// A length over the limit whose header has not come, since when.
    lone_length: Option<(Millis, FrameError)>,
    /// When the engine must hear of drained deliveries at the latest.
    drained_due: Option<Millis>,
}

#[derive(Debug)]
enum State {
    AwaitHandshake(AwaitHandshake),
    Open(Open),
    Closing(Closing),
    Gone,
}

/// No request is taken any more; answers under way still go out.
#[derive(Debug)]
struct Closing {
    /// When to close although answers are missing.
    give_up_at: Millis,
}

impl FilaSession {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(conn: ConnId, config: Arc<SessionConfig>, now: Millis) -> Self {
        let outbound = Outbound::new(config.frame_bytes_max());
        let link = Link {
            conn,
            config,
            now,
            slots: Slots::default(),
            requests: Requests::default(),
            outbound,
            authority: Authority::new(),
            is_connected: false,
        };
        let state = State::AwaitHandshake(AwaitHandshake::new(&link));
        Self {
            link,
            state,
            seen_bytes: 0,
            lone_length: None,
            drained_due: None,
        }
    }

    /// Takes whole frames off the front of `input` while the bounds allow it, and leaves the rest.
    ///
    /// The driver only ever appends to `input` in between. Bodies are not copied; a body in
    /// continuation frames is copied once, when it is joined.
    pub fn on_bytes(&mut self, now: Millis, input: &mut BytesMut) {
        self.tell(now);
        if input.len() > self.seen_bytes
            && let State::Open(open) = &mut self.state
        {
            open.keepalive.on_heard(self.link.now);
        }
        while self.is_receiving() && self.link.has_room() {
            let Some((header, part)) = self.take_frame(input) else {
                break;
            };
            self.on_frame(header, part);
        }
        if !self.is_receiving() {
            input.clear();
        }
        self.seen_bytes = input.len();
        self.after_input();
    }

    /// The next request for the engine. Pull until `None` after every other call.
    ///
    /// The first is `Connect` (after the handshake), the last is `Disconnect` (after
    /// [`FilaSession::close`]); a connection without handshake has neither.
    #[must_use]
    pub fn next_request(&mut self) -> Option<Request> {
        if self
            .drained_due
            .is_some_and(|at| at <= self.link.now || !self.link.requests.is_empty())
        {
            self.report_drained();
        }
        self.link.requests.pop(self.link.now)
    }

    /// The engine's channel had no room for this request.
    ///
    /// What the peer can repeat is answered with `ChannelFull`; the rest is offered again by
    /// `next_request` after [`FilaSession::next_deadline`].
    pub fn on_refused(&mut self, request: Request) {
        let token = request.answer_to().map(|reply| reply.token);
        match token.filter(|token| *token != Slots::NO_ANSWER) {
            None => self.link.requests.keep(self.link.now, request),
            Some(token) => {
                if let Some(entry) = self.link.slots.remove(token) {
                    self.link.channel_full(entry.request_id);
                }
            }
        }
        self.after_input();
    }

    /// Takes one event of the engine and encodes what it means for the peer.
    pub fn on_event(&mut self, now: Millis, event: Event) {
        self.tell(now);
        if !matches!(self.state, State::Gone) {
            events::on_event(&mut self.link, event);
        }
        self.after_output();
        self.after_input();
    }

    /// Bytes for the peer. The driver takes what it writes off the front, then calls
    /// [`FilaSession::on_written`]; ask again after that, there may be more.
    pub fn output(&mut self) -> &mut BytesMut {
        self.link.outbound.writing()
    }

    /// The socket took this many bytes of the output.
    pub fn on_written(&mut self, bytes: usize) {
        self.link.outbound.on_written(bytes);
        self.after_output();
        self.after_input();
    }

    /// Does what is due at `now`.
    pub fn on_timer(&mut self, now: Millis) {
        self.tell(now);
        let now = self.link.now;
        if let Some((since, error)) = self.lone_length
            && since.after_ms(LONE_LENGTH_MS) <= now
        {
            self.refuse_stream(&error);
        }
        let lost = self.link.authority.lost;
        match &mut self.state {
            State::Open(_) if lost.is_some_and(|lost| lost.close_at <= now) => {
                if let Some(lost) = lost {
                    self.link.unauthorized(0, lost.error);
                }
                self.begin_closing();
            }
            State::AwaitHandshake(waiting) if waiting.deadline <= now => {
                let waited_ms = self.link.config.handshake_timeout_ms;
                let problem = format!("no Handshake came within {waited_ms} ms");
                self.link.invalid_frame(0, &problem);
                self.begin_closing();
            }
            State::Open(open) => match open.keepalive.due(now, &self.link.config) {
                Due::Nothing => {}
                Due::Ping(id) => {
                    self.link.outbound.on_idle();
                    self.link
                        .outbound
                        .body(id, &tanda_wire::fila::control::Ping {});
                }
                Due::Dead => self.on_dead(),
            },
            State::AwaitHandshake(_) | State::Closing(_) | State::Gone => {}
        }
        self.after_input();
    }

    /// When [`FilaSession::on_timer`] has something to do. May change with every call.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let state = match &self.state {
            State::AwaitHandshake(waiting) => Some(waiting.deadline),
            State::Open(open) => {
                let keepalive = open.keepalive.deadline(&self.link.config);
                let key = self.link.authority.deadline();
                keepalive.into_iter().chain(key).min()
            }
            State::Closing(closing) => Some(closing.give_up_at).filter(|_| !self.is_closing()),
            State::Gone => None,
        };
        let lone_length = self
            .lone_length
            .map(|(since, _)| since.after_ms(LONE_LENGTH_MS));
        let all = [
            state,
            lone_length,
            self.drained_due,
            self.link.requests.retry_at(),
        ];
        all.into_iter().flatten().min()
    }

    /// Whether the socket should be read: false while too much waits for the engine or the peer.
    /// A closing session reads on, to throw away.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        match self.state {
            State::AwaitHandshake(_) | State::Open(_) => self.link.has_room(),
            State::Closing(_) => true,
            State::Gone => false,
        }
    }

    /// Whether all is said: write the output, then close the socket.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        match &self.state {
            State::AwaitHandshake(_) | State::Open(_) => false,
            State::Closing(closing) => {
                self.link.slots.waiting() == 0 || closing.give_up_at <= self.link.now
            }
            State::Gone => true,
        }
    }

    /// Bytes held for the peer: parts of unfinished bodies, and what is not written yet.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let unfinished = match &self.state {
            State::Open(open) => open.held_bytes(),
            State::AwaitHandshake(_) | State::Closing(_) | State::Gone => 0,
        };
        unfinished + self.link.outbound.held_bytes()
    }

    /// Panics when the state contradicts itself. For tests and the simulator.
    pub fn assert_invariants(&self) {
        self.link.slots.assert_invariants();
        self.link.outbound.assert_invariants();
    }

    fn tell(&mut self, now: Millis) {
        self.link.now = self.link.now.max(now);
        let deadline = self.link.authority.deadline();
        if deadline.is_some_and(|at| at <= self.link.now) {
            self.check_key();
        }
    }

    const fn is_receiving(&self) -> bool {
        matches!(self.state, State::AwaitHandshake(_) | State::Open(_))
    }

    /// Takes one whole frame, or finds that the stream cannot be followed any further.
    fn take_frame(&mut self, input: &mut BytesMut) -> Option<(FrameHeader, Bytes)> {
        let length_max = self.length_max();
        let found = split_frame(input, length_max).map(|frame| frame.map(|frame| frame.consumed));
        let header = FrameHeader::parse(input.get(LENGTH_BYTES..).unwrap_or_default());
        match found {
            Err(FrameError::TooLarge {
                header: None,
                length,
                length_max,
            }) => {
                let error = FrameError::TooLarge {
                    header: None,
                    length,
                    length_max,
                };
                self.lone_length.get_or_insert((self.link.now, error));
                return None;
            }
            Err(error) => {
                self.refuse_stream(&error);
                return None;
            }
            Ok(_) => {}
        }
        if let (State::AwaitHandshake(_), Some(header)) = (&self.state, header)
            && !AwaitHandshake::accepts(&mut self.link, header)
        {
            self.begin_closing();
            return None;
        }
        let (Ok(Some(consumed)), Some(header)) = (found, header) else {
            make_room(input);
            return None;
        };
        let mut frame = input.split_to(consumed);
        frame.advance(tanda_wire::fila::frame::FRAME_OVERHEAD_BYTES);
        Some((header, frame.freeze()))
    }

    fn length_max(&self) -> u32 {
        let max = u32::try_from(self.link.outbound.frame_bytes_max()).unwrap_or(u32::MAX);
        match self.state {
            State::AwaitHandshake(_) => max.min(HANDSHAKE_BYTES_MAX),
            State::Open(_) | State::Closing(_) | State::Gone => max,
        }
    }

    fn on_frame(&mut self, header: FrameHeader, part: Bytes) {
        match &mut self.state {
            State::AwaitHandshake(_) => {
                let FrameHeader {
                    opcode, request_id, ..
                } = header;
                let call = Call {
                    opcode,
                    request_id,
                    body: part,
                };
                match AwaitHandshake::on_handshake(&mut self.link, &call) {
                    Some(open) => self.state = State::Open(open),
                    None => self.begin_closing(),
                }
            }
            State::Open(open) => match open.on_frame(&mut self.link, header, part) {
                Next::Stay => {}
                Next::Close => self.begin_closing(),
            },
            State::Closing(_) | State::Gone => {}
        }
    }

    /// Nothing after a bad length can be trusted.
    fn refuse_stream(&mut self, error: &FrameError) {
        self.link
            .invalid_frame(error.request_id(), &error.to_string());
        self.begin_closing();
    }

    /// Tells the keepalive whether the peer is listened to.
    fn after_input(&mut self) {
        let reading = self.wants_read();
        if let State::Open(open) = &mut self.state {
            open.keepalive.on_reading(self.link.now, reading);
        }
    }

    /// Tells the engine what has left, at once when it is much.
    fn after_output(&mut self) {
        let drained = self.link.outbound.drained();
        if drained == 0 || matches!(self.state, State::Gone) {
            return;
        }
        if drained >= self.link.config.outbound_bytes_max / 4 {
            self.report_drained();
        } else {
            self.drained_due
                .get_or_insert_with(|| self.link.now.after_ms(DRAINED_HOLD_MS));
        }
    }

    fn report_drained(&mut self) {
        self.drained_due = None;
        let bytes = self.link.outbound.take_drained();
        if bytes > 0 {
            self.link.requests.push(Request::Drained {
                conn: self.link.conn,
                bytes,
            });
        }
    }
}
