//! What requests do to the model, and what they answer.

use tanda_engine::{
    ConnId, MessageId, Millis, MissingOrderingKey, Ordering, Overflow, PublishError, PublishResult,
    QueueChanges, QueueConfig, SettleError, SettleResult, Settlement, SubId,
};

use crate::model::{Conn, Message, Model, NewMessage, Place, Queue, Remembered, Sub};

impl Model {
    pub(crate) fn queue(&mut self, name: &str) -> Option<&mut Queue> {
        self.queues.iter_mut().find(|q| q.name == name)
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.queues.iter().position(|q| q.name == name)
    }

    pub(crate) fn create(&mut self, name: &str, config: &QueueConfig) -> bool {
        if self.index(name).is_some() {
            return false;
        }
        self.queues.push(Queue::new(name, false, config));
        let dead_letters = format!("{name}.dlq");
        self.queues.push(Queue::new(&dead_letters, true, config));
        true
    }

    /// Subscriptions that end, in order: those of the queue, then those of its dead letters.
    pub(crate) fn delete(&mut self, name: &str) -> Option<Vec<SubId>> {
        self.index(name)?;
        let dead_letters = format!("{name}.dlq");
        let mut ended = Vec::new();
        for name in [name, &dead_letters] {
            ended.extend(self.subs.iter().filter(|s| s.queue == name).map(|s| s.id));
            self.subs.retain(|s| s.queue != name);
            self.queues.retain(|q| q.name != name);
        }
        Some(ended)
    }

    pub(crate) fn update(&mut self, name: &str, changes: &QueueChanges) {
        for name in [name.to_owned(), format!("{name}.dlq")] {
            if let Some(queue) = self.queue(&name) {
                queue.config = changes.apply(&queue.config, &tanda_engine::Defaults::default());
            }
        }
        self.forget_keys();
    }

    pub(crate) fn forget_keys(&mut self) {
        let now = self.now;
        for queue in &mut self.queues {
            let window_ms = queue.config.dedup_window_ms;
            queue
                .remembered
                .retain(|r| r.left.is_none_or(|left| left.after_ms(window_ms) > now));
        }
    }

    /// A message is gone for good: its key's window begins, wherever the message was.
    pub(crate) fn forget(&mut self, queue: &str, id: MessageId) {
        let now = self.now;
        let owner = queue.strip_suffix(".dlq").unwrap_or(queue);
        let owner = self.queue(owner).unwrap();
        for remembered in owner.remembered.iter_mut().filter(|r| r.id == id) {
            remembered.left = Some(now);
        }
    }

    /// One item of a batch, judged against what the engine answered.
    pub(crate) fn publish_one(&mut self, name: &str, new: &NewMessage, seen: PublishResult) {
        let expected = self.refusal(name, new);
        if let Some(expected) = expected {
            assert_eq!(seen, expected, "publish to {name}: {new:?}");
            return;
        }
        let PublishResult::Stored(id) = seen else {
            panic!("{new:?} to {name} is to be stored, not {seen:?}");
        };
        assert!(
            id > self.newest_id,
            "ids grow: {id} after {}",
            self.newest_id
        );
        assert!(id.enqueued_at() >= self.now, "{id} is of now");
        self.newest_id = id;
        let due = (new.delay_ms > 0).then(|| id.enqueued_at().after_ms(new.delay_ms));
        let tie = self.tie;
        let queue = self.queue(name).unwrap();
        if let Some(key) = new.dedup.clone() {
            let left = None;
            queue.remembered.push(Remembered { key, id, left });
        }
        let message = Message {
            id,
            position: 0,
            key: new.key.clone(),
            priority: new.priority,
            weight: new.weight.max(1),
            group: new.group.clone(),
            bytes: new.bytes,
            failures: 0,
            deliveries: Some(0),
            redrives: 0,
            bucket: new.bucket.clone(),
            place: Place::Ready,
        };
        queue.put(message, true, due, tie);
    }

    fn refusal(&mut self, name: &str, new: &NewMessage) -> Option<PublishResult> {
        self.forget_keys();
        let refused = |error| Some(PublishResult::Refused(error));
        let Some(queue) = self.queue(name) else {
            return refused(PublishError::QueueNotFound);
        };
        if queue.is_dead_letter {
            return refused(PublishError::ReservedQueueName);
        }
        if let Ordering::Key { missing, .. } = queue.config.ordering
            && missing == MissingOrderingKey::Reject
            && new.group.is_none()
        {
            return refused(PublishError::OrderingKeyMissing);
        }
        // A duplicate gets its answer whether there is room or not: nothing is stored.
        let known = queue
            .remembered
            .iter()
            .find(|r| Some(&r.key) == new.dedup.as_ref());
        if let Some(known) = known {
            return Some(PublishResult::Duplicate(known.id));
        }
        if queue.is_full() {
            return refused(PublishError::QueueFull);
        }
        None
    }

