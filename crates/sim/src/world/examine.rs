//! What a start would find, looked at on copies of a crashed disk: the run itself goes on as if
//! nobody had looked.

use std::collections::BTreeMap;

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, Event, MessageId, MessagePlace, Millis, ReplyTo, Request,
    VhostId,
};
use tanda_node::Node;
use tanda_wal::mem_disk::MemDisk;

use crate::disk::SimDisk;
use crate::failure::{Check, Violation};
use crate::invariants::{amqp, damage_is_told, one_place, recovers, replay_same};

use super::World;
use super::emptied::{Emptied, empty};

/// Messages looked for at most.
const SAMPLE_MAX: usize = 40;
/// Later than any record: leases that end at the start are over for every copy.
const LATER_MS: u64 = 10;
/// Passes of a node that only looks for messages.
const PASSES_MAX: usize = 100_000;

/// Where the broker says that a message is: asked of its queue and of its dead-letter queue.
pub(crate) type Places = BTreeMap<u128, [MessagePlace; 2]>;

impl World {
    /// After a crash, before the start.
    pub(super) fn examine(&mut self) -> Check {
        if self.looks.one_in(3) {
            self.open_twice()?;
        }
        if self.looks.one_in(2) {
            self.damage_a_copy()?;
        }
        Ok(())
    }

    fn open_twice(&mut self) -> Check {
        let ids = self.sample();
        let first = copy_of(&self.host.disk);
        let second = copy_of(&self.host.disk);
        let places = self.places_on(&first, &ids)?;
        one_place::when_opened(&self.history, &places)?;
        replay_same::equal(&places, &self.places_on(&second, &ids)?)?;
        // Killed in the middle of what a start does, and opened again.
        let again = self.places_on(&first.kill(), &ids)?;
        replay_same::as_many(&places, &again)?;
        self.compare_topology(&copy_of(&self.host.disk))?;
        self.empty_copies()
    }

    /// What AMQP's queues hold is what was confirmed, and the same in every copy.
    fn empty_copies(&self) -> Check {
        if !self.history.amqp.is_there() {
            return Ok(());
        }
        let first = self.emptied_on(&copy_of(&self.host.disk))?;
        amqp::one_moment::when_opened(&self.history.amqp, &self.history.amqp, &first)?;
        let second = self.emptied_on(&copy_of(&self.host.disk))?;
        replay_same::equal_amqp(&first, &second)?;
        let third = copy_of(&self.host.disk);
        drop(self.opened(&third)?);
        let again = self.emptied_on(&third.kill())?;
        replay_same::as_many_amqp(&self.history.amqp, &first, &again)
    }

    fn emptied_on(&self, disk: &MemDisk) -> Result<Emptied, Violation> {
        let mut node = self.opened(disk)?;
        let now = node.clock_floor().max(self.now).after_ms(LATER_MS);
        empty(&mut node, now)
    }

    /// A bit of what is on disk has turned while the machine was down.
    fn damage_a_copy(&mut self) -> Check {
        let copy = copy_of(&self.host.disk);
        let names = copy.names();
        let Some(name) = self.looks.pick(&names).cloned() else {
            return Ok(());
        };
        let len = copy.content(&name).map_or(0, |content| content.len());
        let offset = self.looks.index(len);
        let newest = newest_segment(&copy);
        copy.damage(&name, offset);
        let ids = self.sample();
        let mut node = match self.host.open_copy(&copy, self.now) {
            Ok(node) => node,
            Err(error) => return damage_is_told::on_refused(&error),
        };
        if newest == Some(name.clone()) {
            // Where the log ends, damage cannot be told from a write that was torn.
            return Ok(());
        }
        let places = self.ask(&mut node, &ids)?;
        if node.stats().page_errors > 0 {
            // Pages are read when they are needed: it is told, and the messages of a damaged one
            // wait
            // where nobody can name them.
            return Ok(());
        }
        damage_is_told::when_opened(&self.history, &places, (&name, offset))
    }

