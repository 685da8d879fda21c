//! Frames at the front of the input: which are taken now, and what ends the connection.

use bytes::{Buf, BytesMut};
use tanda_wire::firemq::Op;
use tanda_wire::firemq::frame::{Frame, FrameError, PREAMBLE, Split, check_preamble, split_frame};

use super::fault::Fault;
use super::handshake::Handshake;
use super::open::Next;
use super::{Closing, FireSession, Stall, State};

impl FireSession {
    /// The first four bytes say which protocol it is.
    pub(super) fn take_preamble(&mut self, input: &mut BytesMut) {
        let State::Preamble { deadline } = self.state else {
            return;
        };
        match check_preamble(input) {
            Ok(false) => {}
            Ok(true) => {
                input.advance(PREAMBLE.len());
                self.state = State::Handshake(Handshake::new(deadline));
            }
            Err(error) => self.on_frame_error(&error, input),
        }
    }

    /// Takes whole frames off the front of `input` while that is possible.
    pub(super) fn take_frames(&mut self, input: &mut BytesMut) {
        loop {
            if let State::Open(open) = &self.state
                && open.closes_at.is_some()
            {
                return input.clear();
            }
            let taken = match &self.state {
                State::Preamble { .. } | State::Gone => return,
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
                self.on_frame(&frame);
                frame.consumed
            }
            Ok(Split::Incomplete { .. }) => return false,
            Err(error) => {
                self.on_frame_error(&error, input);
                return false;
            }
        };
        input.advance(consumed);
        true
    }

    fn on_frame(&mut self, frame: &Frame<'_>) {
        match &mut self.state {
            State::Handshake(handshake) => {
                let turn = handshake.on_frame(&mut self.link, frame, &self.origin);
                self.on_turn(turn);
            }
            State::Closing(closing) if frame.op == Op::Close => closing.awaits_close = false,
            State::Closing(_) | State::Preamble { .. } | State::Open(_) | State::Gone => {}
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
            Ok(Next::Stay | Next::Wait) => false,
            Ok(Next::Closed) => {
                self.on_close();
                false
            }
            Err(fault) => {
                input.clear();
                self.fail(&fault);
                false
            }
        }
    }

    /// Reads frames until something has to wait, or ends the connection.
    ///
    /// # Errors
    /// What ends it.
    fn read_frames(&mut self, input: &[u8], at: &mut usize) -> Result<Next, Fault> {
        let State::Open(open) = &mut self.state else {
            return Ok(Next::Stay);
        };
        let link = &mut self.link;
        loop {
            let rest = input.get(*at..).unwrap_or_default();
            if !link.has_room() {
                self.stall = Stall::Room;
                return Ok(Next::Stay);
            }
            let frame = match split_frame(rest, link.frame_max) {
                Ok(Split::Frame(frame)) => frame,
                Ok(Split::Incomplete { .. }) => {
                    self.stall = Stall::None;
                    return Ok(Next::Stay);
                }
                Err(error) => return Err(frame_fault(&error)),
            };
            if frame.op == Op::Publish && open.must_pause(rest, link.frame_max) {
                self.stall = Stall::Alarm;
                return Ok(Next::Stay);
            }
            match open.on_frame(link, &frame) {
                Ok(Next::Stay) => {}
                Ok(Next::Wait) => {
                    self.stall = Stall::Subscription;
                    return Ok(Next::Stay);
                }
                Ok(Next::Closed) => {
                    *at += frame.consumed;
                    return Ok(Next::Closed);
                }
                Err(fault) if fault.fatal => return Err(fault),
                Err(fault) => link.outbound.error(&fault),
            }
            *at += frame.consumed;
        }
    }

    /// Nothing after bytes that are no frame can be understood.
    fn on_frame_error(&mut self, error: &FrameError, input: &mut BytesMut) {
        input.clear();
        match &self.state {
            State::Preamble { .. } | State::Handshake(_) => self.fail(&frame_fault(error)),
            State::Closing(_) => self.state = State::Closing(Closing::done(self.link.now)),
            State::Open(_) | State::Gone => {}
        }
    }
}

fn frame_fault(error: &FrameError) -> Fault {
    Fault::new(FrameError::CODE, error.to_string()).fatal()
}
