//! The state of one connection.
//!
//! Owns: what each request ID waits for, and which frames are allowed when.
//! Refuses to know: how often frames are written, and who made a request.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use bytes::{Bytes, BytesMut};
use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::consume::{CancelConsume, Credit};
use tanda_wire::fila::continuation::ReassemblyLimits;
use tanda_wire::fila::control::{Disconnect, Handshake, HandshakeOk, Ping, Pong};
use tanda_wire::fila::delivery::DeliveryBatch;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{
    FrameHeader, MAX_FRAME_DEFAULT, effective_max_frame, write_body, write_frame_split,
};
use tanda_wire::fila::{Body, Capabilities, EncodeError, Opcode, PROTOCOL_VERSION};

use super::event::{Event, Failure, ProtocolError};
use super::inbound::{Inbound, Splitter};
use super::keepalive::{Due, Keepalive, KeepaliveConfig};
use crate::error::Rejection;
use crate::outbox::Outbox;

/// Request ID of the handshake.
const HANDSHAKE_ID: u32 = 0;
/// The last request ID a client may use; the first is 1.
const REQUEST_ID_MAX: u32 = 0x7FFF_FFFF;

/// What a connection is opened with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// The credential, where the server asks for one.
    pub api_key: Option<String>,
    /// When silence is noticed.
    pub keepalive: KeepaliveConfig,
    /// How much of unfinished answers is kept. An answer over it ends the connection.
    pub reassembly: ReassemblyLimits,
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The credential does not belong into logs.
        f.debug_struct("ConnectionConfig")
            .field("has_api_key", &self.api_key.is_some())
            .field("keepalive", &self.keepalive)
            .field("reassembly", &self.reassembly)
            .finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Handshaking,
    Open,
    /// A `Disconnect` was sent or came: answers still come, requests go no more.
    Closing,
}

#[derive(Debug)]
enum Entry<C> {
    Awaiting { context: C, answer: Opcode },
    Subscription,
}

/// One connection, from its handshake on. `C` is what a request is made with and its answer or
/// failure comes back with.
///
/// After [`receive`](Self::receive) pull [`next_event`](Self::next_event) until `None`. After any
/// call there may be [`output`](Self::output) to send.
#[derive(Debug)]
pub struct Connection<C> {
    phase: Phase,
    splitter: Splitter,
    keepalive: Keepalive,
    entries: HashMap<u32, Entry<C>>,
    newest_id: u32,
    peer_frame_bytes_max: u32,
    output: Outbox,
    events: VecDeque<Event<C>>,
}

impl<C> Connection<C> {
    /// A connection whose handshake is ready to be sent.
    ///
    /// # Errors
    /// When the API key is too long for the protocol.
    pub fn new(config: &ConnectionConfig, now_ms: u64) -> Result<Self, EncodeError> {
        let handshake = Handshake {
            protocol_version: PROTOCOL_VERSION,
            api_key: config.api_key.as_deref(),
            client_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
        };
        let mut output = Outbox::default();
        write_body(output.buffer(), HANDSHAKE_ID, MAX_FRAME_DEFAULT, &handshake)?;
        Ok(Self {
            phase: Phase::Handshaking,
            splitter: Splitter::new(MAX_FRAME_DEFAULT, config.reassembly),
            keepalive: Keepalive::new(config.keepalive, now_ms),
            entries: HashMap::new(),
            newest_id: 0,
            peer_frame_bytes_max: MAX_FRAME_DEFAULT,
            output,
            events: VecDeque::new(),
        })
    }

