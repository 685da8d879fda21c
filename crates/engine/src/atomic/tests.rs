//! What is done atomically reads back whole, contents included, and in no other way.

use std::collections::BTreeMap;

use super::*;
use crate::Millis;
use crate::incoming::{Incoming, Keys};
use crate::queue::picks::Taken;
use crate::{
    AdminRequest, ConnId, ConnLimits, Engine, EngineConfig, MaxLength, Output, Overflow, QueueSpec,
    ReplyTo, Request,
};

/// A log in memory.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) records: BTreeMap<u64, Vec<u8>>,
    end: u64,
    /// No content can be read.
    pub(crate) is_unreadable: bool,
}

impl Journal for Memory {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let at = self.end + 4;
        self.records.insert(at, record.to_vec());
        self.end = at + record.len() as u64;
        Lsn(at)
    }

    fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead {
        if self.is_unreadable {
            return ContentRead::Unavailable;
        }
        let (start, record) = self.records.range(..=at.0).next_back().unwrap();
        let from = usize::try_from(at.0 - start).unwrap();
        into.extend_from_slice(&record[from..from + len as usize]);
        ContentRead::Cached
    }

    fn write_page(&mut self, _page: &[u8]) -> Option<PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: PageSlot) {}
}

const NOW: Millis = Millis(5_000);
const CONN: ConnId = ConnId(1);

fn started() -> (Engine, Memory) {
    let mut journal = Memory::default();
    let mut engine = Engine::new(EngineConfig::default());
    engine.start(NOW, &mut journal).unwrap();
    let out = &mut Vec::new();
    let limits = ConnLimits {
        outbound_bytes_max: 1 << 20,
        subscriptions_max: 10,
    };
    engine.handle(
        NOW,
        &mut journal,
        Request::Connect { conn: CONN, limits },
        out,
    );
    for name in ["a", "b"] {
        let spec = QueueSpec {
            name: name.to_owned(),
            max_length: (name == "b").then_some(MaxLength {
                messages: 1,
                overflow: Overflow::DropHead,
            }),
            ..QueueSpec::default()
        };
        let reply = ReplyTo {
            conn: CONN,
            token: 1,
        };
        let request = AdminRequest::CreateQueue(Box::new(spec));
        engine.handle(NOW, &mut journal, Request::Admin { reply, request }, out);
    }
    (engine, journal)
}

fn with_cx<T>(journal: &mut Memory, step: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    let out = &mut Vec::<Output>::new();
    step(&mut Cx {
        now: NOW,
        journal,
        out,
    })
}

fn incoming(content: &[u8]) -> Incoming<'_> {
    Incoming {
        content,
        buffer: None,
        attributes: &[],
        key: "",
        weight: 1,
        idempotency_key: &[],
        form: crate::Form::Fila,
        delay_ms: 0,
        ttl_ms: None,
        priority: 0,
        transient: false,
        parked: None,
    }
}

/// Contents of all messages of a queue.
fn contents(engine: &Engine, journal: &mut Memory, name: &str) -> Vec<String> {
    let queue = engine.queues.at(engine.queues.find(name).unwrap());
    let slots = queue.slots_in_order();
    let read = slots.into_iter().map(|slot| {
        let entry = queue.entries.at(slot);
        let mut content = Vec::new();
        journal.read_content(entry.at, entry.len, &mut content);
        String::from_utf8(content).unwrap()
    });
    read.collect()
}

fn replayed(records: &BTreeMap<u64, Vec<u8>>) -> Result<Engine, crate::ReplayError> {
    let mut engine = Engine::new(EngineConfig::default());
    for (at, record) in records {
        engine.replay(Lsn(*at), record)?;
    }
    engine.start(NOW, &mut Memory::default())?;
    engine.assert_invariants();
    Ok(engine)
}

