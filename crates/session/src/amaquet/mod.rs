//! One Amaquet connection.
//!
//! ```text
//!                 on_bytes
//!  socket ──────► frames ─► Link::serve ─► hello, authority, command, ..
//!                               │ answers at once   │
//!                               ▼                   ▼ next_request
//!  socket ◄────── Outbound ◄─ replies ◄─────────  engine
//!         output                        on_event
//! ```
//!
//! A driver treats it as [`crate::Session`] says. Commands are told apart by their request id and
//! answered as the engine answers them. Everything else is done before the next frame is looked at.
//!
//! Where the specification is silent:
//!
//! - What is looked at first: whether somebody has logged in (UNAUTHENTICATED), whether there is
//!   such an opcode, whether the request id is free, whether there is room (OVERLOADED), the
//!   payload, the permissions. Faults of the frame itself come before all that.
//! - The time for a frame begins with its first byte and grows by a second for each 64 KiB that
//!   came, so that a slow line can bring a large payload. It does not run while the server does
//!   not read.
//! - A payload counts as declared until its command is answered. One that finds no room: the
//!   connection closes without an answer to it.
//! - Before a close for a fault of a frame, and when the peer sends no more, commands that came
//!   before are answered; those that wait are cancelled: a connection that was closed looks like
//!   one whose peer still reads, and what was taken for it would be lost.
//! - CANCEL finds every command that is not answered; one that does not wait goes on and answers as
//!   it does.
//! - Answers that took something and were not wholly written when the connection ended go back: the
//!   item to its list, the lock to who waits for it, messages to their queue. Events that come
//!   after [`crate::Session::close`] count as not written; what is not offered to the session any
//!   more, its driver gives back.
//! - A subscription that ends without its client's doing (its exchange was deleted, the permission
//!   is gone) is answered once more, with the error.
//! - Settings of queues that are left out are the broker's defaults; `max_attempts` 0 is without
//!   end, and a message without a part of the ordering key is refused. A push to a queue that is
//!   not there, or to a dead-letter queue, fails as a whole, an id that is none by itself.
//! - `queue.stats` tells the age of the oldest message that could be delivered, and `queue.redrive`
//!   as `left` how many messages the dead-letter queue has then.
//! - Of messages that do not fit an answer together those that fit come, and the others go back;
//!   when none fits: PAYLOAD_TOO_LARGE. An event that fits no frame counts as dropped.
//! - An answer may be longer than `max_payload`, up to the hard limit: text has escapes, and bytes
//!   become base64.

mod active;
mod authority;
mod claims;
mod command;
mod config;
mod driven;
mod endings;
mod events;
mod fields;
mod hello;
mod input;
mod key_ops;
mod key_replies;
mod link;
mod message;
mod on_pubsub;
mod on_queue;
mod on_server;
mod outbound;
mod popped;
mod queue_replies;
mod queue_settings;
mod subs;
mod time;
mod undelivered;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{ConnId, Event, Millis, Request};

use active::Active;
use authority::Authority;
pub use claims::AmaquetShared;
pub use config::{AmaquetConfig, AmaquetLimits, NodeIdentity, ServerFacts};
use input::Partial;
use link::{Link, Vhost};
use outbound::{Asked, Outbound};

use subs::Subs;

use crate::requests::Requests;

/// One connection's state. Without I/O, clock and threads.
#[derive(Debug)]
pub struct AmaquetSession {
    link: Link,
    state: State,
    /// The frame whose beginning is in the input.
    partial: Option<Partial>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open,
    Closing(Closing),
    Gone,
}

/// No request is taken any more; answers under way still go out.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// When to close although answers are missing.
    give_up_at: Millis,
}

impl AmaquetSession {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(conn: ConnId, config: Arc<AmaquetConfig>, now: Millis) -> Self {
        let authority = Authority::new(config.authentication);
        let link = Link {
            conn,
            config,
            now,
            active: Active::default(),
            requests: Requests::new(conn),
            outbound: Outbound::default(),
            authority,
            vhost: Vhost::Missing,
            subs: Subs::default(),
            deferred: VecDeque::new(),
            deferred_bytes: 0,
            is_connected: false,
            was_connected: false,
        };
        Self {
            link,
            state: State::Open,
            partial: None,
        }
    }