    /// After the messages of one batch for one queue: the oldest ready ones are dropped while there
    /// are too many pending ones. What waits for a time or for its group is not at the head.
    pub(crate) fn drop_heads(&mut self, name: &str) {
        let max = self.queue(name).unwrap().config.max_length;
        let Some(max) = max.filter(|max| max.overflow == Overflow::DropHead) else {
            return;
        };
        loop {
            let queue = self.queue(name).unwrap();
            let oldest = queue.ready().first().map(|m| m.id);
            let Some(oldest) = oldest.filter(|_| queue.depth() > max.messages) else {
                return;
            };
            queue.take_out(oldest, 0);
            self.forget(name, oldest);
        }
    }

    /// Settlements of one queue that follow each other in a batch.
    pub(crate) fn settle(
        &mut self,
        name: &str,
        items: &[(MessageId, Settlement)],
    ) -> Vec<SettleResult> {
        if self.index(name).is_none() {
            return items
                .iter()
                .map(|_| Err(SettleError::MessageNotFound))
                .collect();
        }
        let (mut gone, mut dead) = (Vec::new(), Vec::new());
        let mut results = Vec::new();
        for (id, settlement) in items {
            results.push(self.settle_one(name, *id, *settlement, (&mut gone, &mut dead)));
        }
        // A batch is one step: who is acked leaves, then dead letters go.
        for id in gone {
            self.queue(name).unwrap().take_out(id, 0);
            self.forget(name, id);
        }
        self.bury(name, &dead);
        results
    }

    fn settle_one(
        &mut self,
        name: &str,
        id: MessageId,
        settlement: Settlement,
        (gone, dead): (&mut Vec<MessageId>, &mut Vec<MessageId>),
    ) -> SettleResult {
        let now = self.now;
        let queue = self.queue(name).unwrap();
        let in_dead_letters = queue.is_dead_letter;
        let Some(at) = queue.find(id) else {
            return Err(SettleError::MessageNotFound);
        };
        let message = &mut queue.messages[at];
        let Some(lease) = message.lease() else {
            return Err(SettleError::MessageNotFound);
        };
        match settlement {
            Settlement::Ack => {
                message.place = Place::Leaving;
                gone.push(id);
            }
            Settlement::Reject => {
                message.failures += 1;
                message.place = Place::Leaving;
                if in_dead_letters { gone } else { dead }.push(id);
            }
            Settlement::Fail { retry_after_ms, .. } => {
                let instead = if lease.reclaim {
                    retry_after_ms.or(Some(0))
                } else {
                    retry_after_ms
                };
                if self.fail(name, id, instead) {
                    dead.push(id);
                }
            }
            Settlement::Unsent {
                consumer,
                deliveries,
                redrives,
            } => {
                let of = (lease.consumer, message.deliveries, message.redrives);
                if of != (consumer, Some(deliveries), redrives) {
                    return Err(SettleError::MessageNotFound);
                }
                queue.let_go(id, None, 0);
            }
            Settlement::Requeue => queue.let_go(id, None, 0),
            Settlement::Extend { by_ms } => {
                let end = now.after_ms(by_ms);
                // A lease without a timeout needs none.
                if lease.end.is_some() {
                    message.place = Place::Leased(crate::model::Lease {
                        end: Some(end),
                        reclaim: false,
                        ..lease
                    });
                }
                return Ok(end);
            }
            Settlement::Nack { .. } => panic!("the model nacks nothing"),
            Settlement::Unfit { .. } => panic!("the model passes nothing over"),
            Settlement::Refused(error) => return Err(error),
        }
        Ok(Millis(0))
    }

    /// A delivery failed: true when the message is dead.
    pub(crate) fn fail(&mut self, name: &str, id: MessageId, instead_ms: Option<u64>) -> bool {
        let (now, tie) = (self.now, self.tie);
        let queue = self.queue(name).unwrap();
        let (limit, may_die) = (queue.config.retry.max_attempts, !queue.is_dead_letter);
        let message = queue.get(id);
        message.failures += 1;
        if may_die && message.failures >= limit {
            message.place = Place::Leaving;
            return true;
        }
        let failures = message.failures;
        let delay_ms = instead_ms.unwrap_or_else(|| queue.backoff_ms(failures));
        queue.let_go(id, (delay_ms > 0).then(|| now.after_ms(delay_ms)), tie);
        false
    }

