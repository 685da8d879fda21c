//! The subscriptions of a client, which outlive its connections.
//!
//! Owns: what is needed to open a subscription again, where its deliveries go, and how many came.
//! Refuses to know: how deliveries are read, and when connections come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use tanda_wire::firemq::RawMap;
use tanda_wire::firemq::consume::Subscribe;
use tokio::sync::{mpsc, oneshot};

use crate::core::CreditWindow;
use crate::fire::core::Received;
use crate::fire::error::SubscriptionError;

/// What the reader of a subscription gets. After the last one the channel ends.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message.
    Message {
        /// The connection it came on.
        generation: u64,
        received: Received,
    },
    /// It ended, and why.
    End(SubscriptionError),
}

/// A subscription before it stands.
#[derive(Debug)]
pub(crate) struct NewSubscription {
    /// Its number: unique in this client, also on the wire.
    pub(crate) slot: u64,
    /// The queue, by its program's name.
    pub(crate) queue: Arc<str>,
    pub(crate) no_ack: bool,
    pub(crate) is_exclusive: bool,
    pub(crate) tag: String,
    /// As they are sent.
    pub(crate) arguments: Vec<u8>,
    pub(crate) window: Arc<CreditWindow>,
    pub(crate) incoming: mpsc::UnboundedSender<Incoming>,
}

impl NewSubscription {
    pub(crate) fn queue(&self) -> &str {
        &self.queue
    }

    pub(crate) fn first_credit(&self) -> u32 {
        self.window.prefetch()
    }

    /// Its request, with the name of the queue that the program uses.
    pub(crate) fn to_wire(&self, credit: u32) -> Subscribe<'_> {
        Subscribe {
            sub: self.slot,
            queue: &self.queue,
            credit: credit.into(),
            no_ack: self.no_ack,
            exclusive: self.is_exclusive,
            tag: &self.tag,
            args: RawMap::from_checked(&self.arguments),
            ..Subscribe::default()
        }
    }
}

/// How far a subscription is.
#[derive(Debug)]
enum Standing {
    /// There is no connection, or it is not open on it yet.
    Down,
    /// The server sends.
    Up,
    /// The server was asked to stop; whoever waits for that is told by the drop of the sender.
    Ending(Option<oneshot::Sender<()>>),
}

#[derive(Debug)]
struct Slot {
    subscription: NewSubscription,
    standing: Standing,
    /// Messages that came, over all connections.
    delivered: u64,
}

/// All subscriptions that stand or will stand again.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    slots: BTreeMap<u64, Slot>,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// The reader will see it.
    Buffered,
    /// Nobody reads it: it goes back to its queue, unless nothing is to be settled.
    Unread {
        /// Nothing is to be settled.
        no_ack: bool,
    },
    /// There was no credit for it; the subscription ends.
    TooMany,
}

impl Subscriptions {
    /// Records a subscription that stands.
    pub(crate) fn insert(&mut self, subscription: NewSubscription) {
        let slot = subscription.slot;
        let entry = Slot {
            subscription,
            standing: Standing::Up,
            delivered: 0,
        };
        self.slots.insert(slot, entry);
    }

    /// The connection is gone: none of them stands any more, and those that were to end have.
    pub(crate) fn detach(&mut self) -> Vec<Arc<str>> {
        let ended = self
            .slots
            .extract_if(.., |_, slot| matches!(slot.standing, Standing::Ending(_)));
        let queues = ended.map(|(_, slot)| slot.subscription.queue).collect();
        self.slots
            .values_mut()
            .for_each(|slot| slot.standing = Standing::Down);
        queues
    }

