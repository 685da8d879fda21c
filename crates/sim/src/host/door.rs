//! Requests that no Fila frame carries: they come through the HTTP door, one at a time.

use tanda_engine::{AdminReply, AdminRequest, ConnId, Event, ReplyTo, Request};

use super::{CHANNEL_MAX, Host};

/// The door's connection, beyond all others.
pub(super) const DOOR: ConnId = ConnId(u64::MAX);

/// The request under way and its answer.
#[derive(Default)]
pub(super) struct Door {
    is_asked: bool,
    answer: Option<Answer>,
}

/// What became of a request.
pub(crate) enum Answer {
    Said(Box<AdminReply>),
    /// The log has failed, or the process ended: nobody knows.
    Unknown,
}

impl Host {
    /// Asks, unless something is asked already or the channel is full. True when it was asked.
    pub(crate) fn ask_door(&mut self, request: AdminRequest) -> bool {
        let is_free = !self.door.is_asked && self.door.answer.is_none();
        if !is_free || self.node.is_none() || self.channel.len() >= CHANNEL_MAX {
            return false;
        }
        self.door.is_asked = true;
        let reply = ReplyTo {
            conn: DOOR,
            token: 0,
        };
        self.channel.push_back(Request::Admin { reply, request });
        true
    }

    /// The answer, once there is one.
    pub(crate) const fn door_answer(&mut self) -> Option<Answer> {
        self.door.answer.take()
    }

    pub(super) fn on_door_event(&mut self, event: Event) {
        self.door.is_asked = false;
        self.door.answer = match event {
            Event::Admin { reply, .. } => Some(Answer::Said(reply)),
            Event::StorageFailed { .. }
            | Event::Published { .. }
            | Event::Settled { .. }
            | Event::Subscribed { .. }
            | Event::SubscribeFailed { .. }
            | Event::Delivery { .. }
            | Event::Committed { .. }
            | Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. }
            | Event::Got { .. }
            | Event::SubscriptionEnded { .. } => Some(Answer::Unknown),
        };
    }

    /// The process is gone.
    pub(super) fn lose_door(&mut self) {
        if core::mem::take(&mut self.door.is_asked) {
            self.door.answer = Some(Answer::Unknown);
        }
    }
}
