//! Amaquet clients: each has a connection and several commands on it at a time. They write values,
//! add to counters, push to lists and pop from them, hold locks, send and take messages, publish
//! and listen.
//!
//! What nobody else may write is written by one connection: what an older connection of the same
//! client sent may still arrive.

mod answers;
mod drain;
mod line;

use tanda_engine::Millis;
use tanda_wire::amaquet::Opcode;

use super::Cx;
use crate::failure::Check;
use crate::history::amaquet::{
    Amaquet, COUNTERS, LEASE_MS, LISTS, LOCKS, QUEUE, Queued, TOPIC, There,
};
use crate::random::Random;

use drain::Step;
use line::Came;
pub(crate) use line::Line;

/// Commands that one client has open at most.
const OPEN_MAX: usize = 8;

/// What was asked and is not answered, with what was known then.
#[derive(Debug)]
enum Asked {
    Set {
        key: String,
        number: u64,
    },
    Get {
        key: String,
        floor: u64,
    },
    Add {
        key: &'static str,
        floor: u64,
    },
    Count {
        key: &'static str,
        floor: u64,
    },
    Push {
        list: &'static str,
        items: Vec<String>,
    },
    Pop {
        list: &'static str,
        waits: bool,
    },
    Acquire {
        lock: &'static str,
        ttl_ms: u64,
        newest: u64,
    },
    Release {
        lock: &'static str,
        ends_at: Millis,
    },
    Send(Vec<String>),
    /// With how many acknowledgements had been answered.
    Take(u64),
    Ack(Vec<String>),
    Publish,
    Subscribe,
    /// Changes nothing that is remembered.
    Other,
    /// Of the one who empties everything.
    Drain(Step),
}

/// See the module.
pub(crate) struct AmaquetClient {
    pub(crate) line: Option<Line>,
    /// It empties everything, and what is left to do.
    drain: Option<Vec<Step>>,
}

impl AmaquetClient {
    pub(crate) const fn new() -> Self {
        let (line, drain) = (None, None);
        Self { line, drain }
    }

    /// One that reads, empties and removes everything.
    pub(crate) fn drainer(amaquet: &Amaquet) -> Self {
        Self {
            line: None,
            drain: Some(drain::steps(amaquet)),
        }
    }

    pub(crate) fn connect(&mut self, conn: u64) {
        self.line = Some(Line::new(conn));
    }

    /// Nothing that it asked is unanswered.
    pub(crate) fn is_idle(&self) -> bool {
        self.line.as_ref().is_none_or(|line| {
            let mut open = line.open.values();
            open.all(|asked| matches!(asked, Asked::Subscribe)) || line.has_ended
        })
    }

    /// There is nothing left to empty.
    pub(crate) fn has_drained(&self) -> bool {
        self.drain.as_ref().is_some_and(Vec::is_empty) && self.is_idle()
    }

    pub(crate) fn act(&mut self, random: &mut Random, cx: &mut Cx<'_>) {
        let Some(line) = self.line.as_mut().filter(|line| !line.has_ended) else {
            return;
        };
        if let Some(steps) = &self.drain {
            if line.open.is_empty()
                && let Some(step) = steps.last()
            {
                drain::ask(line, step);
            }
            return;
        }
        if line.open.len() >= OPEN_MAX {
            return;
        }
        let amaquet = &mut cx.history.amaquet;
        match random.below(24) {
            0..=2 => set(line, amaquet),
            3..=4 => get(line, amaquet, random),
            5..=7 => add(line, amaquet, random),
            8..=10 => push(line, amaquet, random),
            11..=13 => pop(line, random),
            14..=15 => lock(line, amaquet, random),
            16..=17 => send(line, amaquet, random),
            18 => take(line, amaquet, random),
            19..=20 => ack(line, amaquet),
            21 => publish(line, amaquet),
            22 => subscribe(line, amaquet, random),
            _ => cancel(line, random),
        }
    }

