//! FireMQ on a client's side.
//!
//! Source: `firemq.md`.

mod asks;

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};
use tanda_wire::firemq::frame::{
    Framing, MAX_FRAME_BEFORE_WELCOME, PREAMBLE, Split, split_frame, write_head,
};
use tanda_wire::firemq::message::ToClient;
use tanda_wire::firemq::publish::Confirm;
use tanda_wire::firemq::reply::{ErrorReply, OkReply};
use tanda_wire::firemq::session::{Auth, Close, Hello, MECHANISM_PLAIN, Pong};
use tanda_wire::firemq::{Header, Props, RawMap, ReplyCode};

use super::contents;
use super::link::{Content, Delivered, Done, Line, Said};
use crate::failure::{Violation, ensure};
use crate::history::amqp::Door;
use crate::invariants::amqp::unexpected;

/// Seconds between heartbeats.
const HEARTBEAT_S: u64 = 20;

/// See the module.
pub(super) struct OfFire {
    inbox: BytesMut,
    frame_max: u32,
    last_rid: u64,
    /// What each request does that is not answered.
    asked: BTreeMap<u64, Done>,
    last_sub: u64,
    /// Consumer tags by subscription.
    subs: BTreeMap<u64, String>,
    /// Messages that are to be confirmed, so far.
    published: u64,
    /// What was confirmed last.
    confirmed: u64,
}

fn say<'a>(line: &mut Line, header: &impl Header<'a>) {
    say_with(line, header, &[]);
}

fn say_with<'a>(line: &mut Line, header: &impl Header<'a>, payload: &[u8]) {
    let out = &mut line.out;
    let written = write_head(out, Framing::Stream, header, payload.len(), u32::MAX);
    debug_assert!(written.is_ok(), "the simulator's frames are small");
    out.extend_from_slice(payload);
}

impl OfFire {
    /// Says hello.
    pub(super) fn new(line: &mut Line) -> Self {
        line.out.extend_from_slice(&PREAMBLE);
        let auth = Auth {
            mech: MECHANISM_PLAIN,
            user: "guest",
            pass: "guest",
        };
        say(
            line,
            &Hello {
                ver: 1,
                auth,
                heartbeat: HEARTBEAT_S,
                ..Hello::default()
            },
        );
        Self {
            inbox: BytesMut::new(),
            frame_max: MAX_FRAME_BEFORE_WELCOME,
            last_rid: 0,
            asked: BTreeMap::new(),
            last_sub: 0,
            subs: BTreeMap::new(),
            published: 0,
            confirmed: 0,
        }
    }

    /// The number of a request that does this.
    fn rid(&mut self, done: Done) -> u64 {
        self.last_rid += 1;
        self.asked.insert(self.last_rid, done);
        self.last_rid
    }

