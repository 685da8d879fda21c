//! SUBSCRIBE, UNSUBSCRIBE and events.
//!
//! A subscription is a watch of the engine: what it does not take in time is lost, and counted. So
//! that the engine knows how much is under way, it is told how many events have left.

use std::collections::{BTreeMap, VecDeque};

use tanda_engine::{Millis, Permission, Request, SubId, TopologyError, WatchSpec, WatchedMessage};
use tanda_wire::amaquet::command::ValueType;
use tanda_wire::amaquet::envelope::Failure;
use tanda_wire::amaquet::frame::{PAYLOAD_BYTES_HARD_MAX, write_frame};
use tanda_wire::amaquet::json::Writer;
use tanda_wire::amaquet::{ErrorCode, Header, Opcode};

use super::fields::{Fields, mistyped, out_of_limits};
use super::link::{Link, VHOST_TOKEN};
use super::message::NAME_BYTES_MAX;
use super::outbound::Asked;
use super::time::rfc3339;
use crate::convert::to_amaquet::payload;
use crate::pending::consumer_token;

/// Events of a subscription under way when nothing else is asked for.
const BUFFER_DEFAULT: u64 = 256;
/// Most events that can be asked for.
const BUFFER_MAX: u64 = 65_536;

/// How long the engine may wait to hear that events have left, unless it is a good part of the
/// buffer.
const LEFT_HOLD_MS: u64 = 20;

/// Key and channel.
type Name = (Box<str>, Box<str>);

/// A subscription.
#[derive(Debug)]
struct Sub {
    request_id: u64,
    name: Name,
    buffer: u32,
    /// Events that have left and were not told of.
    left: u32,
    /// Events that the peer does not get, as they fit no frame.
    lost: u64,
}

/// The subscriptions of a connection.
#[derive(Debug, Default)]
pub(super) struct Subs {
    by_token: BTreeMap<u32, Sub>,
    by_name: BTreeMap<Name, u32>,
    by_id: BTreeMap<u64, u32>,
    made: u32,
    /// The one that the engine has not answered.
    starting: Option<u32>,
    /// Events on their way: where each ends in the stream, and whose it is.
    under_way: VecDeque<(u64, u32)>,
    /// When the engine must be told of events that have left.
    left_due: Option<Millis>,
}

impl Subs {
    /// Whether one has begun that the engine has not answered.
    pub(super) const fn are_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// The key and channel of the subscription of a request id.
    fn name_of(&self, request_id: u64) -> Option<(&str, &str)> {
        let sub = self.by_token.get(self.by_id.get(&request_id)?)?;
        let (key, channel) = &sub.name;
        Some((key, channel))
    }

    /// When the engine must be told of events that have left.
    pub(super) const fn deadline(&self) -> Option<Millis> {
        self.left_due
    }

    fn insert(&mut self, sub: Sub) -> u32 {
        let by_token = &self.by_token;
        let token = consumer_token(&mut self.made, |token| {
            token == VHOST_TOKEN || by_token.contains_key(&token)
        });
        self.by_name.insert(sub.name.clone(), token);
        self.by_id.insert(sub.request_id, token);
        self.by_token.insert(token, sub);
        token
    }

    fn remove(&mut self, token: u32) -> Option<Sub> {
        let sub = self.by_token.remove(&token)?;
        self.by_name.remove(&sub.name);
        self.by_id.remove(&sub.request_id);
        Some(sub)
    }

    /// Panics when the tables contradict each other.
    pub(super) fn assert_invariants(&self) {
        let all = self.by_token.len();
        assert_eq!(all, self.by_name.len(), "subscriptions by name");
        assert_eq!(all, self.by_id.len(), "subscriptions by id");
        let starting = self
            .starting
            .is_none_or(|it| self.by_token.contains_key(&it));
        assert!(starting, "a subscription that starts is there");
    }
}

impl Link {
    /// Whether a request id is that of a subscription, unless the request replaces it.
    pub(super) fn is_subscription(&self, asked: Asked, payload: &[u8]) -> bool {
        let Some((key, channel)) = self.subs.name_of(asked.request_id) else {
            return false;
        };
        if asked.opcode != Opcode::Subscribe {
            return true;
        }
        let same = |name: &str, is: &str| {
            let fields = Fields::read(payload);
            fields.and_then(|it| it.text(name)).is_ok_and(|it| it == is)
        };
        !(same("key", key) && same("channel", channel))
    }