    /// Bytes came from the broker.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8], cx: &mut Cx<'_>) -> Check {
        let Some(line) = &mut self.line else {
            return Ok(());
        };
        line.receive(bytes);
        while let Some(came) = line.next()? {
            cx.trace
                .note(cx.now, || format!("  {}: {came:?}", line.name));
            match came {
                Came::Event(event) => answers::on_event(line, &event, cx)?,
                Came::Answer(id, answer) => {
                    let Some(asked) = line.open.remove(&id) else {
                        let text = format!("an answer to {id}, which nobody asked: {answer:?}");
                        return Err(crate::invariants::amaquet::of(text));
                    };
                    cx.trace.note(cx.now, || format!("    to {asked:?}"));
                    if let Asked::Drain(step) = asked {
                        let steps = self.drain.get_or_insert_default();
                        drain::on_answer(steps, step, answer, cx)?;
                    } else {
                        answers::on_answer(line, (id, asked), answer, cx)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The connection is gone.
    pub(crate) fn on_lost(&mut self, cx: &mut Cx<'_>) {
        if let Some(line) = self.line.take() {
            for asked in line.open.into_values() {
                answers::on_unknown(&asked, &mut cx.history.amaquet);
            }
        }
    }
}

fn set(line: &mut Line, amaquet: &mut Amaquet) {
    let key = format!("value-{}", line.name);
    let written = amaquet.written.entry(key.clone()).or_default();
    written.issued += 1;
    let number = written.issued;
    let arguments = format!(r#""key":"{key}","value":{number}"#);
    line.command(Asked::Set { key, number }, "value.set", &arguments);
}

fn get(line: &mut Line, amaquet: &Amaquet, random: &mut Random) {
    if random.one_in(3) {
        let key = *random.pick(&COUNTERS).unwrap_or(&COUNTERS[0]);
        let floor = amaquet.added.get(key).map_or(0, |it| it.floor);
        let asked = Asked::Count { key, floor };
        return line.command(asked, "counter.get", &format!(r#""key":"{key}""#));
    }
    // Mostly one of the newest.
    let skip = random.length(amaquet.written.len().max(1)) - 1;
    if let Some((key, written)) = amaquet.written.iter().rev().nth(skip) {
        let (key, floor) = (key.clone(), written.floor);
        let arguments = format!(r#""key":"{key}""#);
        line.command(Asked::Get { key, floor }, "value.get", &arguments);
    }
}

fn add(line: &mut Line, amaquet: &mut Amaquet, random: &mut Random) {
    let key = *random.pick(&COUNTERS).unwrap_or(&COUNTERS[0]);
    let added = amaquet.added.entry(key).or_default();
    added.issued += 1;
    let floor = added.floor;
    let arguments = format!(r#""key":"{key}""#);
    line.command(Asked::Add { key, floor }, "counter.add", &arguments);
}

/// A text that nobody else writes, and that is behind all others of this connection.
fn fresh(line: &mut Line) -> String {
    line.written += 1;
    format!("{}.{}", line.name, line.written)
}

fn push(line: &mut Line, amaquet: &mut Amaquet, random: &mut Random) {
    let list = *random.pick(&LISTS).unwrap_or(&LISTS[0]);
    let items: Vec<String> = (0..random.length(4)).map(|_| fresh(line)).collect();
    let listed = amaquet.lists.entry(list).or_default();
    for item in &items {
        listed.items.insert(item.clone(), There::Maybe);
    }
    let values = items.iter().map(|item| payload(item));
    let values = values.collect::<Vec<_>>().join(",");
    let arguments = format!(r#""key":"{list}","values":[{values}]"#);
    line.command(Asked::Push { list, items }, "list.push", &arguments);
}

fn payload(text: &str) -> String {
    format!(r#"{{"type":"text","data":"{text}"}}"#)
}

fn pop(line: &mut Line, random: &mut Random) {
    let list = *random.pick(&LISTS).unwrap_or(&LISTS[0]);
    let wait_ms = random.below(2) * random.below(3_000);
    let side = if random.one_in(4) { "back" } else { "front" };
    let arguments = format!(r#""key":"{list}","side":"{side}","wait_ms":{wait_ms}"#);
    let waits = wait_ms > 0;
    line.command(Asked::Pop { list, waits }, "list.pop", &arguments);
}

fn lock(line: &mut Line, amaquet: &mut Amaquet, random: &mut Random) {
    if let Some((lock, token)) = line.held.pop() {
        amaquet.on_release(lock, token);
        let grants = amaquet.locks.get(lock);
        let granted = grants.and_then(|it| it.iter().find(|it| it.token == token));
        let ends_at = granted.map_or(Millis(0), |it| it.ends_at);
        let arguments = format!(r#""key":"{lock}","token":{token}"#);
        let asked = Asked::Release { lock, ends_at };
        return line.command(asked, "lock.release", &arguments);
    }
    let lock = *random.pick(&LOCKS).unwrap_or(&LOCKS[0]);
    let (ttl_ms, wait_ms) = (random.between(1, 4_000), random.below(2) * 2_000);
    let newest = amaquet.newest_token;
    let arguments = format!(r#""key":"{lock}","ttl_ms":{ttl_ms},"wait_ms":{wait_ms}"#);
    let asked = Asked::Acquire {
        lock,
        ttl_ms,
        newest,
    };
    line.command(asked, "lock.acquire", &arguments);
}

fn send(line: &mut Line, amaquet: &mut Amaquet, random: &mut Random) {
    if random.one_in(4) || amaquet.queued.is_empty() {
        let arguments = format!(
            r#""queue":"{QUEUE}","max_attempts":1000000,"backoff":"none",
            "delivery_durability":"committed""#
        );
        line.command(Asked::Other, "queue.create", &arguments);
    }
    let texts: Vec<String> = (0..random.length(4)).map(|_| fresh(line)).collect();
    for text in &texts {
        let queued = Queued {
            there: There::Maybe,
            id: None,
            leased_until: Vec::new(),
            acks_open: 0,
            gone_at: 0,
        };
        amaquet.queued.insert(text.clone(), queued);
    }
    let messages = texts
        .iter()
        .map(|it| format!(r#"{{"payload":{}}}"#, payload(it)));
    let messages = messages.collect::<Vec<_>>().join(",");
    let arguments = format!(r#""queue":"{QUEUE}","messages":[{messages}]"#);
    line.command(Asked::Send(texts), "queue.push", &arguments);
}

fn take(line: &mut Line, amaquet: &Amaquet, random: &mut Random) {
    let (max, wait_ms) = (random.length(8), random.below(2) * random.below(2_000));
    let arguments =
        format!(r#""queue":"{QUEUE}","max":{max},"wait_ms":{wait_ms},"lease_ms":{LEASE_MS}"#);
    let asked = Asked::Take(amaquet.counts.acked);
    line.command(asked, "queue.pop", &arguments);
}

fn ack(line: &mut Line, amaquet: &mut Amaquet) {
    let taken = core::mem::take(&mut line.taken);
    if taken.is_empty() {
        return;
    }
    let (texts, ids): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
    amaquet.on_acks(&texts);
    let ids = ids.iter().map(|id| format!("\"{id}\""));
    let ids = ids.collect::<Vec<_>>().join(",");
    let arguments = format!(r#""queue":"{QUEUE}","ids":[{ids}]"#);
    line.command(Asked::Ack(texts), "queue.ack", &arguments);
}

fn publish(line: &mut Line, amaquet: &mut Amaquet) {
    amaquet.has_topic = true;
    let number = amaquet.published.entry(line.name.clone()).or_default();
    *number += 1;
    let (name, number) = (&line.name, *number);
    let arguments = format!(r#""key":"{TOPIC}","channel":"{name}.x","payload":{number}"#);
    line.command(Asked::Publish, "pubsub.publish", &arguments);
}

fn subscribe(line: &mut Line, amaquet: &mut Amaquet, random: &mut Random) {
    if line.subscription.is_some() {
        return;
    }
    amaquet.has_topic = true;
    let buffer = random.length(16);
    let payload = format!(r##"{{"key":"{TOPIC}","channel":"#","buffer":{buffer}}}"##);
    let id = line.ask(Opcode::Subscribe, Asked::Subscribe, &payload);
    line.subscription = Some(id);
}

fn cancel(line: &mut Line, random: &mut Random) {
    let open: Vec<u64> = line.open.keys().copied().collect();
    if let Some(id) = random.pick(&open) {
        let payload = format!(r#"{{"request_id":{id}}}"#);
        line.ask(Opcode::Cancel, Asked::Other, &payload);
    }
}
