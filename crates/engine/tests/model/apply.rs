//! One operation, done to the engine and to the model.

use bytes::Bytes;
use tanda_engine::{
    ConnId, DeliveryBatch, Event, KeyKind, MessageId, Millis, Ordering, ReplyTo, Request,
    SettleBatch, SettleItem, Settlement, Span, SubId, SubscribeError, SubscribeSpec, ThrottleSpec,
};

use crate::harness::{Msg, batch, content};
use crate::model::{NewMessage, Sub};
use crate::ops::{Item, Op, Outcome, ThrottleKey};
use crate::world::{ADMIN, CONNS, World, conn_of, queue_of, seen_items};

/// A queue that is never there, one that takes nothing from outside, and the real ones.
fn target(number: u8) -> String {
    match number {
        38 => "nowhere".to_owned(),
        39 => "q0.dlq".to_owned(),
        // In runs, as real batches are.
        n => format!("q{}", n / 19),
    }
}

impl World {
    pub(crate) fn apply(&mut self, op: &Op, last: Vec<(ConnId, DeliveryBatch)>) {
        match op {
            Op::Publish(items) => self.publish(items),
            Op::Settle(items) => self.settle(items),
            Op::Subscribe {
                conn,
                credit,
                is_connection,
            } => self.subscribe(*conn, *credit, *is_connection),
            Op::Unsubscribe(sub) => {
                if let Some(sub) = self.choose_sub(*sub) {
                    self.model.unsubscribe(sub.number);
                    assert!(
                        self.handle(Request::Unsubscribe {
                            sub: sub.id,
                            held: tanda_engine::Held::Requeue,
                        })
                        .is_empty()
                    );
                }
            }
            Op::Disconnect(conn) => self.disconnect(conn_of(*conn)),
            Op::Lose(conn, breaks) => {
                self.lose(conn_of(*conn), last);
                if *breaks {
                    self.disconnect(conn_of(*conn));
                }
            }
            Op::Grant(sub, credit) => {
                if let Some(sub) = self.choose_sub(*sub) {
                    let it = self.model.sub(sub.number).unwrap();
                    it.credit = it.credit.map(|left| left + credit);
                    self.model.refresh(sub.number);
                    let (sub, credit) = (sub.id, *credit);
                    assert!(self.handle(Request::Grant { sub, credit }).is_empty());
                }
            }
            Op::Drained(conn, share) => {
                let conn = conn_of(*conn);
                let bytes = self.model.conn(conn).outbound / (1 + u64::from(*share));
                self.model.drained(conn, bytes);
                assert!(self.handle(Request::Drained { conn, bytes }).is_empty());
            }
            Op::Advance(ms) => self.advance(*ms),
            Op::Restart(down_ms) => self.restart(*down_ms),
            Op::Capture(slice) => self.begin_capture(*slice),
            Op::Redrive(queue, count) => self.redrive(&format!("q{queue}"), *count),
            Op::Purge(queue, dead) => self.purge(*queue, *dead),
            Op::ChangeTimes(queue) => self.change_times(format!("q{queue}")),
            Op::Attempts(queue, attempts) => self.limit_attempts(format!("q{queue}"), *attempts),
            Op::Delete(queue) => self.delete(format!("q{queue}")),
            Op::Create(queue) => self.create(*queue),
        }
    }

    fn choose_sub(&self, number: u8) -> Option<Sub> {
        let count = self.model.subs.len();
        self.model
            .subs
            .get(usize::from(number) % count.max(1))
            .cloned()
    }

    fn publish(&mut self, items: &[Item]) {
        let messages: Vec<_> = items.iter().map(message_of).collect();
        self.next_token += 1;
        let reply = ReplyTo {
            conn: ADMIN,
            token: self.next_token,
        };
        let batch = batch(&messages);
        let events = self.handle(Request::Publish { reply, batch });
        let [Event::Published { token, results }] = events.as_slice() else {
            panic!("one answer, not {events:?}");
        };
        assert_eq!((*token, results.len()), (reply.token, messages.len()));
        // What follows each other for one queue is stored together; then heads are dropped.
        let mut open: Option<String> = None;
        for (message, seen) in messages.iter().zip(results) {
            let name = &message.queue;
            let takes = self.model.queue(name).is_some_and(|q| !q.is_dead_letter);
            if takes && let Some(done) = open.take_if(|open| open != name) {
                self.model.drop_heads(&done);
            }
            let new = self.new_message(message);
            self.model.publish_one(name, &new, *seen);
            if let tanda_engine::PublishResult::Stored(id) = seen {
                self.known.push((name.clone(), *id));
                open = Some(name.clone());
            }
        }
        if let Some(done) = open {
            self.model.drop_heads(&done);
        }
    }

