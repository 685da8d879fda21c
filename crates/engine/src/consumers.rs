//! Connections and their subscriptions.

use std::collections::BTreeMap;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::holds::Holds;
use crate::queues::QueueIndex;
use crate::schedule::Taker;
use crate::{
    ConnId, ConnLimits, FrameLimit, LeaseMode, Millis, PoolChange, QueueId, SubId, ThrottleSpec,
};

/// A connection as the scheduler sees it.
#[derive(Debug)]
pub(crate) struct Conn {
    id: ConnId,
    pub(crate) limits: ConnLimits,
    /// Budget bytes of deliveries that have not left for the peer.
    pub(crate) outbound_bytes: u64,
    /// Its consumers, whatever their standing.
    pub(crate) consumers: Vec<u32>,
    /// How many of them are subscriptions.
    pub(crate) subscriptions: u32,
    /// Its watches.
    pub(crate) watches: u32,
    /// Its exclusive queues.
    pub(crate) owned: Vec<QueueId>,
    /// Limits that several of its consumers share: deliveries still allowed. Others have none.
    pools: BTreeMap<u32, i64>,
}

/// A consumer that ends with the first turn in which it gets something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Once {
    /// How long its leases last; `None` = the queue's visibility timeout.
    pub(crate) lease_ms: Option<u64>,
}

/// What a consumer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A subscription.
    Live,
    /// A subscription that has ended; its connection still holds messages.
    Kept,
    /// Holds what its connection got without a subscription.
    Getter,
}

/// A subscription, or what is left of one.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) sub: SubId,
    /// Where its connection stands.
    conn: u32,
    pub(crate) queue: QueueIndex,
    /// Never used again; what operators see.
    pub(crate) number: u64,
    /// `None` = unlimited.
    pub(crate) credit: Option<u32>,
    pub(crate) terms: Terms,
    pub(crate) standing: Standing,
    /// It is in its queue's `turns`.
    pub(crate) is_ready: bool,
    /// Index of its batch in this pass; `NIL` = none.
    pub(crate) batch: u32,
    /// Messages whose lease ends with the connection.
    pub(crate) holds: Holds,
    /// When it is looked at whether it holds a message for too long.
    pub(crate) alarm: Option<Millis>,
}

/// All connections and subscriptions.
#[derive(Debug)]
pub(crate) struct Consumers {
    /// Where each connection stands in `conns`.
    by_conn: HashMap<ConnId, u32, RandomState>,
    conns: Vec<Option<Conn>>,
    free_conns: Vec<u32>,
    slots: Vec<Option<Consumer>>,
    free: Vec<u32>,
    by_number: HashMap<u64, u32, RandomState>,
    by_sub: HashMap<SubId, u32, RandomState>,
    next_number: u64,
}

impl Consumers {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            by_conn: HashMap::with_hasher(hasher.clone()),
            conns: Vec::new(),
            free_conns: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            by_number: HashMap::with_hasher(hasher.clone()),
            by_sub: HashMap::with_hasher(hasher.clone()),
            next_number: 1,
        }
    }

    pub(crate) fn connect(&mut self, conn: ConnId, limits: ConnLimits) {
        let fresh = Conn {
            id: conn,
            limits,
            outbound_bytes: 0,
            consumers: Vec::new(),
            subscriptions: 0,
            watches: 0,
            owned: Vec::new(),
            pools: BTreeMap::new(),
        };
        let number = self.free_conns.pop().unwrap_or_else(|| {
            self.conns.push(None);
            u32::try_from(self.conns.len() - 1).unwrap_or(u32::MAX)
        });
        let before = self.by_conn.insert(conn, number);
        assert!(before.is_none(), "{conn:?} connects twice");
        if let Some(place) = self.conns.get_mut(number as usize) {
            *place = Some(fresh);
        }
    }

    pub(crate) fn disconnect(&mut self, conn: ConnId) -> Option<Conn> {
        let number = self.by_conn.remove(&conn)?;
        self.free_conns.push(number);
        self.conns.get_mut(number as usize)?.take()
    }

    pub(crate) fn conn(&self, conn: ConnId) -> Option<&Conn> {
        let number = self.by_conn.get(&conn)?;
        self.conns.get(*number as usize)?.as_ref()
    }

    pub(crate) fn conn_mut(&mut self, conn: ConnId) -> Option<&mut Conn> {
        let number = self.by_conn.get(&conn)?;
        self.conns.get_mut(*number as usize)?.as_mut()
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
        let conn = self.conns.get_mut(it.conn as usize)?.as_mut()?;
        // Its own may be gone, and another one in its place.
        (conn.id == it.sub.conn).then_some((it, conn))
    }

    /// What a consumer that was in line takes messages for, if it can take one; it is not in line
    /// any more if it cannot.
    pub(crate) fn ready(&mut self, consumer: u32) -> Option<Taker> {
        let (it, conn) = self.with_conn(consumer)?;
        if !it.can_take(conn) {
            it.is_ready = false;
            return None;
        }
        Some(Taker {
            number: it.number,
            lease: it.terms.lease,
            frame_limit: it.terms.frame_limit,
            lease_ms: it.terms.once.and_then(|once| once.lease_ms),
        })
    }

    pub(crate) fn find(&self, sub: SubId) -> Option<u32> {
        self.by_sub.get(&sub).copied()
    }

    /// Those of a connection that asked once and wait.
    pub(crate) fn asking_of(&self, conn: ConnId) -> Vec<u32> {
        let all = self.conn(conn).map_or(&[][..], |it| &it.consumers);
        let asks = |consumer: &u32| self.at(*consumer).is_some_and(|it| it.terms.once.is_some());
        all.iter().copied().filter(asks).collect()
    }

    pub(crate) fn index_of(&self, number: u64) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    /// Adds a subscription, or one who holds what its connection gets; returns its index and
    /// number.
    pub(crate) fn insert(
        &mut self,
        sub: SubId,
        queue: QueueIndex,
        (terms, standing): (Terms, Standing),
    ) -> (u32, u64) {
        let number = self.next_number;
        self.next_number += 1;
        let consumer = Consumer {
            sub,
            conn: self.by_conn.get(&sub.conn).copied().unwrap_or(u32::MAX),
            queue,
            number,
            credit: terms.credit,
            terms,
            standing,
            is_ready: false,
            batch: u32::MAX,
            holds: Holds::default(),
            alarm: None,
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
        if standing == Standing::Live {
            self.by_sub.insert(sub, index);
        }
        if let Some(conn) = self.conn_mut(sub.conn) {
            conn.consumers.push(index);
            conn.subscriptions += u32::from(standing == Standing::Live);
        }
        (index, number)
    }

    /// A subscription ends; its connection still holds messages. Its token may be used again.
    pub(crate) fn keep(&mut self, consumer: u32) {
        let Some((it, conn)) = self.with_conn(consumer) else {
            return;
        };
        it.standing = Standing::Kept;
        it.credit = Some(0);
        conn.subscriptions -= 1;
        let sub = it.sub;
        self.by_sub.remove(&sub);
    }

    pub(crate) fn remove(&mut self, consumer: u32) -> Option<Consumer> {
        let it = self.slots.get_mut(consumer as usize)?.take()?;
        let is_live = it.standing == Standing::Live;
        self.by_number.remove(&it.number);
        if is_live {
            self.by_sub.remove(&it.sub);
        }
        self.free.push(consumer);
        if let Some(conn) = self.conn_mut(it.sub.conn) {
            conn.subscriptions -= u32::from(is_live);
            if let Some(at) = conn.consumers.iter().position(|index| *index == consumer) {
                conn.consumers.remove(at);
            }
        }
        Some(it)
    }
}