    /// Messages move to the back of the dead-letter queue.
    pub(crate) fn bury(&mut self, name: &str, dead: &[MessageId]) {
        let tie = self.tie;
        for id in dead {
            let message = self.queue(name).unwrap().take_out(*id, tie);
            let dead_letters = self.queue(&format!("{name}.dlq")).unwrap();
            dead_letters.put(message, false, None, tie);
        }
    }

    /// Moves dead letters back: those that are ready by age, then the delayed ones as they are due.
    pub(crate) fn redrive(&mut self, source: &str, count: u64) -> u64 {
        let dead_letters = self.queue(&format!("{source}.dlq")).unwrap();
        let mut ids: Vec<_> = dead_letters.ready().iter().map(|m| m.id).collect();
        let mut delayed: Vec<_> = dead_letters
            .messages
            .iter()
            .filter_map(|m| match m.place {
                Place::Delayed(due) => Some((due, m.id)),
                Place::Ready | Place::Behind(_) | Place::Leased(_) | Place::Leaving => None,
            })
            .collect();
        delayed.sort_unstable();
        ids.extend(delayed.iter().map(|(_, id)| *id));
        if count > 0 {
            ids.truncate(usize::try_from(count).unwrap());
        }
        for id in &ids {
            let dead_letters = self.queue(&format!("{source}.dlq")).unwrap();
            let mut message = dead_letters.take_out(*id, 0);
            (message.failures, message.deliveries) = (0, Some(0));
            message.redrives += 1;
            self.queue(source).unwrap().put(message, false, None, 0);
        }
        ids.len() as u64
    }

    pub(crate) fn purge(&mut self, name: &str) -> u64 {
        let queue = self.queue(name).unwrap();
        let pending = queue.messages.iter().filter(|m| m.lease().is_none());
        let mut ids: Vec<_> = pending.map(|m| (m.position, m.id)).collect();
        ids.sort_unstable();
        for (_, id) in ids.iter().rev() {
            self.queue(name).unwrap().take_out(*id, 0);
            self.forget(name, *id);
        }
        ids.len() as u64
    }

    pub(crate) fn connect(&mut self, id: ConnId, outbound_max: u64) {
        self.conns.push(Conn {
            id,
            outbound: 0,
            outbound_max,
        });
    }

    pub(crate) fn conn(&mut self, id: ConnId) -> &mut Conn {
        self.conns.iter_mut().find(|c| c.id == id).unwrap()
    }

    pub(crate) fn sub(&mut self, number: u64) -> Option<&mut Sub> {
        self.subs.iter_mut().find(|s| s.number == number)
    }

    /// The consumer's number.
    pub(crate) fn subscribe(&mut self, mut sub: Sub) -> u64 {
        self.next_consumer += 1;
        let number = self.next_consumer;
        sub.number = number;
        self.subs.push(sub);
        self.refresh(number);
        number
    }

    /// Who can take a message and is not in line goes to its end.
    pub(crate) fn refresh(&mut self, number: u64) {
        let Some(sub) = self.sub(number).cloned() else {
            return;
        };
        if sub.in_line || sub.credit == Some(0) || !self.conn(sub.id.conn).has_room() {
            return;
        }
        self.sub(number).unwrap().in_line = true;
        self.queue(&sub.queue).unwrap().line.push(number);
    }

    pub(crate) fn refresh_all(&mut self, conn: ConnId) {
        let of: Vec<_> = self
            .subs
            .iter()
            .filter(|s| s.id.conn == conn)
            .map(|s| s.number)
            .collect();
        for number in of {
            self.refresh(number);
        }
    }

    pub(crate) fn drained(&mut self, id: ConnId, bytes: u64) {
        let conn = self.conn(id);
        let had_room = conn.has_room();
        conn.outbound = conn.outbound.saturating_sub(bytes);
        if !had_room && conn.has_room() {
            self.refresh_all(id);
        }
    }

    /// A subscription ends: leases with a timeout stay, the others end, without a failure.
    pub(crate) fn unsubscribe(&mut self, number: u64) {
        let sub = self.sub(number).unwrap().clone();
        self.subs.retain(|s| s.number != number);
        let queue = self.queue(&sub.queue).unwrap();
        queue.line.retain(|other| *other != number);
        if !sub.is_connection {
            return;
        }
        let held = |m: &&Message| {
            m.lease()
                .is_some_and(|l| l.consumer == number && l.end.is_none())
        };
        let mut ids: Vec<_> = queue.messages.iter().filter(held).map(|m| m.id).collect();
        ids.sort_unstable();
        for id in ids {
            queue.let_go(id, None, 0);
        }
    }
}