    /// Whether requests may be made.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Whether the end was announced, all that was asked is answered and all of the output sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Closing && self.entries.is_empty() && self.output().is_empty()
    }

    /// Makes a request: appends its frames to the output. `body` appends the body, looking at the
    /// context, which comes back with the answer. A `Consume` keeps its request ID until the
    /// subscription ends.
    ///
    /// Call it only while [`is_open`](Self::is_open).
    ///
    /// # Errors
    /// The error of `body`, with the context; nothing is sent then.
    pub fn request(
        &mut self,
        opcode: Opcode,
        context: C,
        body: impl FnOnce(&C, &mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<u32, (C, EncodeError)> {
        debug_assert!(self.is_open(), "requests wait for the handshake");
        let request_id = self.free_id();
        let header = FrameHeader::new(opcode, request_id);
        let written = write_frame_split(
            self.output.buffer(),
            header,
            self.peer_frame_bytes_max,
            |out| body(&context, out),
        );
        if let Err(error) = written {
            return Err((context, error));
        }
        if let Some(answer) = opcode.answer() {
            self.entries
                .insert(request_id, Entry::Awaiting { context, answer });
        }
        Ok(request_id)
    }

    /// Grants credit to a live subscription; does nothing for another request ID.
    pub fn grant(&mut self, request_id: u32, additional_credit: u32) {
        if self.is_subscribed(request_id) && self.is_open() {
            self.write_control(request_id, &Credit { additional_credit });
        }
    }

    /// Ends a subscription. Deliveries already on their way are ignored.
    pub fn cancel(&mut self, request_id: u32) {
        if self.is_subscribed(request_id) {
            self.entries.remove(&request_id);
            if self.is_open() {
                self.write_control(request_id, &CancelConsume {});
            }
        }
    }

    /// Announces the end: answers still come, then the server closes. Subscriptions end with it.
    pub fn disconnect(&mut self) {
        if self.is_open() {
            let request_id = self.free_id();
            self.write_control(request_id, &Disconnect {});
            self.phase = Phase::Closing;
            self.entries
                .retain(|_, entry| matches!(entry, Entry::Awaiting { .. }));
        }
    }

    /// Takes all whole frames out of `input` and leaves what is incomplete.
    ///
    /// # Errors
    /// The connection cannot go on; events of earlier frames are still to be pulled.
    pub fn receive(&mut self, now_ms: u64, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.keepalive.on_heard(now_ms);
        while let Some(inbound) = self.splitter.next(input)? {
            self.on_frame(inbound)?;
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
        self.splitter.missing_bytes(input)
    }

    /// The bytes to send.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.unsent()
    }

    /// Records that so many bytes of the output were sent.
    pub fn on_sent(&mut self, bytes: usize) {
        self.output.on_sent(bytes);
    }

    /// When [`on_timer`](Self::on_timer) is next to be called, in the caller's milliseconds.
    #[must_use]
    pub const fn next_deadline_ms(&self) -> u64 {
        self.keepalive.deadline_ms()
    }

    /// Pings a silent peer.
    ///
    /// # Errors
    /// `Silent` when it did not answer in time.
    pub fn on_timer(&mut self, now_ms: u64) -> Result<(), ProtocolError> {
        match self.keepalive.on_timer(now_ms) {
            Due::Nothing => Ok(()),
            Due::Dead => Err(ProtocolError::Silent),
            Due::Ping => {
                // During the handshake only the handshake may be sent; the deadline runs anyway.
                if self.phase != Phase::Handshaking {
                    let request_id = self.free_id();
                    self.write_control(request_id, &Ping {});
                }
                Ok(())
            }
        }
    }

    /// Ends the connection: the contexts of all requests without an answer, oldest first.
    #[must_use]
    pub fn into_unanswered(self) -> Vec<C> {
        let by_age: BTreeMap<u32, Entry<C>> = self.entries.into_iter().collect();
        let contexts = by_age.into_values().filter_map(|entry| match entry {
            Entry::Awaiting { context, .. } => Some(context),
            Entry::Subscription => None,
        });
        contexts.collect()
    }

    fn is_subscribed(&self, request_id: u32) -> bool {
        matches!(self.entries.get(&request_id), Some(Entry::Subscription))
    }

    /// The next ID that nothing waits on.
    fn free_id(&mut self) -> u32 {
        loop {
            self.newest_id = if self.newest_id >= REQUEST_ID_MAX {
                1
            } else {
                self.newest_id + 1
            };
            let id = self.newest_id;
            if !self.entries.contains_key(&id) && !self.splitter.is_unfinished(id) {
                return id;
            }
        }
    }

    /// Control frames hold nothing that could fail to encode.
    fn write_control<'b, B: Body<'b>>(&mut self, request_id: u32, body: &B) {
        let written = write_body(
            self.output.buffer(),
            request_id,
            self.peer_frame_bytes_max,
            body,
        );
        debug_assert!(written.is_ok(), "{} has a fixed size", B::OPCODE);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is not named can only be an answer"
    )]
    fn on_frame(&mut self, inbound: Inbound) -> Result<(), ProtocolError> {
        let Inbound { header, body } = inbound;
        if self.phase == Phase::Handshaking {
            return self.on_handshake_frame(header, &body);
        }
        let request_id = header.request_id;
        match header.opcode {
            Opcode::Delivery => self.on_delivery(request_id, body),
            Opcode::Ping => self.write_control(request_id, &Pong {}),
            Opcode::Disconnect => {
                self.phase = Phase::Closing;
                self.events.push_back(Event::Closing);
            }
            Opcode::Error => return self.on_error_frame(request_id, &body),
            opcode => self.on_answer(request_id, opcode, body),
        }
        Ok(())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "nothing else answers a handshake"
    )]
    fn on_handshake_frame(
        &mut self,
        header: FrameHeader,
        body: &[u8],
    ) -> Result<(), ProtocolError> {
        let opcode = header.opcode;
        let decode = |error| ProtocolError::Decode { opcode, error };
        match opcode {
            Opcode::HandshakeOk => {
                let ok = HandshakeOk::decode(body).map_err(decode)?;
                let negotiated = ok.negotiated_version;
                if negotiated != PROTOCOL_VERSION {
                    return Err(ProtocolError::Version { negotiated });
                }
                self.peer_frame_bytes_max = effective_max_frame(ok.max_frame_size);
                self.splitter.allow_frame_bytes(self.peer_frame_bytes_max);
                self.phase = Phase::Open;
                self.events.push_back(Event::Ready(ok));
                Ok(())
            }
            Opcode::Error => {
                let rejection = decode_rejection(body).map_err(decode)?;
                self.phase = Phase::Closing;
                self.events.push_back(Event::Refused(rejection));
                Ok(())
            }
            opcode => Err(ProtocolError::BeforeHandshake { opcode }),
        }
    }

    /// Deliveries of a subscription that was cancelled, or never made, are ignored.
    fn on_delivery(&mut self, request_id: u32, body: Bytes) {
        match self.entries.get(&request_id) {
            Some(Entry::Subscription) => {}
            Some(Entry::Awaiting { .. }) => {
                return self.on_answer(request_id, Opcode::Delivery, body);
            }
            None => return,
        }
        match DeliveryBatch::decode_header(&body) {
            Ok(batch) => {
                let messages = batch.item_count();
                self.events.push_back(Event::Delivery {
                    request_id,
                    messages,
                    body,
                });
            }
            Err(error) => {
                let failure = Failure::InvalidFrame(format!("Delivery cannot be read: {error}"));
                self.cancel(request_id);
                self.events.push_back(Event::SubscriptionEnded {
                    request_id,
                    failure,
                });
            }
        }
    }

    fn on_error_frame(&mut self, request_id: u32, body: &[u8]) -> Result<(), ProtocolError> {
        let decoded = decode_rejection(body);
        let failure = match &decoded {
            Ok(rejection) => Failure::Rejected(rejection.clone()),
            Err(error) => Failure::InvalidFrame(format!("Error cannot be read: {error}")),
        };
        if self.is_subscribed(request_id) {
            // Whether the server still holds the subscription depends on the error; cancelling
            // one it has ended does no harm.
            self.cancel(request_id);
            self.events.push_back(Event::SubscriptionEnded {
                request_id,
                failure,
            });
            return Ok(());
        }
        if let Some(Entry::Awaiting { context, .. }) = self.entries.remove(&request_id) {
            self.events.push_back(Event::Failed { context, failure });
            return Ok(());
        }
        match decoded {
            Ok(rejection) => {
                self.events.push_back(Event::Complaint(rejection));
                Ok(())
            }
            Err(error) => Err(ProtocolError::Decode {
                opcode: Opcode::Error,
                error,
            }),
        }
    }

    /// `Handling Unknown Opcodes`: what answers a request but cannot be its answer fails it, so
    /// that it never hangs; what answers nothing is ignored.
    fn on_answer(&mut self, request_id: u32, opcode: Opcode, body: Bytes) {
        let Some(Entry::Awaiting { context, answer }) = self.take_awaiting(request_id) else {
            return;
        };
        if opcode != answer {
            let failure = Failure::InvalidFrame(format!("{opcode} came in place of {answer}"));
            self.events.push_back(Event::Failed { context, failure });
            return;
        }
        if answer == Opcode::ConsumeOk {
            self.entries.insert(request_id, Entry::Subscription);
        }
        self.events.push_back(Event::Answer {
            request_id,
            context,
            body,
        });
    }

    /// Removes the entry of a request that waits; a live subscription stays.
    fn take_awaiting(&mut self, request_id: u32) -> Option<Entry<C>> {
        if self.is_subscribed(request_id) {
            return None;
        }
        self.entries.remove(&request_id)
    }
}

fn decode_rejection(body: &[u8]) -> Result<Rejection, DecodeError> {
    let frame = ErrorFrame::decode(body)?;
    let pairs = frame.metadata.iter();
    Ok(Rejection {
        code: frame.error_code,
        message: frame.message.to_owned(),
        metadata: pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    })
}

#[cfg(test)]
mod tests;
