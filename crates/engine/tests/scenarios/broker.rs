//! A broker whose messages and workers have names, and whose outputs read as lines.
//!
//! A delivery reads `worker: a b#2 c+1`: message `a` on its first attempt, `b` on its second, `c`
//! redriven once. A publish result reads `a` when stored, `=a` when it is a duplicate of `a`, else
//! the error's name.

use std::collections::BTreeMap;

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, Content, DeliveryBatch, DeliveryItem, Event,
    Form, Got, LeaseMode, Lsn, MessageId, Millis, Output, PublishResult, QueueCounts, QueueSpec,
    QueueStats, Redriven, ReplyTo, Request, SettleError, SettleResult, Settlement, Span, SubId,
    SubscribeSpec, ThrottleSpec, VhostId,
};

use crate::harness::{Harness, Msg, batch};

/// The connection of publishers and of those who settle.
pub(crate) const CLIENT: ConnId = crate::harness::CONN;

pub(crate) struct Broker {
    pub(crate) h: Harness,
    /// Outputs nobody looked at.
    pub(crate) out: Vec<Output>,
    names: BTreeMap<MessageId, String>,
    ids: BTreeMap<String, MessageId>,
    workers: BTreeMap<SubId, String>,
    next_conn: u64,
    /// What the last answer waited for.
    pub(crate) after: Lsn,
}

/// The settings of a queue, all defaults.
pub(crate) fn queue(name: &str) -> QueueSpec {
    QueueSpec {
        name: name.to_owned(),
        ..QueueSpec::default()
    }
}

/// A message for queue `jobs`; its name is its payload.
pub(crate) fn job(name: &str) -> Msg {
    Msg::to("jobs").payload(name)
}

/// One that is lost at a restart.
pub(crate) fn transient(name: &str) -> Msg {
    Msg {
        transient: true,
        ..job(name)
    }
}

/// Several of them.
pub(crate) fn jobs<const N: usize>(names: [&str; N]) -> Vec<Msg> {
    names.iter().map(|name| job(name)).collect()
}

/// A nack without words.
pub(crate) const NACK: Settlement = fail(None);

pub(crate) const fn fail(retry_after_ms: Option<u64>) -> Settlement {
    Settlement::Fail {
        error: Span { start: 0, len: 0 },
        retry_after_ms,
    }
}

pub(crate) const OK: SettleResult = Ok(Millis(0));
pub(crate) const NOT_LEASED: SettleResult = Err(SettleError::MessageNotFound);

impl Broker {
    /// A broker with one queue.
    pub(crate) fn with(spec: QueueSpec) -> Self {
        let mut broker = Self::over(Harness::new());
        broker.h.create(spec);
        broker
    }

    pub(crate) fn over(h: Harness) -> Self {
        Self {
            h,
            out: Vec::new(),
            names: BTreeMap::new(),
            ids: BTreeMap::new(),
            workers: BTreeMap::new(),
            next_conn: 100,
            after: Lsn::ZERO,
        }
    }

    pub(crate) fn now(&self) -> Millis {
        self.h.now
    }

    /// The newest message of that name.
    pub(crate) fn id(&self, name: &str) -> MessageId {
        self.ids[name]
    }

    pub(crate) fn run(&mut self) {
        let out = self.h.run();
        self.out.extend(out);
    }

    /// One request, no pass.
    pub(crate) fn handle(&mut self, request: Request) {
        let out = self.h.handle(request);
        self.out.extend(out);
    }

    /// One pass; true when there is more to do.
    pub(crate) fn pass(&mut self) -> bool {
        let (now, h) = (self.h.now, &mut self.h);
        let mut out = Vec::new();
        let more = h.engine.run(now, &mut h.journal, &mut out);
        h.let_go(&mut out);
        self.out.extend(out);
        h.engine.assert_invariants();
        more
    }

