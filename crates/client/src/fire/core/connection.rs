//! The state of one connection.
//!
//! Owns: what each request and publish waits for, and which frames are allowed when.
//! Refuses to know: who made a request.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, BytesMut};
use tanda_wire::firemq::consume::{Ack, Credit, Nack};
use tanda_wire::firemq::frame::{
    FrameTooLarge, Framing, MAX_FRAME_BEFORE_WELCOME, PREAMBLE, Split, split_frame, write_frame,
};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::session::{Auth, Close, Hello, MECHANISM_PLAIN, Ping};
use tanda_wire::firemq::{Header, PROTOCOL_VERSION, RawMap, ReplyCode, capability};

use super::config::ConnectionConfig;
use super::event::{Event, ProtocolError};
use super::heartbeat::{Due, Heartbeat};
use super::outstanding::Outstanding;
use super::request::{PublishWriter, RequestWriter};
use crate::fire::error::Refusal;
use crate::fire::fields::Fields;
use crate::outbox::Outbox;

mod inbound;

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Handshaking,
    Open,
    /// `close` was sent: what is under way still comes, nothing more is asked.
    Closing,
    /// The peer's `close` came, ours is in the output. Nothing comes any more.
    Closed(Refusal),
}

/// What a connection owes when it ends, each in the order it was made.
#[derive(Debug)]
pub struct Unanswered<C> {
    /// Requests without a reply.
    pub requests: Vec<C>,
    /// Publishes without a confirm.
    pub publishes: Vec<C>,
}

/// One connection, from its handshake on. `C` is what a request or a publish is made with, and its
/// outcome comes back with.
///
/// After [`receive`](Self::receive) pull [`next_event`](Self::next_event) until `None`. After any
/// call there may be [`output`](Self::output) to send.
#[derive(Debug)]
pub struct Connection<C> {
    phase: Phase,
    heartbeat: Heartbeat,
    requests: BTreeMap<u64, C>,
    newest_rid: u64,
    publishes: Outstanding<C>,
    is_paused: bool,
    /// The largest frame the server takes.
    len_max: u32,
    /// The largest frame that is taken now, and after `welcome`.
    frame_bytes_max: (u32, u32),
    output: Outbox,
    events: VecDeque<Event<C>>,
}

impl<C> Connection<C> {
    /// A connection whose `hello` is ready to be sent.
    ///
    /// # Errors
    /// When credentials and names are too long for the protocol.
    pub fn new(config: &ConnectionConfig, now_ms: u64) -> Result<Self, FrameTooLarge> {
        let mut output = Outbox::default();
        output.buffer().extend_from_slice(&PREAMBLE);
        let about = Fields::new()
            .set("name", config.name.as_str())
            .set("lang", "rust")
            .set("version", env!("CARGO_PKG_VERSION"))
            .encode();
        let hello = Hello {
            ver: PROTOCOL_VERSION,
            vhost: &config.vhost,
            auth: Auth {
                mech: MECHANISM_PLAIN,
                user: &config.user,
                pass: &config.password,
            },
            heartbeat: config.heartbeat_s.into(),
            client: RawMap::from_checked(&about),
            caps: capability::VERSION_1.to_vec(),
        };
        let len_max = MAX_FRAME_BEFORE_WELCOME;
        write_frame(output.buffer(), Framing::Stream, &hello, len_max)?;
        Ok(Self {
            phase: Phase::Handshaking,
            heartbeat: Heartbeat::new(now_ms),
            requests: BTreeMap::new(),
            newest_rid: 0,
            publishes: Outstanding::new(),
            is_paused: false,
            len_max,
            frame_bytes_max: (len_max, config.frame_bytes_max),
            output,
            events: VecDeque::new(),
        })
    }