/// A subscription's terms.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// What it may take at first; `None` = unlimited.
    pub(crate) credit: Option<u32>,
    pub(crate) lease: LeaseMode,
    /// It asked once, and is no subscription.
    pub(crate) once: Option<Once>,
    /// The limit that it shares with others of its connection.
    pub(crate) pool: Option<u32>,
    /// Higher ones are served first.
    pub(crate) priority: i32,
    /// The largest message that it can be sent.
    pub(crate) frame_limit: FrameLimit,
    /// It ends when it holds a message for so long.
    pub(crate) ack_timeout_ms: Option<u64>,
    /// The throttles it declares.
    pub(crate) throttles: Box<[ThrottleSpec]>,
}

impl Terms {
    /// By what it stands in its queue's line.
    pub(crate) const fn place_in_line(&self) -> (i32, FrameLimit) {
        (self.priority, self.frame_limit)
    }
}

impl Consumer {
    /// It can be given a message, if it is its turn.
    pub(crate) fn can_take(&self, conn: &Conn) -> bool {
        self.credit != Some(0)
            && conn.has_room()
            && self.terms.pool.is_none_or(|pool| conn.pool_has_room(pool))
    }

    /// A message was delivered to it.
    pub(crate) fn take_credit(&mut self, conn: &mut Conn) {
        self.credit = self.credit.map(|left| left.saturating_sub(1));
        if let Some(pool) = self.terms.pool {
            conn.change_pool(pool, PoolChange::Add(-1));
        }
    }

    /// What a delivery took away, `count` deliveries that never left give back. Who only holds what
    /// it has, or got one message, takes no other for it.
    pub(crate) fn give_credit(&mut self, conn: &mut Conn, count: u32) {
        if self.standing == Standing::Live {
            self.credit = self.credit.map(|left| left.saturating_add(count));
        }
        if let Some(pool) = self.terms.pool {
            conn.change_pool(pool, PoolChange::Add(i64::from(count)));
        }
    }
}

impl Conn {
    /// The scheduler may hand it more.
    pub(crate) const fn has_room(&self) -> bool {
        self.outbound_bytes < self.limits.outbound_bytes_max
    }

    pub(crate) fn pool_has_room(&self, pool: u32) -> bool {
        self.pools.is_empty() || self.pools.get(&pool).is_none_or(|left| *left > 0)
    }

    pub(crate) fn change_pool(&mut self, pool: u32, change: PoolChange) {
        match change {
            PoolChange::Unlimited => _ = self.pools.remove(&pool),
            PoolChange::Set(left) => _ = self.pools.insert(pool, left),
            PoolChange::Add(more) => {
                if let Some(left) = self.pools.get_mut(&pool) {
                    *left = left.saturating_add(more);
                }
            }
        }
    }
}
