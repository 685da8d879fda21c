//! Frames at the front of the input: which are taken now, and which end the connection.

use bytes::{Buf, BytesMut};
use tanda_engine::Millis;
use tanda_wire::amaquet::envelope::Failure;
use tanda_wire::amaquet::{FrameError, Header, Sender, Split, split_frame};

use super::claims::Claim;
use super::outbound::Asked;
use super::{AmaquetSession, State};
use crate::login::Authentication;

/// So many bytes of a frame give its peer a second more.
const BYTES_PER_SECOND: u64 = 64 << 10;

/// The beginning of a frame.
#[derive(Debug)]
pub(super) struct Partial {
    /// What the frame says of itself, once that is there, and the room for its payload.
    declared: Option<(Header, Claim)>,
    /// Since when the rest is waited for; `None` while the socket is not read.
    since: Option<Millis>,
    /// What there is of it, in bytes.
    have_bytes: usize,
}

impl AmaquetSession {
    /// Takes whole frames off the front of `input` while that is possible.
    pub(super) fn take_frames(&mut self, input: &mut BytesMut) {
        let mut at = 0;
        while matches!(self.state, State::Open) && self.link.has_room() {
            let rest = input.get(at..).unwrap_or_default();
            if rest.is_empty() {
                self.partial = None;
                break;
            }
            match split_frame(rest, Sender::Client, self.link.config.limits.max_payload) {
                Ok(Split::Frame(frame)) => {
                    let partial = self.partial.take();
                    let Some(reserved) = self.reserve(partial, frame.header) else {
                        break;
                    };
                    at += frame.consumed();
                    self.on_frame(frame.header, frame.payload, reserved);
                }
                Ok(Split::Incomplete { header, .. }) => {
                    self.on_partial(header, rest.len());
                    break;
                }
                Err(error) => {
                    self.refuse_stream(&error);
                    break;
                }
            }
        }
        if matches!(self.state, State::Open) {
            input.advance(at);
        } else {
            input.clear();
        }
    }

    fn on_frame(&mut self, header: Header, payload: &[u8], reserved: Claim) {
        if self.link.config.authentication == Authentication::Off {
            self.link.connect();
        }
        let asked = Asked {
            opcode: header.opcode,
            request_id: header.request_id,
        };
        if let Err(failure) = self.link.serve(asked, payload, reserved) {
            self.link.outbound.failure(asked, &failure);
        }
    }

    /// Room for a payload; without any the connection closes.
    fn reserve(&mut self, partial: Option<Partial>, header: Header) -> Option<Claim> {
        if let Some((_, claim)) = partial.and_then(|partial| partial.declared) {
            return Some(claim);
        }
        let config = &self.link.config;
        let max = config.limits.payload_reservation;
        let claim = config.shared.reserve(header.payload_bytes, max);
        if claim.is_none() {
            self.finish();
        }
        claim
    }

    /// The rest of a frame is still to come.
    fn on_partial(&mut self, header: Option<Header>, have_bytes: usize) {
        let partial = self.partial.take();
        let since = partial.as_ref().and_then(|partial| partial.since);
        let declared = match header {
            Some(header) => match self.reserve(partial, header) {
                Some(claim) => Some((header, claim)),
                None => return,
            },
            None => None,
        };
        self.partial = Some(Partial {
            declared,
            since,
            have_bytes,
        });
    }

    /// Starts and stops the clock of the frame that has begun, as the socket is read or not.
    pub(super) fn heed_reading(&mut self) {
        let reads = matches!(self.state, State::Open) && self.link.has_room();
        let now = self.link.now;
        if let Some(partial) = &mut self.partial {
            partial.since = match partial.since {
                Some(since) if reads => Some(since),
                None if reads => Some(now),
                Some(_) | None => None,
            };
        }
    }

    /// When the frame that has begun must be whole.
    pub(super) fn frame_deadline(&self) -> Option<Millis> {
        let partial = self.partial.as_ref()?;
        let seconds = partial.have_bytes as u64 / BYTES_PER_SECOND;
        let timeout_ms = self.link.config.limits.partial_frame_timeout_ms;
        let allowed_ms = timeout_ms.saturating_add(seconds.saturating_mul(1_000));
        Some(partial.since?.after_ms(allowed_ms))
    }

    /// Ends the connection when the rest of a frame does not come.
    pub(super) fn cut_off_when_late(&mut self) {
        if matches!(self.state, State::Open)
            && self.frame_deadline().is_some_and(|at| at <= self.link.now)
        {
            self.cut_off();
        }
    }

    /// The rest of a frame does not come.
    pub(super) fn cut_off(&mut self) {
        let partial = self.partial.take();
        let declared = partial.and_then(|partial| {
            let have_bytes = partial.have_bytes;
            partial.declared.map(|(header, _)| (header, have_bytes))
        });
        match declared {
            Some((header, have_bytes)) => {
                let have_bytes =
                    have_bytes.saturating_sub(tanda_wire::amaquet::frame::HEADER_BYTES);
                self.refuse_stream(&header.cut_off(have_bytes));
            }
            None => self.finish(),
        }
    }

    /// Nothing after such a frame can be trusted.
    fn refuse_stream(&mut self, error: &FrameError) {
        if let Some(code) = error.code() {
            let asked = Asked {
                opcode: error.opcode,
                request_id: error.request_id,
            };
            let failure = Failure::new(code, error.to_string());
            self.link.outbound.failure(asked, &failure);
        }
        self.finish();
    }
}
