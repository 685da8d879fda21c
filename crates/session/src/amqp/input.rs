//! Frames at the front of the input: which are taken now, and what ends the connection.

use bytes::{Buf, BytesMut};
use tanda_wire::amqp::frame::{PROTOCOL_HEADER, ProtocolHeader, protocol_header};
use tanda_wire::amqp::{Arguments, Frame, FrameError, FrameType, ReplyCode, Split};
use tanda_wire::amqp::{basic, connection, split_frame};

use super::fault::Fault;
use super::handshake::Handshake;
use super::open::Next;
use super::{AmqpSession, Closing, Stall, State, alarm, open};

/// The header of AMQP 0-9, whose frames are the same; old clients send it.
const OLD_HEADER: &[u8; 8] = b"AMQP\x01\x01\x00\x09";

impl AmqpSession {
    /// The first eight bytes say which protocol it is.
    pub(super) fn take_header(&mut self, input: &mut BytesMut) {
        let State::Header { deadline } = self.state else {
            return;
        };
        let is_old = input.starts_with(OLD_HEADER);
        match protocol_header(input) {
            ProtocolHeader::Incomplete => return,
            ProtocolHeader::Refused if OLD_HEADER.starts_with(input) && !is_old => return,
            ProtocolHeader::Refused if !is_old => {
                // The answer to any other protocol is which one is spoken here.
                self.link
                    .outbound
                    .raw(|out| out.extend_from_slice(&PROTOCOL_HEADER));
                self.state = State::Closing(Closing::done(self.link.now));
                return;
            }
            ProtocolHeader::Accepted | ProtocolHeader::Refused => {}
        }
        input.advance(PROTOCOL_HEADER.len().min(input.len()));
        let external = self.certificate.is_some();
        self.state = State::Handshake(Handshake::begin(&mut self.link, deadline, external));
    }

    /// Takes whole frames off the front of `input` while that is possible.
    pub(super) fn take_frames(&mut self, input: &mut BytesMut) {
        loop {
            let taken = match &self.state {
                State::Header { .. } | State::Gone => return,
                State::Handshake(handshake) if !handshake.takes_frames() => return,
                State::Handshake(_) | State::Closing(_) => self.take_frame(input),
                State::Open(_) => self.take_open_frames(input),
            };
            if !taken {
                return;
            }
        }
    }

    /// Takes one frame of a connection that is not open yet, or not any more. False: there is
    /// none.
    fn take_frame(&mut self, input: &mut BytesMut) -> bool {
        let consumed = match split_frame(input, self.link.frame_max) {
            Ok(Split::Frame(frame)) => {
                self.on_frame(frame);
                frame.consumed()
            }
            Ok(Split::Incomplete { .. }) => return false,
            Err(error) => {
                self.on_frame_error(&error);
                input.clear();
                return false;
            }
        };
        input.advance(consumed);
        true
    }

    fn on_frame(&mut self, frame: Frame<'_>) {
        match &mut self.state {
            State::Handshake(handshake) => {
                let certificate = self.certificate.as_deref();
                let turn = handshake.on_frame(&mut self.link, frame, certificate);
                self.on_turn(turn);
            }
            State::Closing(closing) => {
                let close = const { connection::Close::ID.to_bytes() };
                let close_ok = const { connection::CloseOk::ID.to_bytes() };
                if frame.channel != 0 || frame.frame_type != FrameType::Method {
                    return;
                }
                if frame.payload.starts_with(&close_ok) {
                    closing.awaits_close_ok = false;
                } else if frame.payload.starts_with(&close) {
                    closing.awaits_close_ok = false;
                    self.link.outbound.method(0, connection::CloseOk {});
                }
            }
            State::Header { .. } | State::Open(_) | State::Gone => {}
        }
    }

    /// Takes frames of an open connection, and sends what they ask for in one go. False: no more
    /// can be taken now.
    fn take_open_frames(&mut self, input: &mut BytesMut) -> bool {
        let mut at = 0;
        let outcome = self.read_frames(input, &mut at);
        input.advance(at);
        if let State::Open(open) = &mut self.state {
            open.flush(&mut self.link);
        }
        match outcome {
            Ok(Next::Stay) => false,
            Ok(Next::Closed) => {
                self.on_close();
                true
            }
            Err(fault) => {
                let hears = fault.code != ReplyCode::FrameError;
                if !hears {
                    input.clear();
                }
                self.fail(&fault, hears);
                true
            }
        }
    }

    fn read_frames(&mut self, input: &[u8], at: &mut usize) -> Result<Next, Fault> {
        let State::Open(open) = &mut self.state else {
            return Ok(Next::Stay);
        };
        let link = &mut self.link;
        let mut method = None;
        loop {
            let rest = input.get(*at..).unwrap_or_default();
            if !link.has_room() {
                self.stall = Stall::Room;
                return Ok(Next::Stay);
            }
            let repeated = open.take_repeats(link, rest);
            if repeated > 0 {
                *at += repeated;
                continue;
            }
            let frame = match split_frame(rest, link.frame_max) {
                Ok(Split::Frame(frame)) => frame,
                Ok(Split::Incomplete { .. }) => {
                    self.stall = Stall::None;
                    return Ok(Next::Stay);
                }
                Err(error) => return Err(frame_fault(&error)),
            };
            if open.must_wait(&frame) {
                self.stall = if open.is_busy(frame.channel) {
                    Stall::Channel(frame.channel)
                } else {
                    open.note_publisher(link);
                    Stall::Alarm
                };
                if self.stall == Stall::Alarm && alarm::holds_close(rest, link.frame_max) {
                    *at = input.len();
                    return Ok(Next::Closed);
                }
                return Ok(Next::Stay);
            }
            *at += frame.consumed();
            match open.on_frame(link, frame) {
                Ok(Next::Stay) => {
                    let bytes = rest.get(..frame.consumed()).unwrap_or_default();
                    if let (Some(method), FrameType::Header) = (method, frame.frame_type) {
                        open.keep_repeat(frame.channel, method, bytes);
                    }
                    method = open::is_publish(&frame).then_some(bytes);
                }
                Ok(Next::Closed) => return Ok(Next::Closed),
                Err(fault) if fault.ends_channel_only() => {
                    let fault = fault.by(basic::Publish::ID);
                    open.fail_channel(link, frame.channel, &fault);
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    fn on_frame_error(&mut self, error: &FrameError) {
        match &self.state {
            State::Handshake(handshake) if handshake.says_why() => {
                self.fail(&frame_fault(error), false);
            }
            State::Handshake(_) | State::Closing(_) => {
                self.state = State::Closing(Closing::done(self.link.now));
            }
            State::Header { .. } | State::Open(_) | State::Gone => {}
        }
    }
}

/// Nothing after bytes that are no frame can be understood.
fn frame_fault(error: &FrameError) -> Fault {
    Fault::new(ReplyCode::FrameError, error.to_string())
}