    /// See [`crate::Session::on_bytes`].
    pub fn on_bytes(&mut self, now: Millis, input: &mut BytesMut) {
        self.tell(now);
        self.take_frames(input);
        self.heed_reading();
    }

    /// See [`crate::Session::next_request`].
    #[must_use]
    pub fn next_request(&mut self) -> Option<Request> {
        self.link.requests.pop(self.link.now)
    }

    /// See [`crate::Session::on_refused`]. What the peer can repeat is answered with OVERLOADED;
    /// the rest is offered again by `next_request` after [`AmaquetSession::next_deadline`].
    pub fn on_refused(&mut self, request: Request) {
        let token = request.answer_to().map(|reply| reply.token);
        match token.and_then(|token| self.link.active.remove(token)) {
            Some(entry) => {
                let failure = self.link.overloaded("the broker has no room for more now");
                let asked = Asked::command(entry.request_id);
                self.link.outbound.failure(asked, &failure);
            }
            None => self.link.requests.keep(self.link.now, request),
        }
        self.heed_reading();
    }

    /// See [`crate::Session::on_event`].
    pub fn on_event(&mut self, now: Millis, event: Event) {
        self.tell(now);
        match self.state {
            State::Open | State::Closing(_) => self.link.on_event(event),
            State::Gone if self.link.was_connected => self.link.on_event_of_nobody(event),
            State::Gone => {}
        }
        self.link.report_drained();
        self.heed_reading();
    }

    /// See [`crate::Session::output`].
    pub fn output(&mut self) -> &mut BytesMut {
        self.link.outbound.writing()
    }

    /// The socket took this many bytes of the output.
    pub fn on_written(&mut self, bytes: usize) {
        self.link.outbound.on_written(bytes);
        self.link.count_left();
        self.link.take_deferred();
        self.link.report_drained();
        self.link.outbound.on_idle();
        self.heed_reading();
    }

    /// Does what is due at `now`.
    pub fn on_timer(&mut self, now: Millis) {
        self.tell(now);
        self.cut_off_when_late();
        self.link.report_left_when_due();
        self.heed_reading();
    }

    /// When [`AmaquetSession::on_timer`] has something to do. May change with every call.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let state = match self.state {
            State::Open => {
                let frame = self.frame_deadline();
                let key = self.link.authority.deadline();
                frame.into_iter().chain(key).min()
            }
            State::Closing(closing) => Some(closing.give_up_at).filter(|_| !self.is_closing()),
            State::Gone => None,
        };
        let all = [
            state,
            self.link.requests.deadline(),
            self.link.subs.deadline(),
        ];
        all.into_iter().flatten().min()
    }

    /// See [`crate::Session::wants_read`].
    #[must_use]
    pub fn wants_read(&self) -> bool {
        match self.state {
            State::Open => self.link.has_room(),
            State::Closing(_) => true,
            State::Gone => false,
        }
    }

    /// Whether all is said: write the output, then close the socket.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        match self.state {
            State::Open => false,
            State::Closing(closing) => {
                let is_answered = self.link.active.is_empty() && !self.link.subs.are_starting();
                is_answered || closing.give_up_at <= self.link.now
            }
            State::Gone => true,
        }
    }

    /// See [`crate::Session::held_bytes`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.link.outbound.held_bytes() + self.link.deferred_bytes
    }

    /// Panics when the state contradicts itself. For tests and the simulator.
    pub fn assert_invariants(&self) {
        self.link.active.assert_invariants();
        self.link.subs.assert_invariants();
        self.link.outbound.assert_invariants();
    }

    fn tell(&mut self, now: Millis) {
        self.link.now = self.link.now.max(now);
        let deadline = self.link.authority.deadline();
        if deadline.is_some_and(|at| at <= self.link.now) {
            self.link.check_key();
        }
    }
}
