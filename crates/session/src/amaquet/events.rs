//! What the engine says.
//!
//! Answers may be large, and many may come at once. While the peer does not read, they stay what
//! the engine gave, which shares its bytes with the keys; they become frames when there is room.

use tanda_engine::{Event, KeyAnswer};
use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::envelope::Failure;

use super::active::Entry;
use super::command::Call;
use super::link::{Link, VHOST_TOKEN};
use super::outbound::Asked;
use super::undelivered::{Lot, is_look};

impl Link {
    /// Takes an event, now or when the peer has read what it was told before.
    pub(super) fn on_event(&mut self, event: Event) {
        let is_answer = matches!(event, Event::Keys { .. } | Event::Got { .. });
        if is_answer && self.outbound.unwritten() > self.config.limits.reply_bytes_max {
            self.deferred_bytes += memory_bytes(&event);
            self.deferred.push_back(event);
        } else {
            self.take_event(event);
        }
    }

    /// Takes events that waited for the peer.
    pub(super) fn take_deferred(&mut self) {
        while self.outbound.unwritten() <= self.config.limits.reply_bytes_max
            && let Some(event) = self.deferred.pop_front()
        {
            self.deferred_bytes -= memory_bytes(&event);
            self.take_event(event);
        }
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Watched { token, message } => self.on_watched(token, &message),
            Event::Watching { token, result } => self.on_watching(token, result),
            Event::WatchEnded { token } => self.on_watch_ended(token),
            Event::Admin { token, reply } if token == VHOST_TOKEN => self.on_vhost(&reply),
            Event::StorageFailed { token } => self.say_storage_failed(token),
            Event::Keys { token, .. }
            | Event::Got { token, .. }
            | Event::Published { token, .. }
            | Event::Settled { token, .. }
            | Event::Admin { token, .. } => {
                if let Some(entry) = self.active.remove(token) {
                    self.on_answer(token, entry, event);
                }
            }
            // Answers to what this protocol never asks.
            Event::Committed { .. }
            | Event::Subscribed { .. }
            | Event::SubscribeFailed { .. }
            | Event::Delivery { .. }
            | Event::SubscriptionEnded { .. } => {}
        }
    }

    /// Answers a command.
    fn on_answer(&mut self, token: u32, entry: Entry, event: Event) {
        match (&entry.call, event) {
            (Call::Keys(spec), Event::Keys { vhost, result, .. }) => {
                self.say_keys(&entry, (token, vhost), spec, *result);
            }
            (Call::Push(queue), Event::Published { results, .. }) => {
                self.say_pushed(&entry, queue, &results);
            }
            (Call::Publish, Event::Published { results, .. }) => {
                self.say_published(&entry, &results);
            }
            (Call::Pop(queue), Event::Got { result, .. }) => {
                self.say_popped(&entry, queue, result);
            }
            (Call::Peek(queue), Event::Got { result, .. }) => {
                self.say_peeked(&entry, queue, result);
            }
            (Call::Counted(counts), Event::Got { result, .. }) => {
                self.say_stats(&entry, counts, result);
            }
            (Call::Settle { named, extends }, Event::Settled { results, .. }) => {
                self.say_settled(&entry, (named, *extends), &results);
            }
            (Call::Info, Event::Admin { reply, .. }) => self.say_info(&entry, &reply),
            (Call::Channels, Event::Admin { reply, .. }) => self.say_channels(&entry, *reply),
            (_, Event::Admin { reply, .. }) => self.on_queue_reply(entry, *reply),
            _ => self.say_confused(&entry),
        }
    }

    /// The engine answered another question: that is our own fault.
    pub(super) fn say_confused(&mut self, entry: &Entry) {
        let text = "the broker answered another question";
        let failure = Failure::new(ErrorCode::Internal, text.to_owned());
        let asked = Asked::command(entry.request_id);
        self.outbound.failure(asked, &failure);
    }

    /// The outcome of the token's command is unknown, and the broker will not find out.
    fn say_storage_failed(&mut self, token: u32) {
        if let Some(entry) = self.active.remove(token) {
            let text = "the log failed: the outcome of this command is unknown";
            let failure = Failure::new(ErrorCode::Internal, text.to_owned());
            let asked = Asked::command(entry.request_id);
            self.outbound.failure(asked, &failure);
        }
    }

    /// Takes an event of a connection that is gone: what it brought goes back.
    #[expect(clippy::wildcard_enum_match_arm, reason = "others bring nothing")]
    pub(super) fn on_event_of_nobody(&mut self, event: Event) {
        match event {
            Event::Keys {
                token,
                vhost,
                result,
            } => {
                if let Ok(answer) = *result
                    && answer.is_taken()
                {
                    let answer = Box::new(answer);
                    self.give_back_of_gone(Lot::Keys {
                        token,
                        vhost,
                        answer,
                    });
                }
            }
            Event::Got { result, .. } => {
                if let Ok(got) = result
                    && let Some(batch) = got.batch
                    && !is_look(&batch)
                {
                    self.give_back_of_gone(Lot::popped(&batch));
                }
            }
            _ => {}
        }
    }

    /// Gives everything back that has not reached the peer, whose connection is gone: the newest
    /// first.
    pub(super) fn give_all_back(&mut self) {
        while let Some(event) = self.deferred.pop_back() {
            self.on_event_of_nobody(event);
        }
        self.deferred_bytes = 0;
        for lot in self.outbound.unwritten_lots() {
            self.give_back_of_gone(lot);
        }
    }
}

/// Rough bytes of what an event holds.
fn memory_bytes(event: &Event) -> usize {
    let held = match event {
        Event::Keys { result, .. } => result.as_ref().as_ref().map_or(0, KeyAnswer::memory_bytes),
        Event::Got { result, .. } => {
            let batch = result.as_ref().ok().and_then(|got| got.batch.as_ref());
            let bytes = batch.map_or(0, |batch| batch.budget_bytes());
            usize::try_from(bytes).unwrap_or(usize::MAX)
        }
        Event::Watched { message, .. } => {
            usize::try_from(message.budget_bytes()).unwrap_or(usize::MAX)
        }
        Event::Published { .. }
        | Event::Watching { .. }
        | Event::WatchEnded { .. }
        | Event::Settled { .. }
        | Event::Committed { .. }
        | Event::Subscribed { .. }
        | Event::SubscribeFailed { .. }
        | Event::Delivery { .. }
        | Event::SubscriptionEnded { .. }
        | Event::Admin { .. }
        | Event::StorageFailed { .. } => 0,
    };
    size_of::<Event>().saturating_add(held)
}