    /// Whether requests may be made.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the server asked publishers to wait. A message that is published nevertheless makes
    /// the server read nothing of this connection.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether every request is answered and every publish confirmed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.publishes.is_empty()
    }

    /// Whether both sides have closed and all of the output is sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Closed(_)) && self.output().is_empty()
    }

    /// Makes a request. `write` writes it, looking at its subject, which becomes the context that
    /// comes back with the reply. Call it only while [`is_open`](Self::is_open).
    ///
    /// # Errors
    /// When it is larger than the server takes; nothing is sent then, and the subject comes back.
    pub fn request<T>(
        &mut self,
        subject: T,
        context: impl FnOnce(T) -> C,
        write: impl FnOnce(&T, RequestWriter<'_>) -> Result<(), FrameTooLarge>,
    ) -> Result<(), (T, FrameTooLarge)> {
        debug_assert!(self.is_open(), "requests wait for the handshake");
        let rid = self.newest_rid + 1;
        let writer = RequestWriter {
            rid,
            out: self.output.buffer(),
            len_max: self.len_max,
        };
        match write(&subject, writer) {
            Ok(()) => {
                self.newest_rid = rid;
                self.requests.insert(rid, context(subject));
                Ok(())
            }
            Err(error) => Err((subject, error)),
        }
    }

    /// Publishes a message and asks for its confirm. `write` writes it, looking at its subject,
    /// which becomes the context that comes back with the confirm. Call it only while
    /// [`is_open`](Self::is_open).
    ///
    /// # Errors
    /// When it is larger than the server takes; nothing is sent then, and the subject comes back.
    pub fn publish<T>(
        &mut self,
        subject: T,
        context: impl FnOnce(T) -> C,
        write: impl FnOnce(&T, PublishWriter<'_>) -> Result<(), FrameTooLarge>,
    ) -> Result<(), (T, FrameTooLarge)> {
        let seq = self.publishes.next_seq();
        match write(&subject, self.message(seq)) {
            Ok(()) => {
                self.publishes.push(context(subject));
                Ok(())
            }
            Err(error) => Err((subject, error)),
        }
    }

    /// Publishes a message without asking what becomes of it. Call it only while
    /// [`is_open`](Self::is_open).
    ///
    /// # Errors
    /// When it is larger than the server takes; nothing is sent then.
    pub fn post(&mut self, publish: &Publish<'_>, body: &[u8]) -> Result<(), FrameTooLarge> {
        self.message(0).write(publish, body)
    }

    /// Lets a subscription receive so many messages more.
    pub fn credit(&mut self, sub: u64, credit: u32) {
        let credit = u64::from(credit);
        self.write_small(&Credit { sub, credit });
    }

    /// Acknowledges a delivery, or all up to it.
    pub fn ack(&mut self, ack: &Ack) {
        self.write_small(ack);
    }

    /// Gives a delivery back, or all up to it.
    pub fn nack(&mut self, nack: &Nack) {
        self.write_small(nack);
    }

    /// Announces the end. The server answers, and closes.
    pub fn close(&mut self) {
        if self.is_open() {
            self.write_close();
            self.phase = Phase::Closing;
        }
    }

    /// Takes all whole frames out of `input` and leaves what is incomplete.
    ///
    /// # Errors
    /// The connection cannot go on; events of earlier frames are still to be pulled.
    pub fn receive(&mut self, now_ms: u64, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.heartbeat.on_heard(now_ms);
        while let Split::Frame(frame) = split_frame(input, self.frame_bytes_max.0)? {
            let (consumed, header_at) = (frame.consumed, frame.payload_at - frame.header.len());
            let arriving = self.on_frame(&frame)?;
            let mut whole = input.split_to(consumed).freeze();
            whole.advance(header_at);
            if let Some(arriving) = arriving {
                self.on_message(arriving, whole);
            }
        }
        Ok(())
    }

    /// The next thing that happened.
    #[must_use = "an event that is not handled is lost"]
    pub fn next_event(&mut self) -> Option<Event<C>> {
        self.events.pop_front()
    }

    /// How many bytes to make room for, given what [`receive`](Self::receive) left in the input,
    /// so that the frame at its front is read in one piece.
    #[must_use]
    pub fn missing_bytes(&self, input: &[u8]) -> usize {
        match split_frame(input, self.frame_bytes_max.0) {
            Ok(Split::Incomplete { need_bytes }) => need_bytes.saturating_sub(input.len()),
            // A whole frame is taken, and what is none is refused, by the next `receive`.
            Ok(Split::Frame(_)) | Err(_) => 0,
        }
    }

    /// The bytes to send.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.unsent()
    }

    /// Records that so many bytes of the output were sent.
    pub fn on_sent(&mut self, bytes: usize, now_ms: u64) {
        self.output.on_sent(bytes);
        self.heartbeat.on_sent(now_ms);
    }

    /// When [`on_timer`](Self::on_timer) is next to be called, in the caller's milliseconds;
    /// `None`: never.
    #[must_use]
    pub fn next_deadline_ms(&self) -> Option<u64> {
        if self.is_finished() {
            return Some(0);
        }
        self.heartbeat.deadline_ms()
    }

    /// Pings when nothing else was sent, and looks whether the peer is alive.
    ///
    /// # Errors
    /// `Silent` when nothing came for two heartbeats, `Closed` when the server has closed and its
    /// `close` is answered.
    pub fn on_timer(&mut self, now_ms: u64) -> Result<(), ProtocolError> {
        if let Phase::Closed(refusal) = &self.phase
            && self.output().is_empty()
        {
            return Err(ProtocolError::Closed(refusal.clone()));
        }
        match self.heartbeat.on_timer(now_ms) {
            Due::Nothing => {}
            Due::Dead => return Err(ProtocolError::Silent),
            Due::Ping => self.write_small(&Ping {}),
        }
        Ok(())
    }

    /// Ends the connection: the contexts of all that has no outcome.
    #[must_use]
    pub fn into_unanswered(self) -> Unanswered<C> {
        Unanswered {
            requests: self.requests.into_values().collect(),
            publishes: self.publishes.into_contexts().collect(),
        }
    }

    fn message(&mut self, seq: u64) -> PublishWriter<'_> {
        debug_assert!(self.is_open(), "publishes wait for the handshake");
        PublishWriter {
            seq,
            out: self.output.buffer(),
            len_max: self.len_max,
        }
    }

    /// Frames of a few bytes fit every limit.
    fn write_small<'a, H: Header<'a>>(&mut self, header: &H) {
        if matches!(self.phase, Phase::Open | Phase::Closing) {
            let out = self.output.buffer();
            let written = write_frame(out, Framing::Stream, header, MAX_FRAME_BEFORE_WELCOME);
            debug_assert!(written.is_ok(), "{} is small", H::OP);
        }
    }

    fn write_close(&mut self) {
        let code = ReplyCode::Success;
        self.write_small(&Close { code, msg: "" });
    }
}

#[cfg(test)]
mod tests;
