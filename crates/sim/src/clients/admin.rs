//! An administrator: creates, changes, redrives, and asks for statistics.

use std::collections::BTreeMap;

use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::property_key::{KeyPart, KeyPartKind, PropertyKey};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Redrive, RedriveResult};
use tanda_wire::fila::stats::{GetStats, GetStatsResult};
use tanda_wire::fila::{ErrorCode, Opcode};

use super::key_admin::KeyAdmin;
use super::{Cx, Incoming, Peer};
use crate::failure::{Check, Violation};
use crate::history::{
    Dedup, GROUP_HEADER, Grouping, History, QueueDraw, QueueFacts, TAG_HEADER, attempts_max,
    dedup_window_ms, lease_ms, main_of,
};
use crate::invariants::protocol;
use crate::random::Random;

/// The text of scripts: nobody reads it.
pub(crate) const SCRIPT: &str = "-- as the simulator has it";

/// See the module.
#[derive(Default)]
pub(crate) struct Admin {
    open: BTreeMap<u32, Asked>,
    keys: KeyAdmin,
    /// Counters that were asked for, by name of the queue.
    pub(crate) stats: BTreeMap<String, Counters>,
    /// Queues that are surely there now.
    found: Vec<String>,
}

/// What a request was about.
struct Asked {
    what: What,
    queue: String,
    /// Queues that were surely there when it was sent.
    found: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Create,
    Update,
    Delete,
    Redrive,
    Stats,
}

/// Of a `GetStatsResult`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) depth: u64,
    pub(crate) in_flight: u64,
    pub(crate) delayed: u64,
    pub(crate) keys: u64,
}

impl Admin {
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.keys.is_idle()
    }

    pub(crate) fn act(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        if self.keys.wants_to_act(random, cx) {
            return self.keys.act(random, peer, cx);
        }
        if self.open.len() >= 3 {
            return;
        }
        let missing = cx
            .history
            .queues
            .iter()
            .find(|(_, facts)| !facts.is_there && !facts.is_scratch);
        if let Some((name, facts)) = missing {
            let (name, draw) = (name.clone(), facts.draw.clone());
            return self.create(peer, name, &draw);
        }
        let names: Vec<String> = cx.history.queues.keys().cloned().collect();
        let Some(name) = random.pick(&names).cloned() else {
            return;
        };
        let Some(facts) = cx.history.queues.get_mut(&name) else {
            return;
        };
        match random.below(10) {
            0..=2 => self.update(random, peer, (name, facts)),
            3..=6 => self.redrive(random, peer, (name, facts)),
            _ if facts.is_scratch && random.one_in(2) => self.delete(peer, name),
            _ if facts.is_scratch => {
                let draw = facts.draw.clone();
                self.create(peer, name, &draw);
            }
            _ => self.ask(peer, name),
        }
    }

    /// Asks for the counters of a queue.
    pub(crate) fn ask(&mut self, peer: &mut Peer, queue: String) {
        let id = peer.request(&GetStats { queue: &queue });
        self.stats.remove(&queue);
        self.note(id, What::Stats, queue);
    }

    fn create(&mut self, peer: &mut Peer, name: String, draw: &QueueDraw) {
        let grouping_key = [group_part(draw.grouping)];
        let dedup_key = [dedup_part(draw.dedup)];
        let parts = |parts: &[Option<KeyPart<'static>>]| PropertyKey {
            parts: parts.iter().flatten().cloned().collect(),
        };
        let id = peer.request(&CreateQueue {
            name: &name,
            visibility_timeout_ms: draw.lease_ms,
            ordering: match draw.grouping {
                Grouping::None => 0,
                Grouping::WholeQueue => 1,
                Grouping::Header | Grouping::FairnessKey => 2,
            },
            ordering_key: parts(&grouping_key),
            when_ordering_key_missing: 1,
            dedup_key: parts(&dedup_key),
            dedup_window_ms: draw.dedup_window_ms,
            max_attempts: draw.attempts_max,
            backoff: draw.backoff,
            backoff_initial_ms: draw.backoff_initial_ms,
            backoff_max_ms: draw.backoff_max_ms,
            on_enqueue_script: draw.script.classifies.then_some(SCRIPT),
            on_failure_script: draw.script.decides.then_some(SCRIPT),
            script_failure: u8::from(draw.script.parks),
            park_dead_letter_after: draw.script.park_dead_letter_after,
            delivery_durability: u8::from(draw.is_fast),
            reclaim_grace_ms: if draw.is_fast {
                draw.reclaim_grace_ms
            } else {
                0
            },
        });
        self.note(id, What::Create, name);
    }

    fn update(
        &mut self,
        random: &mut Random,
        peer: &mut Peer,
        (name, facts): (String, &mut QueueFacts),
    ) {
        let lease_ms = random.one_in(3).then(|| lease_ms(random));
        let dedup_window_ms = random.one_in(4).then(|| dedup_window_ms(random));
        let max_attempts = random.one_in(3).then(|| attempts_max(random));
        let backoff_initial_ms = random.one_in(4).then(|| random.between(1, 200));
        let backoff = random.one_in(4).then(|| random.below(4));
        let backoff_max_ms = random.one_in(4).then(|| random.between(200, 3_000));
        let reclaim_grace_ms = random.one_in(4).then(|| random.between(10, 2_000));
        let park_dead_letter_after = random.one_in(4).then_some(1);
        // Rarely, so that most queues stay committed from first to last.
        let durability = random.one_in(30).then(|| random.below(2));
        facts.lease_ms.extend(lease_ms);
        if let Some(ms) = dedup_window_ms {
            facts.note_dedup_window(ms);
        }
        facts.attempts_max = facts.attempts_max.max(max_attempts.unwrap_or(0));
        facts.was_fast |= durability == Some(1);
        let id = peer.request(&UpdateQueue {
            queue: &name,
            visibility_timeout_ms: lease_ms,
            dedup_window_ms,
            max_attempts,
            backoff: backoff.and_then(|number| u8::try_from(number).ok()),
            backoff_initial_ms,
            backoff_max_ms,
            reclaim_grace_ms,
            park_dead_letter_after,
            delivery_durability: durability.map(|number| u8::from(number == 1)),
            ..UpdateQueue::default()
        });
        self.note(id, What::Update, name);
    }

    fn redrive(
        &mut self,
        random: &mut Random,
        peer: &mut Peer,
        (name, facts): (String, &mut QueueFacts),
    ) {
        facts.redrives += 1;
        let queue = format!("{name}.dlq");
        let count = if random.one_in(2) { 0 } else { random.below(5) };
        let id = peer.request(&Redrive {
            dlq_queue: &queue,
            count,
            reclassify: u8::try_from(random.below(3)).unwrap_or(0),
        });
        self.note(id, What::Redrive, queue);
    }

    fn delete(&mut self, peer: &mut Peer, name: String) {
        let id = peer.request(&DeleteQueue { queue: &name });
        self.note(id, What::Delete, name);
    }

    fn note(&mut self, id: u32, what: What, queue: String) {
        let found = self.found.clone();
        self.open.insert(id, Asked { what, queue, found });
    }

    pub(crate) fn on_frame(&mut self, frame: &Incoming, cx: &mut Cx<'_>) -> Check {
        if let Some(checked) = self.keys.on_frame(frame, cx) {
            return checked;
        }
        let Some(asked) = self.open.remove(&frame.request_id) else {
            return Err(protocol::stray(frame.opcode, frame.request_id));
        };
        let body = frame.body.as_slice();
        let decoded = match (asked.what, frame.opcode) {
            (What::Create, Opcode::CreateQueueResult) => {
                CreateQueueResult::decode(body).map(|answer| answer.error_code)
            }
            (What::Update, Opcode::UpdateQueueResult) => {
                UpdateQueueResult::decode(body).map(|answer| answer.error_code)
            }
            (What::Delete, Opcode::DeleteQueueResult) => {
                DeleteQueueResult::decode(body).map(|answer| answer.error_code)
            }
            (What::Redrive, Opcode::RedriveResult) => {
                RedriveResult::decode(body).map(|answer| answer.error_code)
            }
            (What::Stats, Opcode::GetStatsResult) => GetStatsResult::decode(body).map(|answer| {
                let counters = Counters {
                    depth: answer.depth,
                    in_flight: answer.in_flight,
                    delayed: answer.delayed,
                    keys: answer.active_fairness_keys,
                };
                self.stats.insert(asked.queue.clone(), counters);
                answer.error_code
            }),
            _ => return Err(protocol::stray(frame.opcode, frame.request_id)),
        };
        let code = decoded.map_err(|error| protocol::bad_body(frame.opcode, error))?;
        cx.trace.note(cx.now, || {
            format!("  {} of {:?}: {code:?}", frame.opcode, asked.queue)
        });
        judge(cx.history, &asked, code)
    }

    /// Refused or not: the outcome does not matter, but for keys.
    pub(crate) fn on_error(&mut self, request_id: u32, error: &ErrorFrame<'_>, cx: &mut Cx<'_>) {
        if self.keys.on_error(request_id, error, cx).is_none() {
            self.open.remove(&request_id);
        }
    }

    pub(crate) fn on_lost(&mut self, cx: &mut Cx<'_>) {
        self.open.clear();
        self.keys.on_lost(cx);
    }
}