    /// All of them, to be opened again.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u64> {
        self.slots.keys().copied()
    }

    /// Those of a queue, by its program's name.
    pub(crate) fn of_queue(&self, queue: &str) -> Vec<u64> {
        self.slots
            .iter()
            .filter(|(_, slot)| &*slot.subscription.queue == queue)
            .map(|(id, _)| *id)
            .collect()
    }

    /// The queue of a subscription, by its program's name.
    pub(crate) fn queue(&self, slot: u64) -> Option<&str> {
        let entry = self.slots.get(&slot)?;
        Some(&entry.subscription.queue)
    }

    /// One that is to be opened again, and the credit for that, which leaves out what the reader
    /// still holds. `None`: it has ended.
    pub(crate) fn reopen(&self, slot: u64) -> Option<(&NewSubscription, u32)> {
        let Slot {
            subscription,
            delivered,
            ..
        } = self.slots.get(&slot)?;
        Some((subscription, subscription.window.reopen(*delivered)))
    }

    /// It stands again. `false`: it was cancelled meanwhile.
    pub(crate) fn attach(&mut self, slot: u64) -> bool {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return false;
        };
        entry.standing = Standing::Up;
        true
    }

    /// The credit to grant to a subscription now.
    pub(crate) fn take_grant(&self, slot: u64) -> Option<u32> {
        let entry = self.slots.get(&slot)?;
        // While it does not stand, opening it again grants what is due.
        if !matches!(entry.standing, Standing::Up) {
            return None;
        }
        entry.subscription.window.take_grant()
    }

    /// Passes a message on to its reader.
    pub(crate) fn deliver(&mut self, slot: u64, generation: u64, received: Received) -> Delivered {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return Delivered::Unread { no_ack: false };
        };
        let subscription = &entry.subscription;
        let no_ack = subscription.no_ack;
        if !matches!(entry.standing, Standing::Up) {
            return Delivered::Unread { no_ack };
        }
        entry.delivered += 1;
        if entry.delivered > subscription.window.granted() {
            return Delivered::TooMany;
        }
        let message = Incoming::Message {
            generation,
            received,
        };
        match subscription.incoming.send(message) {
            Ok(()) => Delivered::Buffered,
            Err(_reader_gone) => Delivered::Unread { no_ack },
        }
    }

    /// Ends a subscription with an error for its reader; returns its queue.
    pub(crate) fn end(&mut self, slot: u64, error: SubscriptionError) -> Option<Arc<str>> {
        let entry = self.slots.remove(&slot)?;
        // A reader that went away does not want to know.
        drop(entry.subscription.incoming.send(Incoming::End(error)));
        Some(entry.subscription.queue)
    }

    /// Ends all of them with this error.
    pub(crate) fn end_all(&mut self, error: &SubscriptionError) {
        let slots: Vec<u64> = self.slots().collect();
        for slot in slots {
            self.end(slot, error.clone());
        }
    }

    /// Its reader wants no more. `true`: ask the server to stop; until it has, deliveries on their
    /// way go back.
    pub(crate) fn begin_end(&mut self, slot: u64, waiting: Option<oneshot::Sender<()>>) -> Begun {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return Begun::Over(None);
        };
        match &mut entry.standing {
            Standing::Down => {
                let ended = self.slots.remove(&slot);
                Begun::Over(ended.map(|slot| slot.subscription.queue))
            }
            Standing::Up => {
                // The reader sees the end after what is buffered.
                let (closed, _) = mpsc::unbounded_channel();
                entry.subscription.incoming = closed;
                entry.standing = Standing::Ending(waiting);
                Begun::Ask
            }
            Standing::Ending(known) => {
                if waiting.is_some() {
                    *known = waiting;
                }
                Begun::Ending
            }
        }
    }

    /// Forgets a subscription; returns its queue.
    pub(crate) fn remove(&mut self, slot: u64) -> Option<Arc<str>> {
        self.slots.remove(&slot).map(|slot| slot.subscription.queue)
    }
}

/// How ending a subscription begins.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The server is to be asked to stop.
    Ask,
    /// It was asked already.
    Ending,
    /// The server knows nothing of it; its queue, if it was one.
    Over(Option<Arc<str>>),
}
