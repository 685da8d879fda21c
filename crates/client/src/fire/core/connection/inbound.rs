//! What the server says.

use bytes::Bytes;
use tanda_wire::firemq::frame::Frame;
use tanda_wire::firemq::message::ToClient;
use tanda_wire::firemq::publish::Confirm;
use tanda_wire::firemq::reply::{ErrorReply, OkReply};
use tanda_wire::firemq::session::{Close, Pong, Welcome};
use tanda_wire::firemq::{Direction, PROTOCOL_VERSION};

use super::{Connection, Phase};
use crate::fire::core::event::{Answer, Event, ProtocolError, Ready};
use crate::fire::core::received::{Arriving, ArrivingAs, Received, Returned};
use crate::fire::error::Refusal;

impl<C> Connection<C> {
    /// Handles a frame; one with a message is finished by [`Self::on_message`], once its bytes are
    /// taken from the input.
    pub(super) fn on_frame(
        &mut self,
        frame: &Frame<'_>,
    ) -> Result<Option<Arriving>, ProtocolError> {
        let op = frame.op;
        let decoded = ToClient::decode(op, frame.header)
            .map_err(|error| ProtocolError::Header { op, error })?;
        let Some(header) = decoded else {
            // Ops of later versions are passed over; those of clients are a mistake.
            return match op.direction() {
                Direction::Unknown => Ok(None),
                Direction::ToServer | Direction::ToClient | Direction::Either => {
                    Err(ProtocolError::Unexpected { op })
                }
            };
        };
        match &self.phase {
            Phase::Handshaking => return self.on_handshake(&header).map(|()| None),
            Phase::Open | Phase::Closing => {}
            Phase::Closed(_) => return Ok(None),
        }
        match header {
            ToClient::Welcome(_) => return Err(ProtocolError::Unexpected { op }),
            ToClient::Ping(_) => self.write_small(&Pong {}),
            ToClient::Pong(_) => {}
            ToClient::Close(close) => self.on_close(&close),
            ToClient::Ok(reply) => self.on_ok(&reply),
            ToClient::Error(error) => self.on_error(&error)?,
            ToClient::Flow(flow) => {
                self.is_paused = flow.pause;
                self.events.push_back(Event::Flow { pause: flow.pause });
            }
            ToClient::Confirm(confirm) => self.on_confirm(&confirm)?,
            ToClient::Return(it) => return Ok(Some(Arriving::returned(&it, frame.header))),
            ToClient::Deliver(it) => return Ok(Some(Arriving::delivery(&it, frame.header))),
            ToClient::GetOk(it) => return Ok(Some(Arriving::got(&it, frame.header))),
            ToClient::Cancelled(it) => self.events.push_back(Event::Cancelled {
                sub: it.sub,
                refusal: Refusal::new(it.code, it.msg),
            }),
        }
        Ok(None)
    }

    /// Handles a message that has come whole.
    pub(super) fn on_message(&mut self, arriving: Arriving, frame: Bytes) {
        let (content, of) = arriving.into_content(frame);
        match of {
            ArrivingAs::Returned { seq, code, message } => {
                let returned = Box::new(Returned {
                    code,
                    message,
                    content,
                });
                if seq == 0 {
                    self.events.push_back(Event::Returned(returned));
                } else {
                    // One that belongs to nothing changes nothing.
                    self.publishes.on_returned(seq, returned);
                }
            }
            ArrivingAs::Delivery {
                sub,
                tag,
                redelivered,
            } => {
                let received = Received {
                    tag,
                    redelivered,
                    content,
                };
                self.events.push_back(Event::Delivery { sub, received });
            }
            ArrivingAs::Got {
                rid,
                tag,
                redelivered,
                remaining,
            } => {
                let received = Received {
                    tag,
                    redelivered,
                    content,
                };
                let answer = Answer::Got {
                    remaining,
                    received,
                };
                self.answer(rid, answer);
            }
        }
    }