    /// Says goodbye, or answers to one.
    pub(super) fn agree(line: &mut Line) {
        let (code, msg) = (ReplyCode::Success, "bye");
        say(line, &Close { code, msg });
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next thing the broker says.
    pub(super) fn next(&mut self, line: &mut Line) -> Result<Option<Said>, Violation> {
        loop {
            let inbox = core::mem::take(&mut self.inbox);
            let split = split_frame(&inbox, self.frame_max);
            let Split::Frame(frame) = split.map_err(|error| unexpected::of(error.to_string()))?
            else {
                self.inbox = inbox;
                return Ok(None);
            };
            let said = ToClient::decode(frame.op, frame.header)
                .map_err(|error| unexpected::of(format!("{}: {error}", frame.op.name())))?
                .ok_or_else(|| unexpected::of(format!("{} came", frame.op.name())));
            let said = said.and_then(|message| self.on_message(line, &message, frame.payload));
            let consumed = frame.consumed;
            self.inbox = inbox;
            self.inbox.advance(consumed);
            if let Some(said) = said? {
                return Ok(Some(said));
            }
        }
    }

    /// `None`: it is of no interest to the client.
    fn on_message(
        &mut self,
        line: &mut Line,
        message: &ToClient<'_>,
        payload: &[u8],
    ) -> Result<Option<Said>, Violation> {
        Ok(Some(match message {
            ToClient::Welcome(it) => {
                line.is_open = true;
                self.frame_max = u32::try_from(it.max_frame).unwrap_or(u32::MAX);
                return Ok(None);
            }
            ToClient::Ping(_) => {
                if !line.has_ended && !line.is_over {
                    say(line, &Pong {});
                }
                return Ok(None);
            }
            ToClient::Pong(_) => return Ok(None),
            ToClient::Close(_) if line.is_over => Said::Goodbye,
            ToClient::Close(it) => Said::Closed(it.code.to_wire(), it.msg.to_owned()),
            ToClient::Ok(it) => Said::Done(self.on_ok(it)?),
            ToClient::Error(it) => self.on_error(it)?,
            ToClient::Flow(it) => Said::Pause(it.pause),
            ToClient::Confirm(it) => self.on_confirm(it)?,
            ToClient::Return(it) => Said::Returned(content(it.props, it.headers, payload)?),
            ToClient::Deliver(it) => {
                let consumer = self.subs.get(&it.sub).cloned();
                let stray = || unexpected::of(format!("a message for nobody: {it:?}"));
                Said::Delivered(Delivered {
                    consumer: Some(consumer.ok_or_else(stray)?),
                    delivery_tag: it.tag,
                    is_redelivered: it.redelivered,
                    exchange: it.exchange.to_owned(),
                    key: it.key.to_owned(),
                    content: content(it.props, it.headers, payload)?,
                })
            }
            ToClient::Cancelled(it) => {
                let tag = self.subs.remove(&it.sub);
                let stray = || unexpected::of(format!("it was not there: {it:?}"));
                Said::Cancelled(tag.ok_or_else(stray)?)
            }
            ToClient::GetOk(it) => {
                let asked = self.asked.remove(&it.rid);
                ensure(asked == Some(Done::Empty), unexpected::NAME, || {
                    format!("{it:?} answers {asked:?}")
                })?;
                Said::Delivered(Delivered {
                    consumer: None,
                    delivery_tag: it.tag,
                    is_redelivered: it.redelivered,
                    exchange: it.exchange.to_owned(),
                    key: it.key.to_owned(),
                    content: content(it.props, it.headers, payload)?,
                })
            }
        }))
    }

    fn on_ok(&mut self, ok: &OkReply<'_>) -> Result<Done, Violation> {
        let done = self.asked.remove(&ok.rid);
        let done = done.ok_or_else(|| unexpected::of(format!("{ok:?} answers nothing")))?;
        ensure(ok.empty == (done == Done::Empty), unexpected::NAME, || {
            format!("{ok:?} to a request that was to be {done:?}")
        })?;
        if let Done::Declared(_) = done {
            return Ok(Done::Declared(ok.name.to_owned()));
        }
        Ok(done)
    }

    fn on_error(&mut self, error: &ErrorReply<'_>) -> Result<Said, Violation> {
        let (code, text) = (error.code.to_wire(), error.msg.to_owned());
        if error.fatal {
            return Ok(Said::Closed(code, text));
        }
        if error.rid == 0 {
            return Ok(Said::Complaint(code, text));
        }
        let asked = self.asked.remove(&error.rid);
        ensure(asked.is_some(), unexpected::NAME, || {
            format!("{error:?} answers nothing")
        })?;
        Ok(Said::Failed(code, text))
    }

    fn on_confirm(&mut self, it: &Confirm<'_>) -> Result<Said, Violation> {
        if it.nack {
            // The queue is full, or the disk.
            let is_allowed = it.code == ReplyCode::ResourceError && it.upto == 0;
            ensure(is_allowed, unexpected::NAME, || format!("{it:?}"))?;
            return Ok(Said::Verdict {
                number: it.seq,
                multiple: false,
                is_taken: false,
            });
        }
        ensure(it.upto > self.confirmed, unexpected::NAME, || {
            format!("{it:?} after {}", self.confirmed)
        })?;
        self.confirmed = it.upto;
        Ok(Said::Verdict {
            number: it.upto,
            multiple: true,
            is_taken: true,
        })
    }
}

fn content(props: Props<'_>, headers: RawMap<'_>, body: &[u8]) -> Result<Content, Violation> {
    let properties = contents::fire_raw(props, headers);
    let (tag, deaths) = contents::read(Door::Fire, &properties)?;
    Ok(Content {
        properties,
        body: body.to_vec(),
        tag,
        deaths,
    })
}