/// One message in `a` and another in `b`; then, at once, the first leaves `a`, and a third one
/// comes to both queues with one body.
fn exchanged() -> (Engine, Memory) {
    let (mut engine, mut journal) = started();
    let [a, b] = ["a", "b"].map(|name| engine.queues.find(name).unwrap());
    with_cx(&mut journal, |cx| {
        for (index, content) in [(a, b"first".as_slice()), (b, b"other")] {
            engine.store_message(cx, index, &incoming(content), &Keys::default(), None);
            engine.finish_store(cx);
        }
        engine.atomically(cx, |engine, cx| {
            let queue = engine.queues.at_mut(a);
            let Taken::Message(slot) = queue.lanes.take_first(&queue.entries, 0) else {
                panic!("nothing is ready");
            };
            engine.remove_all(cx, a, &[slot]);
            engine.atomic.note_touched(a);
            engine.store_message(cx, b, &incoming(b"third"), &Keys::default(), None);
            let body = engine.finish_store(cx);
            engine.store_message(cx, a, &incoming(b"third"), &Keys::default(), body);
        });
    });
    engine.assert_invariants();
    (engine, journal)
}

#[test]
fn an_atomic_step_is_one_record_that_reads_back() {
    let (engine, mut journal) = exchanged();
    assert_eq!(contents(&engine, &mut journal, "a"), ["third"]);
    // What came over the length of `b` has left after the step.
    assert_eq!(contents(&engine, &mut journal, "b"), ["third"]);
    let kinds: Vec<_> = journal.records.values().map(|it| it[0]).collect();
    let (atomic, removed) = (Kind::Atomic as u8, Kind::Removed as u8);
    assert_eq!(kinds[kinds.len() - 2..], [atomic, removed]);
    let again = replayed(&journal.records).unwrap();
    for name in ["a", "b"] {
        assert_eq!(contents(&again, &mut journal, name), ["third"]);
    }
    let ends = ["a", "b"].map(|name| {
        let index = engine.queues.find(name).unwrap();
        engine.queues.at(index).last_lsn
    });
    assert_eq!(ends[1], journal.end(), "the removal");
    assert!(ends[0] < ends[1] && ends[0].0 > 0, "{ends:?}");
}

#[test]
fn without_its_record_nothing_of_an_atomic_step_is_there() {
    let (_, mut journal) = exchanged();
    journal.records.pop_last();
    journal.records.pop_last();
    let again = replayed(&journal.records).unwrap();
    assert_eq!(contents(&again, &mut journal, "a"), ["first"]);
    assert_eq!(contents(&again, &mut journal, "b"), ["other"]);
}

#[test]
fn an_atomic_record_that_is_cut_or_nested_is_refused() {
    let (_, journal) = exchanged();
    let (at, record) = journal.records.iter().nth_back(1).unwrap();
    let mut nested = Vec::new();
    begin(&mut nested, Kind::Atomic, QueueId(0), NOW);
    crate::record::put_long(&mut nested, record);
    let mut short = record.clone();
    short.pop();
    for (bad, expected) in [
        (nested, "within another"),
        (short, "ends within a record at byte"),
    ] {
        let mut records = journal.records.clone();
        records.insert(*at, bad);
        let problem = replayed(&records).err().unwrap().problem;
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_relative_position_means_nothing_outside_of_its_record() {
    let (_, journal) = exchanged();
    let (at, record) = journal.records.iter().nth_back(1).unwrap();
    let inner: Vec<_> = records_in(record)
        .map(|it| it.unwrap().1.to_vec())
        .collect();
    let mut records = journal.records.clone();
    // The second of two queues refers to the content in the record of the first.
    records.insert(*at, inner.last().unwrap().clone());
    let problem = replayed(&records).err().unwrap().problem;
    assert!(problem.contains("not before its record"), "{problem}");
}

#[test]
fn one_record_needs_no_other_around_it() {
    let (mut engine, mut journal) = started();
    let a = engine.queues.find("a").unwrap();
    with_cx(&mut journal, |cx| {
        engine.atomically(cx, |_, _| ());
        engine.atomically(cx, |engine, cx| {
            engine.store_message(cx, a, &incoming(b"alone"), &Keys::default(), None);
        });
    });
    engine.assert_invariants();
    let last = journal.records.values().next_back().unwrap();
    assert_eq!(last[0], Kind::Stored as u8);
    assert_eq!(contents(&engine, &mut journal, "a"), ["alone"]);
    assert_eq!(engine.queues.at(a).stored_lsn, journal.end());
}