    /// What the queue's policies make of a message.
    fn new_message(&mut self, message: &Msg) -> NewMessage {
        let header = message.headers.first().map(|(_, value)| value.clone());
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let config = self.model.queue(&message.queue).map(|q| q.config.clone());
        let group = config.as_ref().and_then(|config| match &config.ordering {
            Ordering::None => None,
            Ordering::Queue => Some("the whole queue".to_owned()),
            Ordering::Key { key, .. } if key[0].kind == KeyKind::Header => header,
            Ordering::Key { .. } => some(&message.key),
        });
        let by_payload = config.is_some_and(|config| config.dedup_key.is_some());
        let dedup = if by_payload {
            Some(format!("{:?}", message.payload))
        } else {
            message.idempotency_key.clone()
        };
        let header = message.headers.first().map(|(_, value)| value.as_str());
        let bucket = match self.setup.throttle.map(|throttle| throttle.key) {
            None | Some(ThrottleKey::None) => String::new(),
            Some(ThrottleKey::FairnessKey) => message.key.clone(),
            Some(ThrottleKey::Header) => header.unwrap_or_default().to_owned(),
        };
        NewMessage {
            bucket,
            key: message.key.clone(),
            priority: message.priority,
            weight: message.weight,
            bytes: content(&message.headers, &message.payload).len() as u64,
            group,
            dedup,
            delay_ms: message.delay_ms,
        }
    }

    fn settle(&mut self, items: &[(u16, Outcome)]) {
        let mut leased: Vec<_> = Vec::new();
        for queue in &self.model.queues {
            let of = queue.messages.iter().filter(|m| m.lease().is_some());
            leased.extend(of.map(|m| (m.id, queue.name.clone())));
        }
        leased.sort();
        let mut chosen = Vec::new();
        for (number, outcome) in items {
            let number = usize::from(*number);
            let stale = number % 8 == 0 || leased.is_empty();
            let (id, name) = if stale {
                let Some((name, id)) = self.known.get(number % self.known.len().max(1)) else {
                    continue;
                };
                (*id, name.clone())
            } else {
                leased[number % leased.len()].clone()
            };
            let settlement = self.settlement(&name, id, *outcome);
            chosen.push((name, id, settlement));
        }
        if !chosen.is_empty() {
            self.settle_batch(&chosen);
        }
    }

    fn settlement(&mut self, name: &str, id: MessageId, outcome: Outcome) -> Settlement {
        let found = self
            .model
            .queue(name)
            .and_then(|q| Some(q.messages[q.find(id)?].clone()));
        match outcome {
            Outcome::Ack => Settlement::Ack,
            Outcome::Fail(retry_after_ms) => Settlement::Fail {
                error: Span::default(),
                retry_after_ms,
            },
            Outcome::Requeue => Settlement::Requeue,
            Outcome::Reject => Settlement::Reject,
            Outcome::Extend(by_ms) => Settlement::Extend { by_ms },
            Outcome::Unsent(is_current) => Settlement::Unsent {
                consumer: found
                    .as_ref()
                    .and_then(|m| m.lease())
                    .map_or(0, |l| l.consumer),
                // A count that nobody knows is asked for with one that cannot be.
                deliveries: match found.as_ref().and_then(|m| m.deliveries) {
                    Some(deliveries) if is_current => deliveries,
                    Some(deliveries) => deliveries + 1,
                    None => u32::MAX,
                },
                redrives: found.map_or(0, |m| m.redrives),
            },
        }
    }

    fn settle_batch(&mut self, chosen: &[(String, MessageId, Settlement)]) {
        let mut data = Vec::new();
        let mut items = Vec::new();
        for (name, id, settlement) in chosen {
            let start = u32::try_from(data.len()).unwrap();
            let len = u32::try_from(name.len()).unwrap();
            data.extend_from_slice(name.as_bytes());
            items.push(SettleItem {
                queue: tanda_engine::SettleQueue::Name(Span { start, len }),
                id: *id,
                settlement: *settlement,
            });
        }
        self.next_token += 1;
        let reply = ReplyTo {
            conn: ADMIN,
            token: self.next_token,
        };
        let data = Bytes::from(data);
        let batch = SettleBatch {
            data,
            items,
            ..SettleBatch::default()
        };
        let events = self.handle(Request::Settle { reply, batch });
        let mut expected = Vec::new();
        for run in chosen.chunk_by(|a, b| a.0 == b.0) {
            let items: Vec<_> = run.iter().map(|(_, id, what)| (*id, *what)).collect();
            expected.extend(self.model.settle(&run[0].0, &items));
        }
        let [Event::Settled { token, results }] = events.as_slice() else {
            panic!("one answer, not {events:?}");
        };
        assert_eq!((*token, results), (reply.token, &expected), "{chosen:?}");
    }

