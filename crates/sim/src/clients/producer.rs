//! A producer: batches of new messages, of messages whose fate is unknown, and of old ones.

use std::collections::BTreeMap;

use tanda_engine::{Millis, Permission};
use tanda_wire::fila::enqueue::{EnqueueItem, EnqueueResult, EnqueueWriter, encode_content};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::{ErrorCode, Opcode};

use super::{Cx, Incoming, Peer, is_refusal};
use crate::failure::{Check, ensure};
use crate::history::{
    Dedup, GROUP_HEADER, Grouping, History, Need, QueueDraw, Right, SendOutcome, Sent, TAG_HEADER,
};
use crate::invariants::{authority, protocol};
use crate::random::Random;

/// Messages of one run, of all producers.
const SENT_MAX: usize = 600;
const BATCH_MAX: usize = 12;

/// See the module.
pub(crate) struct Producer {
    requests_max: usize,
    open: BTreeMap<u32, Batch>,
    /// To be sent again.
    again: Vec<usize>,
}

struct Batch {
    sent_at: Millis,
    tags: Vec<usize>,
    /// To produce, of each.
    rights: Vec<Right>,
    /// Queues that were surely there when it was sent.
    found: Vec<String>,
}

impl Producer {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            requests_max: random.length(6),
            open: BTreeMap::new(),
            again: Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn act(&mut self, random: &mut Random, peer: &mut Peer, cx: &mut Cx<'_>) {
        if self.open.len() >= self.requests_max {
            return;
        }
        let count = random.length(BATCH_MAX);
        let tags: Vec<usize> = (0..count)
            .filter_map(|_| self.choose(random, cx.history))
            .collect();
        if tags.is_empty() {
            return;
        }
        let id = send(peer, cx.history, &tags);
        let rights = rights(peer, cx, &tags);
        for (tag, right) in tags.iter().zip(&rights) {
            cx.history.on_send(*tag, *right);
        }
        let conn = peer.conn;
        cx.trace
            .note(cx.now, || format!("  c{conn} enqueues {tags:?} as {id}"));
        let sent_at = cx.now;
        let found = cx.history.queues_that_are_there();
        self.open.insert(
            id,
            Batch {
                sent_at,
                tags,
                rights,
                found,
            },
        );
    }

    fn choose(&mut self, random: &mut Random, history: &mut History) -> Option<usize> {
        if !self.again.is_empty() && random.one_in(2) {
            return Some(self.again.swap_remove(random.index(self.again.len())));
        }
        if random.one_in(20) && !history.sent.is_empty() {
            return Some(random.index(history.sent.len()));
        }
        if history.sent.len() >= SENT_MAX {
            return None;
        }
        let names: Vec<&String> = history.queues.keys().collect();
        let name = (*random.pick(&names)?).clone();
        let draw = history.queues.get(&name)?.draw.clone();
        let tag = history.sent.len();
        let filler_max = if history.is_small { 200 } else { usize::MAX };
        let sent = new_message(random, tag, (name, &draw), filler_max);
        history.sent.push(sent);
        Some(tag)
    }

    pub(crate) fn on_frame(
        &mut self,
        random: &mut Random,
        frame: &Incoming,
        cx: &mut Cx<'_>,
    ) -> Check {
        let batch = self.open.remove(&frame.request_id);
        let Some(batch) = batch.filter(|_| frame.opcode == Opcode::EnqueueResult) else {
            return Err(protocol::stray(frame.opcode, frame.request_id));
        };
        let answer = EnqueueResult::decode(&frame.body)
            .map_err(|error| protocol::bad_body(frame.opcode, error))?;
        ensure(
            answer.results.len() == batch.tags.len(),
            protocol::NAME,
            || {
                format!(
                    "{} results for {} messages",
                    answer.results.len(),
                    batch.tags.len()
                )
            },
        )?;
        let items = batch.tags.iter().zip(&batch.rights);
        for ((tag, right), result) in items.zip(&answer.results) {
            let id = u128::from_be_bytes(result.message_id);
            cx.trace.note(cx.now, || {
                format!(
                    "  {tag}: {:?} {id:032x} {}",
                    result.error_code, result.duplicate
                )
            });
            judge(cx, right, result.error_code)?;
            let outcome = match (result.error_code, result.duplicate) {
                (ErrorCode::Ok, false) => SendOutcome::New(id),
                (ErrorCode::Ok, true) => SendOutcome::Duplicate(id),
                (code, _) => {
                    allowed(cx.history, &batch, *tag, code)?;
                    if random.one_in(2) {
                        self.again.push(*tag);
                    }
                    SendOutcome::Refused
                }
            };
            cx.history
                .on_send_ended(cx.now, batch.sent_at, *tag, outcome)?;
        }
        Ok(())
    }

    pub(crate) fn on_error(
        &mut self,
        request_id: u32,
        error: &ErrorFrame<'_>,
        cx: &mut Cx<'_>,
    ) -> Check {
        let Some(batch) = self.open.remove(&request_id) else {
            return Err(protocol::stray(Opcode::Error, request_id));
        };
        let outcome = if is_refusal(error) {
            SendOutcome::Refused
        } else {
            SendOutcome::Unknown
        };
        self.give_up(batch, outcome, cx)
    }

