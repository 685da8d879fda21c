//! An engine with a journal in memory, a clock that is set by hand, and shorthands.

#![allow(
    dead_code,
    clippy::wildcard_enum_match_arm,
    clippy::allow_attributes,
    reason = "each test file uses a part of it"
)]

pub(crate) mod host;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, ContentRead, DeliveryBatch, Engine, EngineConfig,
    Event, Got, Journal, LeaseMode, Lsn, MessageId, Millis, Output, PageSlot, PublishBatch,
    PublishItem, PublishResult, PublishTarget, QueueSpec, ReplyTo, Request, SettleBatch,
    SettleItem, SettleQueue, SettleResult, Settlement, Span, SubId, SubscribeSpec,
};

/// Records with their positions; a record's position is that of its first byte.
#[derive(Clone, Debug)]
pub(crate) struct MemJournal {
    pub(crate) records: Vec<(Lsn, Vec<u8>)>,
    pub(crate) end: Lsn,
    /// By slot; freed ones are empty.
    pub(crate) pages: Vec<Option<Vec<u8>>>,
    /// No page can be written.
    pub(crate) pages_full: bool,
    /// No page can be read.
    pub(crate) pages_unreadable: bool,
    /// No content can be read.
    pub(crate) contents_unreadable: bool,
    /// Freed pages stay, as while a snapshot may need them.
    pub(crate) pages_kept: bool,
    pub(crate) pages_freed: BTreeSet<PageSlot>,
    /// Where contents that were copied lay at first.
    pub(crate) copies: BTreeMap<Lsn, Lsn>,
    segment_shift: u32,
}

impl MemJournal {
    pub(crate) fn new(segment_shift: u32) -> Self {
        Self {
            records: Vec::new(),
            end: Lsn(64),
            pages: Vec::new(),
            pages_full: false,
            pages_unreadable: false,
            contents_unreadable: false,
            pages_kept: false,
            pages_freed: BTreeSet::new(),
            copies: BTreeMap::new(),
            segment_shift,
        }
    }
}

impl Journal for MemJournal {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let mut at = Lsn(self.end.0 + 4);
        let segment = |at: u64| at >> self.segment_shift;
        let last = at.0 + record.len().saturating_sub(1) as u64;
        if segment(at.0) != segment(last) {
            // A record lies in one segment, as in the real log.
            at = Lsn(((segment(at.0) + 1) << self.segment_shift) + 4);
        }
        self.records.push((at, record.to_vec()));
        self.end = Lsn(at.0 + record.len() as u64);
        at
    }

    fn end(&self) -> Lsn {
        self.end
    }

    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead {
        if self.contents_unreadable {
            return ContentRead::Unavailable;
        }
        // What was copied is still where it was at first.
        let at = self.copies.get(&at).copied().unwrap_or(at);
        let after = self.records.partition_point(|(start, _)| *start <= at);
        let record = after.checked_sub(1).and_then(|it| self.records.get(it));
        let found = record.and_then(|(start, record)| {
            let from = usize::try_from(at.0 - start.0).ok()?;
            record.get(from..from + len as usize)
        });
        let Some(found) = found else {
            return ContentRead::Unavailable;
        };
        into.extend_from_slice(found);
        ContentRead::FromDisk
    }

    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot> {
        if self.pages_full {
            return None;
        }
        let free = self.pages.iter().position(Option::is_none);
        let free = free.filter(|_| !self.pages_kept);
        let slot = free.unwrap_or(self.pages.len());
        if slot == self.pages.len() {
            self.pages.push(None);
        }
        self.pages[slot] = Some(page.to_vec());
        Some(PageSlot(u32::try_from(slot).unwrap()))
    }

    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool {
        into.clear();
        let page = self.pages.get(slot.0 as usize).and_then(Option::as_ref);
        let readable = page.filter(|_| !self.pages_unreadable);
        readable
            .inspect(|page| into.extend_from_slice(page))
            .is_some()
    }

    fn free_page(&mut self, slot: PageSlot) {
        let page = &mut self.pages[slot.0 as usize];
        if self.pages_kept {
            assert!(self.pages_freed.insert(slot), "{slot:?} is freed twice");
            return;
        }
        assert!(page.take().is_some(), "{slot:?} is freed twice");
    }
}

/// One message to publish.
#[derive(Clone, Debug, Default)]
pub(crate) struct Msg {
    pub(crate) queue: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Vec<u8>,
    pub(crate) key: String,
    pub(crate) weight: u32,
    pub(crate) delay_ms: u64,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) priority: u8,
    pub(crate) transient: bool,
    pub(crate) ttl_ms: Option<u64>,
}