    fn on_handshake(&mut self, header: &ToClient<'_>) -> Result<(), ProtocolError> {
        let refusal = match header {
            ToClient::Welcome(welcome) => return self.on_welcome(welcome),
            ToClient::Error(error) => Refusal::new(error.code, error.msg),
            ToClient::Close(close) => Refusal::new(close.code, close.msg),
            ToClient::Ping(_)
            | ToClient::Pong(_)
            | ToClient::Ok(_)
            | ToClient::Flow(_)
            | ToClient::Confirm(_)
            | ToClient::Return(_)
            | ToClient::Deliver(_)
            | ToClient::Cancelled(_)
            | ToClient::GetOk(_) => return Err(ProtocolError::Unexpected { op: header.op() }),
        };
        self.phase = Phase::Closed(refusal.clone());
        self.events.push_back(Event::Refused(refusal));
        Ok(())
    }

    fn on_welcome(&mut self, welcome: &Welcome<'_>) -> Result<(), ProtocolError> {
        if welcome.ver != PROTOCOL_VERSION {
            return Err(ProtocolError::Version { ver: welcome.ver });
        }
        // What is larger than a frame can be is no limit.
        self.len_max = u32::try_from(welcome.max_frame).unwrap_or(u32::MAX);
        self.frame_bytes_max.0 = self.frame_bytes_max.1;
        self.heartbeat.set_interval_s(welcome.heartbeat);
        self.phase = Phase::Open;
        let server = &welcome.server;
        self.events.push_back(Event::Ready(Ready {
            server: format!("{} {}", server.name, server.version),
            connection: welcome.conn_id.to_owned(),
            heartbeat_s: welcome.heartbeat,
            frame_bytes_max: self.len_max,
        }));
        Ok(())
    }

    fn on_close(&mut self, close: &Close<'_>) {
        let refusal = Refusal::new(close.code, close.msg);
        if self.phase == Phase::Open {
            self.write_close();
        }
        self.phase = Phase::Closed(refusal.clone());
        self.events.push_back(Event::Closing(refusal));
    }

    fn on_ok(&mut self, reply: &OkReply<'_>) {
        let answer = if reply.empty {
            Answer::Empty
        } else {
            Answer::Done {
                name: reply.name.to_owned(),
                messages: reply.messages,
                consumers: reply.consumers,
            }
        };
        self.answer(reply.rid, answer);
    }

    /// A reply to no request is passed over.
    fn answer(&mut self, rid: u64, answer: Answer) {
        if let Some(context) = self.requests.remove(&rid) {
            self.events.push_back(Event::Answered { context, answer });
        }
    }

    fn on_error(&mut self, error: &ErrorReply<'_>) -> Result<(), ProtocolError> {
        let refusal = Refusal::new(error.code, error.msg);
        let failed = self.requests.remove(&error.rid);
        if error.fatal {
            if let Some(context) = failed {
                let refusal = refusal.clone();
                self.events.push_back(Event::Failed { context, refusal });
            }
            return Err(ProtocolError::Fatal(refusal));
        }
        self.events.push_back(match failed {
            Some(context) => Event::Failed { context, refusal },
            None => Event::Complaint(refusal),
        });
        Ok(())
    }

    fn on_confirm(&mut self, confirm: &Confirm<'_>) -> Result<(), ProtocolError> {
        let seq = if confirm.nack {
            confirm.seq
        } else {
            confirm.upto
        };
        if !self.publishes.was_given(seq) {
            return Err(ProtocolError::UnknownConfirm { seq });
        }
        if confirm.nack {
            if let Some(context) = self.publishes.reject(seq) {
                let refusal = Refusal::new(confirm.code, confirm.msg);
                self.events.push_back(Event::Rejected { context, refusal });
            }
            return Ok(());
        }
        while let Some((context, returned)) = self.publishes.confirm_next(seq) {
            self.events
                .push_back(Event::Confirmed { context, returned });
        }
        Ok(())
    }
}
