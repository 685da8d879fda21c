//! A consumer: subscriptions, credit, and settlements after its manner.

mod frames;

use std::collections::BTreeMap;

use tanda_engine::Permission;
use tanda_wire::fila::consume::{
    CancelConsume, Consume, Credit, ThrottleDeclaration, ThrottleLimit,
};
use tanda_wire::fila::property_key::{KeyPart, KeyPartKind, PropertyKey};

use super::settle::{Kind, Settle, write_settle};
use super::{Cx, Peer};
use crate::history::{Held, Holder, Need, Right, ThrottleDraw, main_of};
use crate::invariants::authority::Deaf;
use crate::random::Random;

/// How a consumer treats what it gets; percents of its actions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) subscriptions_max: usize,
    pub(crate) ack: u64,
    pub(crate) nack: u64,
    pub(crate) extend: u64,
    /// Drops what it holds; the rest of 100 leaves it to other consumers.
    pub(crate) forget: u64,
    /// Takes everything, dead letters too, and acks it.
    pub(crate) is_drainer: bool,
}

impl Manner {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let [ack, nack, extend, forget] = *random
            .pick(&[
                [90, 5, 2, 1],
                [50, 40, 5, 3],
                [10, 80, 5, 5],
                [0, 0, 20, 80],
                [40, 10, 40, 5],
                [20, 20, 0, 10],
            ])
            .unwrap_or(&[100, 0, 0, 0]);
        Self {
            subscriptions_max: random.length(5),
            ack,
            nack,
            extend,
            forget,
            is_drainer: false,
        }
    }

    pub(crate) const DRAINER: Self = Self {
        subscriptions_max: usize::MAX,
        ack: 100,
        nack: 0,
        extend: 0,
        forget: 0,
        is_drainer: true,
    };
}

/// See the module.
pub(crate) struct Consumer {
    manner: Manner,
    subscriptions: BTreeMap<u32, Subscription>,
    held: Vec<Held>,
    open: BTreeMap<u32, Settle>,
}

struct Subscription {
    queue: String,
    /// `None`: unlimited.
    granted: Option<u64>,
    received: u64,
    is_live: bool,
    /// The queue was surely there when it was sent.
    must_find: bool,
    /// To consume.
    right: Right,
    /// It gets nothing any more.
    deaf: Option<Deaf>,
}

impl Consumer {
    pub(crate) const fn new(manner: Manner) -> Self {
        Self {
            manner,
            subscriptions: BTreeMap::new(),
            held: Vec::new(),
            open: BTreeMap::new(),
        }
    }

    pub(crate) const fn is_drainer(&self) -> bool {
        self.manner.is_drainer
    }