    /// Publishes without a pass; how each message fared.
    pub(crate) fn publish(&mut self, messages: &[Msg]) -> Vec<String> {
        let reply = ReplyTo {
            conn: CLIENT,
            token: self.h.token(),
        };
        let request = Request::Publish {
            reply,
            batch: batch(messages),
        };
        let mut out = self.h.handle(request);
        // Deliveries that do not wait for a pass come before or after it.
        let published = |output: &Output| matches!(output.event, Event::Published { .. });
        let at = out.iter().position(published);
        let answer = out.remove(at.expect("an answer"));
        self.out.extend(out);
        let Output { after, event, .. } = &answer;
        let Event::Published { results, .. } = event else {
            panic!("not {event:?}");
        };
        assert_eq!(messages.len(), results.len());
        self.after = *after;
        let told = messages.iter().zip(results);
        told.map(|(message, result)| {
            let name = String::from_utf8(message.payload.clone()).unwrap();
            self.told(&name, *result)
        })
        .collect()
    }

    /// Notes what a publish result says and renders it.
    pub(crate) fn told(&mut self, name: &str, result: PublishResult) -> String {
        match result {
            PublishResult::Stored(id) => {
                let before = self.names.insert(id, name.to_owned());
                assert_eq!(before, None, "an id is used twice");
                self.ids.insert(name.to_owned(), id);
                name.to_owned()
            }
            PublishResult::Duplicate(id) => format!("={}", self.names[&id]),
            PublishResult::Sent { receivers } => format!("sent to {receivers}"),
            PublishResult::Unroutable => "unroutable".to_owned(),
            PublishResult::Refused(error) => format!("{error:?}"),
        }
    }

    /// Publishes messages that must all be stored, then passes.
    pub(crate) fn send(&mut self, messages: &[Msg]) {
        let told = self.publish(messages);
        let names = messages
            .iter()
            .map(|m| String::from_utf8_lossy(&m.payload).into_owned());
        assert_eq!(told, names.collect::<Vec<_>>());
        self.run();
    }

    pub(crate) fn connect(&mut self, limits: ConnLimits) -> ConnId {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        self.handle(Request::Connect { conn, limits });
        conn
    }

    /// A subscription on a connection of its own; passes.
    pub(crate) fn worker(&mut self, name: &str, queue: &str, credit: Option<u32>) -> SubId {
        self.worker_as(name, queue, credit, LeaseMode::Timed)
    }

    pub(crate) fn worker_as(
        &mut self,
        name: &str,
        queue: &str,
        credit: Option<u32>,
        lease: LeaseMode,
    ) -> SubId {
        let conn = self.connect(ConnLimits {
            outbound_bytes_max: 1 << 30,
            subscriptions_max: 8,
        });
        self.worker_on(conn, name, queue, (credit, lease))
    }

    pub(crate) fn worker_on(
        &mut self,
        conn: ConnId,
        name: &str,
        queue: &str,
        (credit, lease): (Option<u32>, LeaseMode),
    ) -> SubId {
        let sub = self.h.subscribe_as(conn, queue, credit, lease);
        self.workers.insert(sub, name.to_owned());
        self.run();
        sub
    }