impl Msg {
    pub(crate) fn to(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    pub(crate) fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn payload(mut self, payload: &str) -> Self {
        self.payload = payload.as_bytes().to_vec();
        self
    }

    pub(crate) fn delay(mut self, delay_ms: u64) -> Self {
        self.delay_ms = delay_ms;
        self
    }

    pub(crate) fn ttl(mut self, ttl_ms: u64) -> Self {
        self.ttl_ms = Some(ttl_ms);
        self
    }

    pub(crate) fn idempotency(mut self, key: &str) -> Self {
        self.idempotency_key = Some(key.to_owned());
        self
    }
}

/// Bytes being put together, with the spans of what was put in.
#[derive(Default)]
struct Packer(Vec<u8>);

impl Packer {
    fn put(&mut self, bytes: &[u8]) -> Span {
        let start = u32::try_from(self.0.len()).unwrap();
        self.0.extend_from_slice(bytes);
        Span {
            start,
            len: u32::try_from(bytes.len()).unwrap(),
        }
    }
}

/// The layout of `tanda_engine::Content`.
pub(crate) fn content(headers: &[(String, String)], payload: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(headers.len()).unwrap().to_be_bytes().to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
    out.extend_from_slice(payload);
    out
}

pub(crate) fn batch(messages: &[Msg]) -> PublishBatch {
    let mut pack = Packer::default();
    let items = messages
        .iter()
        .map(|m| PublishItem {
            target: PublishTarget::Name(pack.put(m.queue.as_bytes())),
            content: pack.put(&content(&m.headers, &m.payload)),
            fairness_key: pack.put(m.key.as_bytes()),
            weight: m.weight,
            delay_ms: m.delay_ms,
            idempotency_key: m
                .idempotency_key
                .as_ref()
                .map(|key| pack.put(key.as_bytes())),
            priority: m.priority,
            transient: m.transient,
            ttl_ms: m.ttl_ms,
            ..PublishItem::default()
        })
        .collect();
    PublishBatch {
        data: Bytes::from(pack.0),
        items,
        ..PublishBatch::default()
    }
}

pub(crate) const CONN: ConnId = ConnId(1);

pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) journal: MemJournal,
    pub(crate) now: Millis,
    pub(crate) config: EngineConfig,
    /// Outputs of the last step.
    pub(crate) out: Vec<Output>,
    /// What a restart begins with, and the position from which it needs the records.
    pub(crate) snapshot: Option<(Lsn, Vec<Vec<u8>>)>,
    /// Whether [`Self::run_scripts`] runs scripts.
    pub(crate) has_host: bool,
    /// Deliveries do not leave by themselves: who sets it calls `release`.
    pub(crate) holds_deliveries: bool,
    next_token: u32,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with_config(EngineConfig {
            segment_shift: 12,
            ..EngineConfig::default()
        })
    }

    pub(crate) fn with_config(config: EngineConfig) -> Self {
        let journal = MemJournal::new(config.segment_shift);
        let mut harness = Self::over(config, journal, Millis(1_000_000));
        harness
            .engine
            .start(harness.now, &mut harness.journal)
            .unwrap();
        harness.connect(CONN);
        harness
    }

    /// Nothing is started yet.
    pub(crate) fn over(config: EngineConfig, journal: MemJournal, now: Millis) -> Self {
        Self {
            engine: Engine::new(config.clone()),
            journal,
            now,
            config,
            out: Vec::new(),
            snapshot: None,
            has_host: true,
            holds_deliveries: false,
            next_token: 1,
        }
    }

    pub(crate) fn token(&mut self) -> u32 {
        self.next_token += 1;
        self.next_token
    }

    /// One request and nothing else; its outputs.
    pub(crate) fn handle(&mut self, request: Request) -> Vec<Output> {
        let mut out = Vec::new();
        self.engine
            .handle(self.now, &mut self.journal, request, &mut out);
        self.let_go(&mut out);
        self.engine.assert_invariants();
        out
    }

    /// The deliveries among these outputs leave now, unless they are held.
    pub(crate) fn let_go(&mut self, out: &mut [Output]) {
        if !self.holds_deliveries {
            self.release(out);
        }
    }

    /// The deliveries among these outputs leave now.
    pub(crate) fn release(&mut self, out: &mut [Output]) {
        for output in out {
            match &mut output.event {
                Event::Delivery { batch, .. }
                | Event::Got {
                    result:
                        Ok(Got {
                            batch: Some(batch), ..
                        }),
                    ..
                } => self.engine.released(self.now, batch),
                _ => {}
            }
        }
    }

    /// Passes until nothing more can be done now; their outputs.
    pub(crate) fn run(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        loop {
            let more = self.engine.run(self.now, &mut self.journal, &mut out);
            self.let_go(&mut out);
            self.engine.assert_invariants();
            if !more {
                return out;
            }
        }
    }

    pub(crate) fn advance(&mut self, ms: u64) -> Vec<Output> {
        self.now = self.now.after_ms(ms);
        self.run()
    }

    /// One that has a host of scripts.
    pub(crate) fn with_scripts() -> Self {
        Self::with_config(EngineConfig {
            segment_shift: 12,
            has_script_host: true,
            ..EngineConfig::default()
        })
    }

    pub(crate) fn connect(&mut self, conn: ConnId) {
        let limits = ConnLimits {
            outbound_bytes_max: 1 << 20,
            subscriptions_max: 100,
        };
        self.handle(Request::Connect { conn, limits });
    }

    pub(crate) fn admin(&mut self, request: AdminRequest) -> AdminReply {
        let reply = ReplyTo {
            conn: CONN,
            token: self.token(),
        };
        let mut out = self.handle(Request::Admin { reply, request });
        out.extend(self.run_scripts());
        let found = out.into_iter().find_map(|output| match output.event {
            Event::Admin {
                token,
                reply: answer,
            } if token == reply.token => Some(*answer),
            _ => None,
        });
        found.expect("an admin request has an answer")
    }

    pub(crate) fn create(&mut self, spec: QueueSpec) {
        let reply = self.admin(AdminRequest::CreateQueue(Box::new(spec)));
        assert!(matches!(reply, AdminReply::Created(Ok(_))), "{reply:?}");
    }

    pub(crate) fn create_plain(&mut self, name: &str) {
        self.create(QueueSpec {
            name: name.to_owned(),
            ..QueueSpec::default()
        });
    }

    pub(crate) fn publish(&mut self, messages: &[Msg]) -> Vec<PublishResult> {
        let reply = ReplyTo {
            conn: CONN,
            token: self.token(),
        };
        let out = self.handle(Request::Publish {
            reply,
            batch: batch(messages),
        });
        match out.as_slice() {
            [
                Output {
                    event: Event::Published { results, .. },
                    ..
                },
            ] => results.clone(),
            other => panic!("one Published, not {other:?}"),
        }
    }

    pub(crate) fn publish_ids(&mut self, messages: &[Msg]) -> Vec<MessageId> {
        let stored = self
            .publish(messages)
            .into_iter()
            .map(|result| match result {
                PublishResult::Stored(id) => id,
                other => panic!("{other:?}"),
            });
        stored.collect()
    }

    pub(crate) fn subscribe(&mut self, conn: ConnId, queue: &str, credit: Option<u32>) -> SubId {
        self.subscribe_as(conn, queue, credit, LeaseMode::Timed)
    }

    pub(crate) fn subscribe_as(
        &mut self,
        conn: ConnId,
        queue: &str,
        credit: Option<u32>,
        lease: LeaseMode,
    ) -> SubId {
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit,
            lease,
            throttles: Vec::new(),
            ..SubscribeSpec::default()
        };
        self.subscribe_with(conn, spec)
    }

    pub(crate) fn subscribe_with(&mut self, conn: ConnId, spec: SubscribeSpec) -> SubId {
        let sub = SubId {
            conn,
            token: self.token(),
        };
        let out = self.handle(Request::Subscribe { sub, spec });
        assert!(matches!(out[0].event, Event::Subscribed { .. }), "{out:?}");
        sub
    }

    pub(crate) fn settle(
        &mut self,
        queue: &str,
        items: &[(MessageId, Settlement)],
    ) -> Vec<SettleResult> {
        self.settle_output(queue, items).1
    }

    /// The position the answer waits for, and the results.
    pub(crate) fn settle_output(
        &mut self,
        queue: &str,
        items: &[(MessageId, Settlement)],
    ) -> (Lsn, Vec<SettleResult>) {
        let reply = ReplyTo {
            conn: CONN,
            token: self.token(),
        };
        let batch = settle_batch(queue, items);
        let mut out = self.handle(Request::Settle { reply, batch });
        match out.pop() {
            Some(Output {
                after,
                event: Event::Settled { results, .. },
                ..
            }) => (after, results),
            other => panic!("one Settled, not {other:?}"),
        }
    }

    pub(crate) fn ack(&mut self, queue: &str, ids: &[MessageId]) {
        let items: Vec<_> = ids.iter().map(|id| (*id, Settlement::Ack)).collect();
        let results = self.settle(queue, &items);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }

    /// A new engine from the journal, as after a crash that lost nothing; `down_ms` later.
    pub(crate) fn restart(&mut self, down_ms: u64) {
        if let Some((from, snapshot)) = self.snapshot.clone() {
            return self.restart_from_snapshot(from, &snapshot, down_ms);
        }
        self.restart_from(self.journal.records.clone(), down_ms);
    }

    /// Takes a snapshot, and gives up all of the log that neither a restart nor a message needs.
    pub(crate) fn take_snapshot(&mut self) {
        self.journal.pages_kept = true;
        let from = self.engine.begin_capture(self.now, &self.journal);
        let mut records = Vec::new();
        while !self.engine.capture_slice(10, &mut records) {}
        let needed: BTreeSet<_> = self.engine.segments().map(|(segment, _)| segment).collect();
        let shift = self.config.segment_shift;
        let journal = &mut self.journal.records;
        journal.retain(|(at, _)| *at >= from || needed.contains(&(at.0 >> shift)));
        self.snapshot = Some((from, records));
        self.engine.assert_invariants();
    }

    /// An engine from a snapshot and the journal's records from its position on; no requests yet.
    pub(crate) fn restart_from_snapshot(&mut self, from: Lsn, snapshot: &[Vec<u8>], down_ms: u64) {
        self.now = self.now.after_ms(down_ms);
        self.engine = Engine::new(self.config.clone());
        let tail = self.journal.records.iter().filter(|(at, _)| *at >= from);
        let tail: Vec<_> = tail.cloned().collect();
        let snapshot = snapshot.iter().map(|record| (from, record));
        let pages = &self.journal.pages;
        let mut read = |slot: PageSlot, into: &mut Vec<u8>| {
            let page = pages.get(slot.0 as usize).and_then(Option::as_ref);
            page.inspect(|page| page.as_slice().clone_into(into))
                .is_some()
        };
        for (at, record) in snapshot.chain(tail.iter().map(|(at, record)| (*at, record))) {
            let result = self.engine.replay_with_pages(at, record, &mut read);
            result.unwrap();
        }
        self.journal.pages_freed.clear();
        self.now = self.now.max(self.engine.newest_time());
        self.engine.start(self.now, &mut self.journal).unwrap();
        self.engine.assert_invariants();
        self.connect(CONN);
    }

    pub(crate) fn restart_from(&mut self, records: Vec<(Lsn, Vec<u8>)>, down_ms: u64) {
        self.now = self.now.after_ms(down_ms);
        // Without a snapshot no page outlives the process.
        self.journal.pages.clear();
        self.journal.pages_freed.clear();
        self.engine = Engine::new(self.config.clone());
        for (at, record) in &records {
            self.engine.replay(*at, record).unwrap();
        }
        self.journal.records = records;
        self.now = self.now.max(self.engine.newest_time());
        self.engine.start(self.now, &mut self.journal).unwrap();
        self.engine.assert_invariants();
        self.connect(CONN);
    }
}

pub(crate) fn settle_batch(queue: &str, items: &[(MessageId, Settlement)]) -> SettleBatch {
    let mut pack = Packer::default();
    let name = pack.put(queue.as_bytes());
    let items = items
        .iter()
        .map(|(id, settlement)| SettleItem {
            queue: SettleQueue::Name(name),
            id: *id,
            settlement: *settlement,
        })
        .collect();
    SettleBatch {
        data: Bytes::from(pack.0),
        items,
        ..SettleBatch::default()
    }
}

/// Deliveries of some outputs, in order: subscription token and batch.
pub(crate) fn deliveries(out: &[Output]) -> Vec<(u32, DeliveryBatch)> {
    let delivered = out.iter().filter_map(|output| match &output.event {
        Event::Delivery { token, batch } => Some((*token, batch.clone())),
        _ => None,
    });
    delivered.collect()
}

/// Ids of delivered messages, in order.
pub(crate) fn delivered_ids(out: &[Output]) -> Vec<MessageId> {
    let batches = deliveries(out);
    batches
        .iter()
        .flat_map(|(_, batch)| batch.items.iter().map(|item| item.id))
        .collect()
}