    /// Every settlement was answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn act(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        if self.manner.is_drainer {
            return self.drain(random, peer, cx);
        }
        let live = self.subscriptions.values().filter(|sub| sub.is_live);
        let live = live.count();
        match random.below(10) {
            0..=2 if live < self.manner.subscriptions_max => self.subscribe(random, peer, cx),
            3 => self.grant(random, peer),
            4 if random.one_in(8) => self.cancel(random, peer),
            5 if !cx.history.pool.is_empty() => {
                let index = random.index(cx.history.pool.len());
                self.held.push(cx.history.pool.swap_remove(index));
            }
            _ => self.settle(random, peer, cx),
        }
    }

    /// Subscribes to everything and acks everything.
    fn drain(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        let names: Vec<String> = cx.history.queues.keys().cloned().collect();
        for name in names {
            for queue in [name.clone(), format!("{name}.dlq")] {
                if !self.subscriptions.values().any(|sub| sub.queue == queue) {
                    self.consume(peer, cx, (queue, 0));
                }
            }
        }
        while !self.held.is_empty() {
            self.settle(random, peer, cx);
        }
    }

    fn subscribe(&mut self, random: &mut Random, peer: &mut Peer, cx: &Cx<'_>) {
        let names: Vec<&String> = cx.history.queues.keys().collect();
        let Some(name) = random.pick(&names) else {
            return;
        };
        let queue = if random.percent(20) {
            format!("{name}.dlq")
        } else {
            (*name).clone()
        };
        let credit = match random.below(4) {
            0 => 0,
            1 => 1,
            _ => u32::try_from(random.length(50)).unwrap_or(1),
        };
        self.consume(peer, cx, (queue, credit));
    }

    fn consume(&mut self, peer: &mut Peer, cx: &Cx<'_>, (queue, credit): (String, u32)) {
        let facts = cx.history.queues.get(main_of(&queue).0);
        let must_find = facts.is_some_and(|facts| facts.is_there);
        let throttle = facts.and_then(|facts| facts.throttle.as_ref());
        let is_for_all = !self.manner.is_drainer || throttle.is_some_and(ThrottleDraw::is_quick);
        let throttle = throttle.filter(|_| is_for_all && !main_of(&queue).1);
        let right = right(cx, peer.holder, &queue);
        let id = peer.request(&Consume {
            queue: &queue,
            credit,
            throttles: throttle.map(declaration).into_iter().collect(),
        });
        self.subscriptions.insert(
            id,
            Subscription {
                queue,
                granted: (credit > 0).then_some(u64::from(credit)),
                received: 0,
                is_live: true,
                must_find,
                right,
                deaf: None,
            },
        );
    }

    fn grant(&mut self, random: &mut Random, peer: &mut Peer) {
        let ids: Vec<u32> = self.subscriptions.keys().copied().collect();
        let Some(id) = random.pick(&ids) else { return };
        let Some(sub) = self.subscriptions.get_mut(id) else {
            return;
        };
        let more = u32::try_from(random.length(30)).unwrap_or(1);
        if let Some(granted) = &mut sub.granted {
            *granted += u64::from(more);
        }
        peer.body(
            *id,
            &Credit {
                additional_credit: more,
            },
        );
    }

    fn cancel(&mut self, random: &mut Random, peer: &mut Peer) {
        let live = self.subscriptions.iter().filter(|(_, sub)| sub.is_live);
        let ids: Vec<u32> = live.map(|(id, _)| *id).collect();
        let Some(id) = random.pick(&ids) else { return };
        peer.body(*id, &CancelConsume {});
        if let Some(sub) = self.subscriptions.get_mut(id) {
            sub.is_live = false;
        }
    }

    fn settle(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        if self.held.is_empty() {
            return;
        }
        let count = random.length(self.held.len());
        let from = random.index(self.held.len() + 1 - count);
        let Manner {
            ack,
            nack,
            extend,
            forget,
            ..
        } = self.manner;
        let draw = random.below(100);
        if draw < ack + nack {
            let items: Vec<Held> = self.held.drain(from..from + count).collect();
            let kind = if draw < ack { Kind::Ack } else { Kind::Nack };
            self.send(random, peer, cx, (kind, items));
        } else if draw < ack + nack + extend {
            let items = self.held.get(from..from + count).unwrap_or_default();
            self.send(random, peer, cx, (Kind::Extend, items.to_vec()));
        } else {
            let items = self.held.drain(from..from + count);
            if draw < ack + nack + extend + forget {
                drop(items);
            } else {
                cx.history.pool.extend(items);
            }
        }
    }

    fn send(
        &mut self,
        random: &mut Random,
        peer: &mut Peer,
        cx: &mut Cx<'_>,
        (kind, held): (Kind, Vec<Held>),
    ) {
        let items = held.into_iter().map(|held| {
            let ms = match kind {
                Kind::Ack => None,
                Kind::Nack => random.one_in(2).then(|| random.below(1_500)),
                Kind::Extend => Some(random.between(1, 3_000)),
            };
            (held, ms)
        });
        let items: Vec<(Held, Option<u64>)> = items.collect();
        let id = write_settle(peer, kind, &items);
        let rights = items
            .iter()
            .map(|(held, _)| right(cx, peer.holder, &held.queue));
        let rights = rights.collect();
        for (held, ms) in &items {
            match kind {
                Kind::Ack | Kind::Nack => {
                    cx.history.on_settle_sent(cx.now, held, kind == Kind::Ack);
                }
                Kind::Extend => cx.history.on_extend_sent(cx.now, held, ms.unwrap_or(0)),
            }
        }
        let conn = peer.conn;
        cx.trace.note(cx.now, || {
            let word = match kind {
                Kind::Ack => "acks",
                Kind::Nack => "nacks",
                Kind::Extend => "extends",
            };
            let items: Vec<_> = items.iter().map(|(held, ms)| (held.id, ms)).collect();
            format!("  c{conn} {word} {items:x?} as {id}")
        });
        let sent_at = cx.now;
        self.open.insert(
            id,
            Settle {
                sent_at,
                kind,
                items,
                rights,
            },
        );
    }

    pub(crate) fn on_lost(&mut self, random: &mut Random, cx: &mut Cx<'_>) {
        self.subscriptions.clear();
        self.open.clear();
        // Leases outlive connections: what is held can be settled from another one.
        match random.below(3) {
            0 => self.held.clear(),
            1 => cx.history.pool.append(&mut self.held),
            _ => {}
        }
    }
}

/// To consume from this queue, or to settle what came from it.
fn right(cx: &Cx<'_>, holder: Holder, queue: &str) -> Right {
    let need = Need::Queue(Permission::Consume, queue);
    cx.history.keys.right(holder, cx.now, need)
}

fn declaration(throttle: &ThrottleDraw) -> ThrottleDeclaration<'_> {
    let by_key = KeyPart {
        kind: KeyPartKind::FairnessKey as u8,
        name: "",
    };
    ThrottleDeclaration {
        name: &throttle.name,
        limits: vec![ThrottleLimit {
            max_deliveries: throttle.deliveries,
            window_ms: throttle.window_ms,
        }],
        key: PropertyKey {
            parts: throttle.by_key.then_some(by_key).into_iter().collect(),
        },
        when_key_missing: 0,
    }
}
