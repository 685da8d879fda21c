//! Connections and their subscriptions.

use std::collections::BTreeSet;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::queues::QueueIndex;
use crate::{ConnId, ConnLimits, LeaseMode, MessageId, SubId, ThrottleSpec};

/// A connection as the scheduler sees it.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) limits: ConnLimits,
    /// Budget bytes of deliveries that have not left for the peer.
    pub(crate) outbound_bytes: u64,
    /// Its consumers.
    pub(crate) consumers: Vec<u32>,
}

/// A live subscription.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) sub: SubId,
    pub(crate) queue: QueueIndex,
    /// Never used again; what operators see.
    pub(crate) number: u64,
    /// `None` = unlimited.
    pub(crate) credit: Option<u32>,
    pub(crate) lease: LeaseMode,
    /// It is in its queue's `ready_consumers`.
    pub(crate) is_ready: bool,
    /// Index of its batch in this pass; `NIL` = none.
    pub(crate) batch: u32,
    /// Messages whose lease ends with the connection.
    pub(crate) held: BTreeSet<MessageId>,
    /// The throttles it declares.
    pub(crate) throttles: Box<[ThrottleSpec]>,
}

/// All connections and subscriptions.
#[derive(Debug)]
pub(crate) struct Consumers {
    conns: HashMap<ConnId, Conn, RandomState>,
    slots: Vec<Option<Consumer>>,
    free: Vec<u32>,
    by_number: HashMap<u64, u32, RandomState>,
    by_sub: HashMap<SubId, u32, RandomState>,
    next_number: u64,
}

impl Consumers {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            conns: HashMap::with_hasher(hasher.clone()),
            slots: Vec::new(),
            free: Vec::new(),
            by_number: HashMap::with_hasher(hasher.clone()),
            by_sub: HashMap::with_hasher(hasher.clone()),
            next_number: 1,
        }
    }

    pub(crate) fn connect(&mut self, conn: ConnId, limits: ConnLimits) {
        let fresh = Conn {
            limits,
            outbound_bytes: 0,
            consumers: Vec::new(),
        };
        let before = self.conns.insert(conn, fresh);
        assert!(before.is_none(), "{conn:?} connects twice");
    }

    pub(crate) fn disconnect(&mut self, conn: ConnId) -> Option<Conn> {
        self.conns.remove(&conn)
    }

    pub(crate) fn conn(&self, conn: ConnId) -> Option<&Conn> {
        self.conns.get(&conn)
    }

    pub(crate) fn conn_mut(&mut self, conn: ConnId) -> Option<&mut Conn> {
        self.conns.get_mut(&conn)
    }

    pub(crate) fn at(&self, consumer: u32) -> Option<&Consumer> {
        self.slots.get(consumer as usize)?.as_ref()
    }

    pub(crate) fn at_mut(&mut self, consumer: u32) -> Option<&mut Consumer> {
        self.slots.get_mut(consumer as usize)?.as_mut()
    }

    /// A consumer together with its connection.
    pub(crate) fn with_conn(&mut self, consumer: u32) -> Option<(&mut Consumer, &mut Conn)> {
        let it = self.slots.get_mut(consumer as usize)?.as_mut()?;
        let conn = self.conns.get_mut(&it.sub.conn)?;
        Some((it, conn))
    }

    /// Number and lease mode of a consumer that was in line, if it can take a message; it is not in
    /// line any more if it cannot.
    pub(crate) fn ready(&mut self, consumer: u32) -> Option<(u64, LeaseMode)> {
        let (it, conn) = self.with_conn(consumer)?;
        if it.credit == Some(0) || !conn.has_room() {
            it.is_ready = false;
            return None;
        }
        Some((it.number, it.lease))
    }

    pub(crate) fn find(&self, sub: SubId) -> Option<u32> {
        self.by_sub.get(&sub).copied()
    }

    pub(crate) fn by_number(&mut self, number: u64) -> Option<&mut Consumer> {
        let index = *self.by_number.get(&number)?;
        self.at_mut(index)
    }

    /// Adds a subscription; returns its index and number.
    pub(crate) fn insert(&mut self, sub: SubId, queue: QueueIndex, terms: Terms) -> (u32, u64) {
        let number = self.next_number;
        self.next_number += 1;
        let consumer = Consumer {
            sub,
            queue,
            number,
            credit: terms.credit,
            lease: terms.lease,
            is_ready: false,
            batch: u32::MAX,
            held: BTreeSet::new(),
            throttles: terms.throttles,
        };
        let index = if let Some(index) = self.free.pop() {
            if let Some(slot) = self.slots.get_mut(index as usize) {
                *slot = Some(consumer);
            }
            index
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "bounded by connections and limits"
            )]
            let index = self.slots.len() as u32;
            self.slots.push(Some(consumer));
            index
        };
        self.by_number.insert(number, index);
        self.by_sub.insert(sub, index);
        if let Some(conn) = self.conns.get_mut(&sub.conn) {
            conn.consumers.push(index);
        }
        (index, number)
    }

    pub(crate) fn remove(&mut self, consumer: u32) -> Option<Consumer> {
        let it = self.slots.get_mut(consumer as usize)?.take()?;
        self.by_number.remove(&it.number);
        self.by_sub.remove(&it.sub);
        self.free.push(consumer);
        if let Some(conn) = self.conns.get_mut(&it.sub.conn) {
            conn.consumers.retain(|index| *index != consumer);
        }
        Some(it)
    }
}

/// A subscription's terms.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) credit: Option<u32>,
    pub(crate) lease: LeaseMode,
    pub(crate) throttles: Box<[ThrottleSpec]>,
}

impl Conn {
    /// The scheduler may hand it more.
    pub(crate) const fn has_room(&self) -> bool {
        self.outbound_bytes < self.limits.outbound_bytes_max
    }
}
