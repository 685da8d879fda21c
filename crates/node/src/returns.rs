//! Deliveries that never left: back to the engine, uncounted.

use tanda_engine::{ConnId, DeliveryBatch, Event, Millis, ReplyTo, Request, SubId};
use tanda_wal::Disk;

use crate::Node;
use crate::effects::{Undelivered, is_delivery_to, undelivered_of};

/// A delivery whose content cannot be read is given back to the engine after this long, not at
/// once: the engine would deliver it again at once, and fail again.
const UNREADABLE_PAUSE_MS: u64 = 1_000;

/// Leased messages of one delivery whose contents could not be read. There are no more of them than
/// fit the outbound budget of their connection, because they still weigh on it.
pub(crate) struct Unreadable {
    pub(crate) due_at: Millis,
    pub(crate) sub: SubId,
    pub(crate) batch: DeliveryBatch,
    /// What the disk holds is not what was written: no later try will do better.
    damaged: bool,
}

impl<D: Disk> Node<D> {
    /// Deliveries of a connection that goes away go back to the engine, its other effects go.
    pub(crate) fn return_of_conn(&mut self, conn: ConnId) {
        self.effects.remove_conn(conn, &mut self.undelivered);
        self.take_released(|to, _| to == conn);
        self.take_unreadable(|sub| sub.conn == conn);
        self.give_back(conn);
    }

    /// Deliveries of a subscription that ends go back to the engine.
    pub(crate) fn return_of_sub(&mut self, sub: SubId) {
        self.effects.remove_sub(sub, &mut self.undelivered);
        self.take_released(|to, event| to == sub.conn && is_delivery_to(event, sub.token));
        self.take_unreadable(|of| of == sub);
        self.give_back(sub.conn);
    }

    /// What was released but not drained has not left either.
    fn take_released(&mut self, gone: impl Fn(ConnId, &Event) -> bool) {
        if !self.released.iter().any(|(to, event)| gone(*to, event)) {
            return;
        }
        let mut released = core::mem::take(&mut self.released);
        for (to, event) in released.drain(..) {
            if !gone(to, &event) {
                self.released.push((to, event));
            } else {
                self.undelivered.extend(undelivered_of(event));
            }
        }
    }

    fn take_unreadable(&mut self, gone: impl Fn(SubId) -> bool) {
        if !self.unreadable.iter().any(|u| gone(u.sub)) {
            return;
        }
        for unreadable in core::mem::take(&mut self.unreadable) {
            if gone(unreadable.sub) {
                let batch = unreadable.batch;
                self.undelivered.push(Undelivered::Messages(batch));
            } else {
                self.unreadable.push_back(unreadable);
            }
        }
    }

    /// Keeps what could not be read until it is due.
    pub(crate) fn set_aside(&mut self, sub: SubId, batch: DeliveryBatch, damaged: bool) {
        let pause_ms = if damaged { 0 } else { UNREADABLE_PAUSE_MS };
        let unreadable = Unreadable {
            due_at: self.now.after_ms(pause_ms),
            sub,
            batch,
            damaged,
        };
        // In order of `due_at`: what is due now goes first.
        if damaged {
            self.unreadable.push_front(unreadable);
        } else {
            self.unreadable.push_back(unreadable);
        }
    }

    pub(crate) fn return_unreadable(&mut self) {
        while self
            .unreadable
            .front()
            .is_some_and(|u| u.due_at <= self.now)
            && let Some(unreadable) = self.unreadable.pop_front()
        {
            if unreadable.damaged {
                self.give_up(unreadable.sub, &unreadable.batch);
                continue;
            }
            let batch = unreadable.batch;
            self.undelivered.push(Undelivered::Messages(batch));
            self.give_back(unreadable.sub.conn);
        }
    }

    /// Leaves damaged messages to their leases: as failed attempts they end among the dead letters,
    /// whereas given back they would come first again, for ever, and take all of the consumer's
    /// credit and room from the sound ones behind them. Both return at once.
    fn give_up(&mut self, sub: SubId, batch: &DeliveryBatch) {
        let now = self.now;
        let credit = u32::try_from(batch.items.len()).unwrap_or(u32::MAX);
        let room = Request::Drained {
            conn: sub.conn,
            bytes: batch.budget_bytes(),
        };
        for request in [room, Request::Grant { sub, credit }] {
            self.with_engine(|engine, journal, out| engine.handle(now, journal, request, out));
        }
    }

    /// Gives all of `undelivered` back to the engine.
    fn give_back(&mut self, conn: ConnId) {
        let now = self.now;
        // The newest first: items of a list then come before each other as they were.
        while let Some(undelivered) = self.undelivered.pop() {
            match undelivered {
                Undelivered::Messages(batch) => {
                    self.counters.returned_messages += batch.items.len() as u64;
                    self.with_engine(|engine, journal, _| {
                        engine.undelivered(now, journal, conn, &batch);
                    });
                }
                Undelivered::Key {
                    token,
                    vhost,
                    answer,
                } => {
                    let request = Request::KeysUndelivered {
                        reply: ReplyTo { conn, token },
                        vhost,
                        answer: Box::new(answer),
                    };
                    self.with_engine(|engine, journal, out| {
                        engine.handle(now, journal, request, out);
                    });
                }
            }
        }
    }
}