/// A queue that is there is found, and created once.
fn judge(history: &mut History, asked: &Asked, code: ErrorCode) -> Check {
    let name = main_of(&asked.queue).0;
    let Some(facts) = history.queues.get_mut(name) else {
        return Ok(());
    };
    let was_there = asked.found.iter().any(|found| found == name);
    let is_expected = match (asked.what, code) {
        (What::Create, ErrorCode::Ok) => {
            facts.is_there = !facts.is_scratch;
            !was_there
        }
        (What::Create, ErrorCode::QueueAlreadyExists) => {
            // An answer that never came said so before.
            facts.is_there = !facts.is_scratch;
            true
        }
        (What::Create | What::Update, ErrorCode::StorageError) | (_, ErrorCode::Ok) => true,
        (_, ErrorCode::QueueNotFound) => !was_there,
        _ => false,
    };
    if is_expected {
        return Ok(());
    }
    Err(Violation {
        what: format!("{:?}: {code:?}", asked.queue),
        ..protocol::unexpected("admin", code)
    })
}

fn group_part(grouping: Grouping) -> Option<KeyPart<'static>> {
    let (kind, name) = match grouping {
        Grouping::None | Grouping::WholeQueue => return None,
        Grouping::Header => (KeyPartKind::Header, GROUP_HEADER),
        Grouping::FairnessKey => (KeyPartKind::FairnessKey, ""),
    };
    Some(KeyPart {
        kind: kind as u8,
        name,
    })
}

fn dedup_part(dedup: Dedup) -> Option<KeyPart<'static>> {
    let (kind, name) = match dedup {
        Dedup::Producer => return None,
        Dedup::TagHeader => (KeyPartKind::Header, TAG_HEADER),
        Dedup::Payload => (KeyPartKind::PayloadHash, ""),
        Dedup::AllHeaders => (KeyPartKind::HeadersHash, ""),
    };
    Some(KeyPart {
        kind: kind as u8,
        name,
    })
}