    pub(crate) fn on_lost(&mut self, random: &mut Random, cx: &mut Cx<'_>) -> Check {
        for (_, batch) in std::mem::take(&mut self.open) {
            self.give_up(batch, SendOutcome::Unknown, cx)?;
        }
        // Some producers forget what they did not hear of.
        self.again.retain(|_| random.percent(70));
        Ok(())
    }

    fn give_up(&mut self, batch: Batch, outcome: SendOutcome, cx: &mut Cx<'_>) -> Check {
        for tag in batch.tags {
            cx.history
                .on_send_ended(cx.now, batch.sent_at, tag, outcome)?;
            self.again.push(tag);
        }
        Ok(())
    }
}

fn rights(peer: &Peer, cx: &Cx<'_>, tags: &[usize]) -> Vec<Right> {
    let sent = tags.iter().filter_map(|tag| cx.history.sent.get(*tag));
    let right = |sent: &Sent| {
        let need = Need::Queue(Permission::Produce, &sent.queue);
        cx.history.keys.right(peer.holder, cx.now, need)
    };
    sent.map(right).collect()
}

/// Whether a key decided right.
fn judge(cx: &mut Cx<'_>, right: &Right, code: ErrorCode) -> Check {
    if code == ErrorCode::Ok {
        return authority::on_allowed(&cx.history.keys, right, "to produce");
    }
    if code == ErrorCode::Forbidden {
        cx.history.counts.forbidden += 1;
        return authority::on_forbidden(&cx.history.keys, right, cx.now);
    }
    Ok(())
}

/// A full disk refuses messages; a queue that may not be there is not found.
fn allowed(history: &History, batch: &Batch, tag: usize, code: ErrorCode) -> Check {
    let name = &history.sent(tag)?.queue;
    let was_there = batch.found.contains(name);
    let script = history.queue(name)?.draw.script;
    let rejects = script.classifies && !script.parks;
    let is_script = matches!(code, ErrorCode::ScriptError | ErrorCode::ScriptTimeout);
    let is_refusal = matches!(
        code,
        ErrorCode::StorageError | ErrorCode::ChannelFull | ErrorCode::Forbidden
    );
    let is_allowed =
        is_refusal || (code == ErrorCode::QueueNotFound && !was_there) || (is_script && rejects);
    if is_allowed {
        return Ok(());
    }
    Err(protocol::unexpected("enqueue", code))
}

fn send(peer: &mut Peer, history: &History, tags: &[usize]) -> u32 {
    peer.request_with(Opcode::Enqueue, |out| {
        let mut writer = EnqueueWriter::new(out);
        for sent in tags.iter().filter_map(|tag| history.sent.get(*tag)) {
            let item = EnqueueItem {
                queue: &sent.queue,
                payload: &sent.payload,
                fairness_key: sent.fairness_key.as_deref(),
                weight: sent.weight,
                delay_ms: sent.delay_ms,
                idempotency_key: sent.idempotency_key.as_deref(),
            };
            writer.push(&item, sent.headers.iter().map(|(n, v)| (n, v)))?;
        }
        writer.finish();
        Ok(())
    })
}

/// By the key's number, or any.
fn weight(random: &mut Random, draw: &QueueDraw, key: Option<&str>) -> Option<u32> {
    if draw.keeps_weights {
        let number = key.and_then(|key| key.bytes().last());
        return number.map(|digit| u32::from(digit % 5));
    }
    random
        .percent(30)
        .then(|| u32::try_from(random.below(5)).unwrap_or(1))
}

fn new_message(
    random: &mut Random,
    tag: usize,
    (queue, draw): (String, &QueueDraw),
    filler_max: usize,
) -> Sent {
    let mut headers = vec![(TAG_HEADER.to_owned(), tag.to_string())];
    let group = random.percent(90).then(|| random.below(3).to_string());
    if let Some(group) = &group {
        headers.push((GROUP_HEADER.to_owned(), group.clone()));
    }
    let fairness_key = random
        .percent(75)
        .then(|| format!("tenant-{}", random.below(5)));
    let idempotency_key = random.percent(50).then(|| format!("key-{tag}"));
    let mut payload = format!("message {tag} ").into_bytes();
    let filler = match random.below(100) {
        0 => random.length(100_000),
        1..=5 => random.length(6_000),
        _ => random.length(200),
    };
    let filler = filler.min(filler_max);
    let byte = u8::try_from(tag % 251).unwrap_or(0);
    payload.resize(payload.len() + filler, byte);
    let mut content = Vec::new();
    let pairs = headers.iter().map(|(n, v)| (n, v));
    let encoded = encode_content(&mut content, pairs, &payload);
    debug_assert!(encoded.is_ok(), "the simulator's messages are small");
    Sent {
        group: match draw.grouping {
            Grouping::None => None,
            Grouping::WholeQueue => Some(String::new()),
            Grouping::Header => group,
            Grouping::FairnessKey => fairness_key.clone(),
        },
        is_deduplicated: draw.dedup != Dedup::Producer || idempotency_key.is_some(),
        queue,
        content,
        headers,
        payload,
        weight: weight(random, draw, fairness_key.as_deref()),
        fairness_key,
        delay_ms: random.percent(15).then(|| random.below(3_000)),
        idempotency_key,
        first_sent: u64::MAX,
        open: 0,
        unknown: 0,
        ids: std::collections::BTreeSet::new(),
        rights: Vec::new(),
    }
}