    /// A subscription that declares throttles, on a connection of its own; passes.
    pub(crate) fn throttled(
        &mut self,
        name: &str,
        queue: &str,
        credit: Option<u32>,
        throttles: &[ThrottleSpec],
    ) -> SubId {
        let conn = self.connect(ConnLimits {
            outbound_bytes_max: 1 << 30,
            subscriptions_max: 8,
        });
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit,
            lease: LeaseMode::Timed,
            throttles: throttles.to_vec(),
            ..SubscribeSpec::default()
        };
        let sub = self.h.subscribe_with(conn, spec);
        self.workers.insert(sub, name.to_owned());
        self.run();
        sub
    }

    pub(crate) fn grant(&mut self, sub: SubId, credit: u32) {
        self.handle(Request::Grant { sub, credit });
        self.run();
    }

    pub(crate) fn unsubscribe(&mut self, sub: SubId) {
        self.handle(Request::Unsubscribe {
            sub,
            held: tanda_engine::Held::Requeue,
        });
        self.run();
    }

    pub(crate) fn disconnect(&mut self, sub: SubId) {
        self.handle(Request::Disconnect { conn: sub.conn });
        self.run();
    }

    /// Settles messages by name in one batch, then passes.
    pub(crate) fn settle(
        &mut self,
        queue: &str,
        items: &[(&str, Settlement)],
    ) -> Vec<SettleResult> {
        let items: Vec<_> = items.iter().map(|(n, s)| (self.id(n), *s)).collect();
        let (after, results) = self.h.settle_output(queue, &items);
        self.after = after;
        self.run();
        results
    }

    pub(crate) fn ack<const N: usize>(&mut self, queue: &str, names: [&str; N]) {
        let items: Vec<_> = names.iter().map(|n| (*n, Settlement::Ack)).collect();
        assert_eq!(self.settle(queue, &items), [OK; N]);
    }

    pub(crate) fn nack(&mut self, queue: &str, name: &str) {
        assert_eq!(self.settle(queue, &[(name, NACK)]), [OK]);
    }

    /// Lets time pass, stopping wherever the engine has something to do.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.h.now.after_ms(ms);
        while let Some(next) = self.h.engine.next_deadline().filter(|next| *next <= end) {
            self.h.now = self.h.now.max(next);
            self.run();
        }
        self.h.now = end;
        self.run();
    }

    /// Comes back after a crash that lost nothing durable; every subscription is gone.
    pub(crate) fn restart(&mut self, down_ms: u64) {
        self.h.restart(down_ms);
        self.run();
    }

    pub(crate) fn admin(&mut self, request: AdminRequest) -> AdminReply {
        let token = self.h.token();
        let reply = ReplyTo {
            conn: CLIENT,
            token,
        };
        self.handle(Request::Admin { reply, request });
        self.run();
        self.answer(token)
    }

    /// The answer to an earlier request.
    pub(crate) fn answer(&mut self, asked: u32) -> AdminReply {
        let answers = |event: &Event| {
            let Event::Admin { token, .. } = event else {
                return false;
            };
            *token == asked
        };
        let at = self.out.iter().position(|o| answers(&o.event));
        let at = at.expect("an answer");
        let output = self.out.remove(at);
        self.after = output.after;
        match output.event {
            Event::Admin { reply, .. } => *reply,
            other => panic!("not {other:?}"),
        }
    }

    pub(crate) fn stats(&mut self, name: &str) -> QueueStats {
        let name = name.to_owned();
        match self.admin(AdminRequest::QueueStats {
            vhost: VhostId::DEFAULT,
            name,
        }) {
            AdminReply::Stats(Ok(stats)) => stats,
            other => panic!("not {other:?}"),
        }
    }

    pub(crate) fn counts(&mut self, name: &str) -> QueueCounts {
        self.stats(name).counts
    }

    /// Pending and leased messages.
    pub(crate) fn held(&mut self, name: &str) -> (u64, u64) {
        let counts = self.counts(name);
        (counts.depth, counts.in_flight)
    }

    pub(crate) fn redrive(&mut self, name: &str, count: u64) -> u64 {
        let name = name.to_owned();
        match self.admin(AdminRequest::Redrive {
            vhost: VhostId::DEFAULT,
            name,
            count,
            reclassify: tanda_engine::Reclassify::All,
        }) {
            AdminReply::Redriven(Ok(Redriven { redriven, .. })) => redriven,
            other => panic!("not {other:?}"),
        }
    }

    pub(crate) fn name_worker(&mut self, sub: SubId, name: &str) {
        self.workers.insert(sub, name.to_owned());
    }

    pub(crate) fn worker_name(&self, sub: SubId) -> String {
        let name = self.workers.get(&sub);
        name.map_or_else(|| "nobody".to_owned(), String::clone)
    }

    pub(crate) fn name_of(&self, id: MessageId) -> &str {
        &self.names[&id]
    }

    /// Everything said since the last look, as lines.
    pub(crate) fn got(&mut self) -> Vec<String> {
        let out = core::mem::take(&mut self.out);
        out.iter().map(|output| self.line(output)).collect()
    }

    fn line(&self, output: &Output) -> String {
        let conn = output.conn;
        let name = |token| &self.workers[&SubId { conn, token }];
        match &output.event {
            Event::Delivery { token, batch } => {
                let items = batch.items.iter().map(|item| self.item(item));
                format!("{}: {}", name(*token), items.collect::<Vec<_>>().join(" "))
            }
            Event::Got { token, result } => {
                let name = name(*token);
                match result {
                    Ok(Got { batch: None, .. }) => format!("{name} gets nothing"),
                    Ok(Got {
                        batch: Some(batch), ..
                    }) => {
                        let items = batch.items.iter().map(|item| self.item(item));
                        format!("{name} gets {}", items.collect::<Vec<_>>().join(" "))
                    }
                    Err(error) => format!("{name}: {error:?}"),
                }
            }
            Event::SubscriptionEnded { token, reason } => format!("{} {reason:?}", name(*token)),
            other => format!("{other:?}"),
        }
    }

    fn item(&self, item: &DeliveryItem) -> String {
        let mut line = self.names[&item.id].clone();
        if item.attempts != 1 {
            line.push_str(&format!("#{}", item.attempts));
        }
        if item.redrives > 0 {
            line.push_str(&format!("+{}", item.redrives));
        }
        line
    }

    /// The names of all delivered messages since the last look, whoever got them.
    pub(crate) fn order(&mut self) -> Vec<String> {
        let batches = self.batches();
        let items = batches.iter().flat_map(|batch| &batch.items);
        items.map(|item| self.names[&item.id].clone()).collect()
    }

    /// Takes back what was delivered to a subscription since the last look and never left.
    pub(crate) fn undelivered(&mut self, sub: SubId) {
        let out = core::mem::take(&mut self.out);
        for output in out {
            match &output.event {
                Event::Delivery { token, batch }
                    if (output.conn, *token) == (sub.conn, sub.token) =>
                {
                    let (now, h) = (self.h.now, &mut self.h);
                    let conn = output.conn;
                    h.engine.undelivered(now, &mut h.journal, conn, batch);
                    h.engine.assert_invariants();
                }
                _ => self.out.push(output),
            }
        }
    }

    /// Takes a snapshot; what of the log nothing needs is gone.
    pub(crate) fn snapshot(&mut self) {
        self.h.take_snapshot();
    }

    /// The segments that messages need.
    pub(crate) fn segments(&self) -> Vec<u64> {
        let needed = self.h.engine.segments();
        needed.map(|(segment, _)| segment).collect()
    }

    /// The deliveries since the last look; what else was said is forgotten.
    pub(crate) fn batches(&mut self) -> Vec<DeliveryBatch> {
        let out = core::mem::take(&mut self.out);
        out.into_iter()
            .filter_map(|output| match output.event {
                Event::Delivery { batch, .. } => Some(batch),
                _ => None,
            })
            .collect()
    }

    /// A delivered message's payload, read from where it lies.
    pub(crate) fn payload(&self, batch: &DeliveryBatch, item: &DeliveryItem) -> String {
        let bytes = if item.at == DeliveryItem::RESOLVED {
            batch.content(item)
        } else {
            let records = &self.h.journal.records;
            let holds = |(at, record): &&(Lsn, Vec<u8>)| {
                (at.0..at.0 + record.len() as u64).contains(&item.at.0)
            };
            let (at, record) = records.iter().find(holds).expect("a record");
            let start = usize::try_from(item.at.0 - at.0).unwrap();
            &record[start..start + item.len as usize]
        };
        let payload = Content::new(Form::Fila, bytes)
            .payload()
            .expect("a whole content");
        String::from_utf8(payload.to_vec()).unwrap()
    }
}