    fn subscribe(&mut self, number: u8, credit: Option<u32>, is_connection: bool) {
        self.next_token += 1;
        let sub = SubId {
            conn: conn_of(number),
            token: self.next_token,
        };
        let queue = queue_of(number);
        let lease = if is_connection {
            tanda_engine::LeaseMode::Connection
        } else {
            tanda_engine::LeaseMode::Timed
        };
        let spec = SubscribeSpec {
            queue: queue.clone(),
            credit,
            lease,
            throttles: self.throttles(&queue),
            ..SubscribeSpec::default()
        };
        let events = self.handle(Request::Subscribe { sub, spec });
        if self.model.queue(&queue).is_none() {
            let is_refused = matches!(
                events.as_slice(),
                [Event::SubscribeFailed { token, error: SubscribeError::QueueNotFound }]
                    if *token == sub.token
            );
            assert!(is_refused, "{events:?}");
            return;
        }
        let expected = self.model.subscribe(Sub {
            id: sub,
            number: 0,
            queue,
            credit,
            is_connection,
            in_line: false,
        });
        let is_welcome = matches!(
            events.as_slice(),
            [Event::Subscribed { token, consumer }]
                if (*token, *consumer) == (sub.token, expected)
        );
        assert!(is_welcome, "{events:?}");
    }

    fn throttles(&self, queue: &str) -> Vec<ThrottleSpec> {
        let declared = self.model.throttle.as_ref();
        let of = declared.filter(|_| !queue.ends_with(".dlq"));
        of.map(|it| it.declaration(queue)).into_iter().collect()
    }

    fn disconnect(&mut self, conn: ConnId) {
        let of = self.model.subs.iter().filter(|s| s.id.conn == conn);
        let numbers: Vec<_> = of.map(|s| s.number).collect();
        for number in numbers {
            self.model.unsubscribe(number);
        }
        self.model.conns.retain(|c| c.id != conn);
        assert!(self.handle(Request::Disconnect { conn }).is_empty());
        self.connect(conn);
    }

    fn lose(&mut self, conn: ConnId, last: Vec<(ConnId, DeliveryBatch)>) {
        for (_, batch) in last.into_iter().filter(|(to, _)| *to == conn) {
            let now = self.model.now;
            self.engine.undelivered(now, &mut self.log, conn, &batch);
            self.engine.assert_invariants();
            let items = seen_items(&batch);
            self.model.undelivered(&batch.queue, batch.consumer, &items);
        }
    }

    /// Time passes. Nothing says in which order messages die whose leases end at the same time;
    /// so they are told apart before.
    fn advance(&mut self, ms: u64) {
        let names: Vec<_> = self.model.queues.iter().map(|q| q.name.clone()).collect();
        for name in names {
            let mut taken: Vec<Millis> = Vec::new();
            let mut chosen = Vec::new();
            for (mut end, id) in self.model.lease_ends(&name) {
                let queue = self.model.queue(&name).unwrap();
                let limit = queue.config.retry.max_attempts;
                if queue.is_dead_letter || queue.get(id).failures + 1 < limit {
                    continue;
                }
                let is_taken = taken.contains(&end);
                while taken.contains(&end) {
                    end = end.after_ms(1);
                }
                taken.push(end);
                if is_taken {
                    let by_ms = self.model.now.until(end);
                    chosen.push((name.clone(), id, Settlement::Extend { by_ms }));
                }
            }
            if !chosen.is_empty() {
                self.settle_batch(&chosen);
            }
        }
        self.model.now = self.model.now.after_ms(ms);
    }
}

fn message_of(item: &Item) -> Msg {
    let mut message = Msg::to(&target(item.queue));
    message.key = ["", "a", "b", "c"][usize::from(item.key)].to_owned();
    message.weight = item.weight;
    message.priority = u8::from(item.is_urgent);
    message.delay_ms = item.delay_ms;
    message.payload = vec![b'x'; usize::from(item.payload)];
    message.idempotency_key = item.dedup.map(|n| format!("d{n}"));
    if let Some(group) = item.group {
        message = message.header("g", &group.to_string());
    }
    message
}

const _: () = assert!(CONNS == 8, "queue_of gives the last two the dead letters");