    /// Begins SUBSCRIBE.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn on_subscribe(&mut self, asked: Asked, payload: &[u8]) -> Result<(), Failure> {
        let fields = Fields::read(payload)?;
        let name = name_in(fields)?;
        let buffer = match fields.optional("buffer") {
            None => BUFFER_DEFAULT,
            Some(value) => value
                .as_u64()
                .ok_or_else(|| mistyped("buffer", ValueType::U64, value))?,
        };
        if !(1..=BUFFER_MAX).contains(&buffer) {
            return Err(out_of_limits("buffer", buffer.to_string(), "1 to 65536"));
        }
        if !self.authority.may(Permission::Consume, &name.0) {
            return Err(self.forbid("SUBSCRIBE", Permission::Consume, &name.0));
        }
        let vhost = self.vhost()?;
        if let Some(token) = self.subs.by_name.get(&name) {
            self.unwatch(*token);
        }
        let max = self.config.limits.subscriptions_max;
        if self.subs.by_token.len() >= max as usize {
            return Err(self.overloaded(format!("this connection has {max} subscriptions")));
        }
        let buffer = u32::try_from(buffer).unwrap_or(u32::MAX);
        let spec = Box::new(WatchSpec {
            vhost,
            exchange: (&*name.0).into(),
            pattern: (&*name.1).into(),
            buffer,
        });
        let token = self.subs.insert(Sub {
            request_id: asked.request_id,
            name,
            buffer,
            left: 0,
            lost: 0,
        });
        self.subs.starting = Some(token);
        let sub = self.sub_id(token);
        self.requests.push(Request::Watch { sub, spec });
        Ok(())
    }

    /// The engine has begun a watch, or refused it.
    pub(super) fn on_watching(&mut self, token: u32, result: Result<(), TopologyError>) {
        if self.subs.starting == Some(token) {
            self.subs.starting = None;
        }
        let Some(sub) = self.subs.by_token.get(&token) else {
            return;
        };
        let asked = asked_by(sub);
        match result {
            Ok(()) => {
                let (key, channel) = &sub.name;
                self.outbound.result(asked, |out| {
                    out.object(|out| {
                        out.key("key").str(key);
                        out.key("channel").str(channel);
                    });
                });
            }
            Err(error) => {
                self.subs.remove(token);
                let failure = self.topology_failure(error);
                self.outbound.failure(asked, &failure);
            }
        }
    }

    /// Answers UNSUBSCRIBE.
    ///
    /// # Errors
    /// The payload makes no sense.
    pub(super) fn on_unsubscribe(&mut self, asked: Asked, payload: &[u8]) -> Result<(), Failure> {
        let name = name_in(Fields::read(payload)?)?;
        let token = self.subs.by_name.get(&name).copied();
        if let Some(token) = token {
            self.unwatch(token);
        }
        self.outbound.result(asked, |out| {
            out.object(|out| out.key("unsubscribed").bool(token.is_some()));
        });
        Ok(())
    }

    fn unwatch(&mut self, token: u32) -> Option<Sub> {
        let removed = self.subs.remove(token)?;
        if self.subs.starting == Some(token) {
            self.subs.starting = None;
        }
        let sub = self.sub_id(token);
        self.requests.push(Request::Unwatch { sub });
        Some(removed)
    }

    const fn sub_id(&self, token: u32) -> SubId {
        let conn = self.conn;
        SubId { conn, token }
    }

    /// Sends an event.
    pub(super) fn on_watched(&mut self, token: u32, message: &WatchedMessage) {
        let Some(sub) = self.subs.by_token.get_mut(&token) else {
            return self.outbound.count_drained(message.budget_bytes());
        };
        let (key, lost) = (&sub.name.0, sub.lost);
        let mut written = Ok(());
        self.outbound.deliveries(message.budget_bytes(), |out| {
            let header = Header::event(sub.request_id);
            written = write_frame(out, header, PAYLOAD_BYTES_HARD_MAX, |out| {
                write_event(&mut Writer::new(out), key, message, lost);
            });
        });
        match written {
            Ok(()) => sub.lost = 0,
            Err(_) => sub.lost += message.dropped + 1,
        }
        let end = self.outbound.queued();
        self.subs.under_way.push_back((end, token));
        if written.is_err() {
            // Nothing of it has to leave.
            self.outbound.on_written(0);
            self.count_left();
        }
    }

    /// The engine ended a watch: its exchange is gone.
    pub(super) fn on_watch_ended(&mut self, token: u32) {
        let text = "the key of the subscription was deleted";
        let failure = Failure::new(ErrorCode::NotFound, text.to_owned());
        if let Some(sub) = self.subs.remove(token) {
            self.outbound.failure(asked_by(&sub), &failure);
        }
    }

    /// Ends subscriptions to what the caller may not consume (any more), and says so.
    pub(super) fn end_forbidden_subscriptions(&mut self) {
        let may = |sub: &Sub| self.authority.may(Permission::Consume, &sub.name.0);
        let all = self.subs.by_token.iter();
        let forbidden: Vec<u32> = all
            .filter(|(_, sub)| !may(sub))
            .map(|(token, _)| *token)
            .collect();
        let (code, text) = match self.authority.caller {
            Some(_) => (
                ErrorCode::Forbidden,
                "the permission to consume this was taken away",
            ),
            None => (
                ErrorCode::Unauthenticated,
                "the API key of this connection is no good any more",
            ),
        };
        let failure = Failure::new(code, text.to_owned());
        for token in forbidden {
            if let Some(sub) = self.unwatch(token) {
                self.outbound.failure(asked_by(&sub), &failure);
            }
        }
    }

    /// Ends all subscriptions: the connection is about to close.
    pub(super) fn end_subscriptions(&mut self) {
        let all: Vec<u32> = self.subs.by_token.keys().copied().collect();
        for token in all {
            if self.subs.starting != Some(token) {
                self.unwatch(token);
            }
        }
    }

    /// Notes which events have left; tells the engine at once when it is a good part of a buffer.
    pub(super) fn count_left(&mut self) {
        let written = self.outbound.queued() - self.outbound.unwritten();
        while let Some((end, token)) = self.subs.under_way.front().copied()
            && end <= written
        {
            self.subs.under_way.pop_front();
            let Some(sub) = self.subs.by_token.get_mut(&token) else {
                continue;
            };
            sub.left += 1;
            if sub.left >= (sub.buffer / 4).max(1) {
                self.report_left(token);
            } else {
                let due = self.now.after_ms(LEFT_HOLD_MS);
                self.subs.left_due.get_or_insert(due);
            }
        }
    }

    /// Tells the engine of all events that have left.
    pub(super) fn report_left_when_due(&mut self) {
        if self.subs.left_due.is_none_or(|at| at > self.now) {
            return;
        }
        self.subs.left_due = None;
        let all: Vec<u32> = self.subs.by_token.keys().copied().collect();
        for token in all {
            self.report_left(token);
        }
    }

    fn report_left(&mut self, token: u32) {
        let sub = self.sub_id(token);
        let known = self.subs.by_token.get_mut(&token);
        let events = known.map_or(0, |sub| core::mem::take(&mut sub.left));
        if events > 0 {
            self.requests.push(Request::WatchDrained { sub, events });
        }
    }
}

fn asked_by(sub: &Sub) -> Asked {
    Asked {
        opcode: Opcode::Subscribe,
        request_id: sub.request_id,
    }
}

/// The key and channel of a payload.
fn name_in(fields: Fields<'_>) -> Result<Name, Failure> {
    let text = |name: &str| {
        let text = fields.text(name)?;
        if text.len() > NAME_BYTES_MAX {
            let found = format!("{} bytes", text.len());
            return Err(out_of_limits(name, found, "at most 255 bytes"));
        }
        Ok(text.into())
    };
    Ok((text("key")?, text("channel")?))
}

fn write_event(out: &mut Writer<'_>, key: &str, message: &WatchedMessage, lost: u64) {
    out.object(|out| {
        out.key("key").str(key);
        out.key("channel").str(&message.channel);
        payload(message.form, &message.content).write(out.key("payload"));
        out.key("published_at").str(&rfc3339(message.published_at));
        out.key("dropped").u64(message.dropped.saturating_add(lost));
    });
}