    /// Some of the messages that are known, all over the run.
    fn sample(&mut self) -> Vec<u128> {
        let known = self.history.messages.len();
        let step = known.div_ceil(SAMPLE_MAX).max(1);
        let from = self.looks.index(step);
        let ids = self.history.messages.keys().copied();
        ids.skip(from).step_by(step).collect()
    }

    fn places_on(&self, disk: &MemDisk, ids: &[u128]) -> Result<Places, Violation> {
        let mut node = self.opened(disk)?;
        self.ask(&mut node, ids)
    }

    fn opened(&self, disk: &MemDisk) -> Result<Node<SimDisk>, Violation> {
        let opened = self.host.open_copy(disk, self.now);
        opened.map_err(|error| Violation {
            invariant: recovers::NAME,
            what: format!("a copy of the disk does not open: {error}"),
        })
    }

    fn ask(&self, node: &mut Node<SimDisk>, ids: &[u128]) -> Result<Places, Violation> {
        node.assert_invariants();
        let now = node.clock_floor().max(self.now).after_ms(LATER_MS);
        // At rest first: a search must not miss what moves between memory and pages meanwhile.
        answers(node, now, 0)?;
        let mut asked = Vec::new();
        for id in ids {
            let tag = self.history.message(*id)?.tag;
            let queue = &self.history.sent(tag)?.queue;
            for name in [queue.clone(), format!("{queue}.dlq")] {
                let token = u32::try_from(asked.len()).unwrap_or(u32::MAX);
                let message = Some(MessageId(*id));
                let request = AdminRequest::Explain {
                    vhost: VhostId::DEFAULT,
                    name,
                    message,
                };
                let conn = ConnId(0);
                let reply = ReplyTo { conn, token };
                node.handle(now, Request::Admin { reply, request });
                asked.push(*id);
            }
        }
        let mut places = Places::new();
        for (token, place) in answers(node, now, asked.len())? {
            let Some(id) = asked.get(token as usize) else {
                continue;
            };
            let both = places
                .entry(*id)
                .or_insert([MessagePlace::Unknown, MessagePlace::Unknown]);
            let [main, dead_letters] = both;
            *(if token % 2 == 0 { main } else { dead_letters }) = place;
        }
        Ok(places)
    }
}

/// Lets the node answer everything.
fn answers(
    node: &mut Node<SimDisk>,
    now: Millis,
    count: usize,
) -> Result<Vec<(u32, MessagePlace)>, Violation> {
    let (mut events, mut found) = (Vec::new(), Vec::new());
    for _ in 0..PASSES_MAX {
        let more = node.run(now);
        if let Some(job) = node.take_flush() {
            node.on_flushed(now, job.run());
        }
        node.drain_released(&mut events);
        for (_, event) in events.drain(..) {
            let Event::Admin { token, reply } = event else {
                continue;
            };
            let place = if let AdminReply::Explained(Ok(it)) = *reply {
                it.message.unwrap_or(MessagePlace::Unknown)
            } else {
                MessagePlace::Unknown
            };
            found.push((token, place));
        }
        if found.len() == count && !more {
            return Ok(found);
        }
    }
    Err(recovers::stuck("a copy of the disk does not answer"))
}

/// What is on the disk, without the faults that are planned for it.
fn copy_of(disk: &MemDisk) -> MemDisk {
    let copy = MemDisk::new(1);
    for name in disk.names() {
        if let Some(content) = disk.content(&name) {
            copy.set_content(&name, &content);
        }
    }
    copy
}

/// The file of the log's newest segment: names say nothing of that, headers do
/// (`docs/formats/log.md`, "Segment header").
fn newest_segment(disk: &MemDisk) -> Option<String> {
    const STATE: std::ops::Range<usize> = 10..12;
    const INDEX: std::ops::Range<usize> = 48..56;
    let names = disk.names().into_iter().filter(|it| it.ends_with(".seg"));
    let segments = names.filter_map(|name| {
        let content = disk.content(&name)?;
        let is_segment = content.get(STATE)? == [2, 0];
        let index = content.get(INDEX)?.try_into().ok()?;
        is_segment.then_some((u64::from_le_bytes(index), name))
    });
    segments.max().map(|(_, name)| name)
}
