//! One channel: what its peer may say now, and what it has given and taken.

use std::collections::BTreeMap;

use tanda_engine::{PublishItem, Settlement, Span};

use super::confirms::Confirms;
use crate::batch;
use crate::permits::Written;
use crate::unacked::{HeldMessage, Unacked};

/// Number of a channel, and which opening of that number it was.
pub(super) type ChannelEpoch = (u16, u32);

/// Messages of one read, of any channels.
pub(super) type Batch = batch::Batch<ChannelEpoch>;

/// Messages of one channel.
pub(super) type Segment = batch::Segment<ChannelEpoch>;

/// Messages on their way.
pub(super) type Published = batch::Published<ChannelEpoch>;

/// Whether frames of a channel are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelState {
    /// Yes.
    Open,
    /// The server closed it: everything but the peer's answer to that is dropped.
    Closing,
}

/// One channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) number: u16,
    /// Which channel of the connection this is, whatever its number.
    pub(super) epoch: u32,
    pub(super) state: ChannelState,
    /// The engine owes an answer without which no further frame of this channel is taken.
    pub(super) is_busy: bool,
    /// What an empty queue name stands for.
    pub(super) last_queue: Option<String>,
    /// Consumers by their tags: the tokens they have on this connection.
    pub(super) consumers: BTreeMap<Box<str>, u32>,
    /// The queue in which replies to this channel arrive.
    pub(super) reply_queue: Option<String>,
    /// The delivery tag given last.
    pub(super) last_tag: u64,
    pub(super) unacked: Unacked,
    /// Of each consumer that starts; 0 = no limit.
    pub(super) prefetch: u16,
    /// Of all consumers together.
    pub(super) shared_prefetch: Option<u16>,
    pub(super) mode: Mode,
    pub(super) partial: Partial,
    /// The exchange that was published to last, by permission.
    pub(super) written: Option<Written>,
}

/// What becomes of publishes and settlements.
#[derive(Debug)]
pub(super) enum Mode {
    /// Nobody hears of it.
    Plain,
    /// Publishes are confirmed.
    Confirm(Confirms),
    /// They wait for a commit.
    Tx(Box<Tx>),
}

/// What waits for a commit.
#[derive(Debug, Default)]
pub(super) struct Tx {
    pub(super) batch: Batch,
    /// Taken from the channel's unacked messages.
    pub(super) settled: Vec<(u64, HeldMessage, Settlement)>,
    /// The exchange that was found to exist last.
    pub(super) found: Option<Vec<u8>>,
}

/// What must come next of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// A method.
    #[default]
    Idle,
    /// The content header.
    Header,
    /// So many bytes of body.
    Body(u64),
}

/// A message of which not all has come.
#[derive(Debug, Default)]
pub(super) struct Partial {
    pub(super) phase: Phase,
    /// Its envelope grows at the end of the connection's batch, from there on; else in `own`.
    pub(super) tail_at: Option<usize>,
    pub(super) own: Vec<u8>,
    pub(super) mandatory: bool,
    /// Ranges count from the start of the envelope.
    pub(super) item: PublishItem,
    pub(super) extra_keys: Vec<Span>,
    /// What has to stand behind the envelope: keys that are not in it.
    pub(super) bcc: Vec<Vec<u8>>,
    pub(super) number_key: Option<String>,
}

impl Channel {
    pub(super) fn new(number: u16, epoch: u32) -> Self {
        Self {
            number,
            epoch,
            state: ChannelState::Open,
            is_busy: false,
            last_queue: None,
            consumers: BTreeMap::new(),
            reply_queue: None,
            last_tag: 0,
            unacked: Unacked::default(),
            prefetch: 0,
            shared_prefetch: None,
            mode: Mode::Plain,
            partial: Partial::default(),
            written: None,
        }
    }

    /// Bytes it holds for its peer: of messages that have not come whole, or wait for a commit,
    /// and of what it remembers of deliveries.
    pub(super) fn held_bytes(&self) -> usize {
        let tx = match &self.mode {
            Mode::Tx(tx) => tx.batch.data.len() + tx.settled.len() * HeldMessage::BYTES,
            Mode::Plain | Mode::Confirm(_) => 0,
        };
        self.partial.own.len() + self.unacked.held_bytes() + tx
    }
}

/// The channels of one connection, by number.
#[derive(Debug, Default)]
pub(super) struct Channels {
    slots: Vec<Option<Box<Channel>>>,
    count: usize,
    epochs: u32,
}

impl Channels {
    /// The channel of a number.
    #[inline]
    pub(super) fn find(&mut self, number: u16) -> Option<&mut Channel> {
        self.slots.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// The same, to look at.
    pub(super) fn peek(&self, number: u16) -> Option<&Channel> {
        self.slots.get(usize::from(number))?.as_deref()
    }

    /// How many are open or closing.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Opens a number that is not in use.
    pub(super) fn open(&mut self, number: u16) {
        let at = usize::from(number);
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.epochs = self.epochs.wrapping_add(1);
        if let Some(slot) = self.slots.get_mut(at)
            && slot.is_none()
        {
            *slot = Some(Box::new(Channel::new(number, self.epochs)));
            self.count += 1;
        }
    }

    /// Forgets a number.
    pub(super) fn remove(&mut self, number: u16) {
        let slot = self.slots.get_mut(usize::from(number));
        if slot.and_then(Option::take).is_some() {
            self.count -= 1;
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    /// Their numbers.
    pub(super) fn numbers(&self) -> Vec<u16> {
        self.iter().map(|channel| channel.number).collect()
    }
}
