//! The client that reads, empties and removes everything at the end, one command at a time.

use tanda_wire::amaquet::Json;

use super::line::{Line, field, number, objects, text, text_in};
use super::{Asked, Cx, answers};
use crate::failure::Check;
use crate::history::amaquet::{Amaquet, COUNTERS, LEASE_MS, LISTS, LOCKS, QUEUE};
use crate::invariants::amaquet as promise;

/// What is done next.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Value(String),
    Counter(&'static str),
    /// Pops one item, until there is none; with the newest one of each connection before.
    Pop(&'static str, Vec<(String, u64)>),
    /// Takes messages, until there are none and none is leased.
    Take,
    Ack(Vec<(String, String)>),
    Stats,
    Remove,
    Delete(String),
    /// No key is left.
    Scan,
}

/// What there is to do, the last one first.
pub(super) fn steps(amaquet: &Amaquet) -> Vec<Step> {
    let mut steps = vec![Step::Scan];
    let keys = amaquet.written.keys().cloned();
    let shared = COUNTERS.iter().chain(&LOCKS).map(|it| (*it).to_owned());
    steps.extend(keys.chain(shared).map(Step::Delete));
    steps.extend([Step::Remove, Step::Take]);
    steps.extend(LISTS.map(|list| Step::Pop(list, Vec::new())));
    steps.extend(COUNTERS.map(Step::Counter));
    steps.extend(amaquet.written.keys().cloned().map(Step::Value));
    steps
}

pub(super) fn ask(line: &mut Line, step: &Step) {
    let of_key = |key: &str| format!(r#""key":"{key}""#);
    let of_queue = format!(r#""queue":"{QUEUE}""#);
    let (name, arguments) = match step {
        Step::Value(key) => ("value.get", of_key(key)),
        Step::Counter(key) => ("counter.get", of_key(key)),
        Step::Pop(list, _) => ("list.pop", of_key(list)),
        Step::Take => (
            "queue.pop",
            format!(r#"{of_queue},"max":1000,"wait_ms":4000,"lease_ms":{LEASE_MS}"#),
        ),
        Step::Ack(taken) => {
            let ids = taken.iter().map(|(_, id)| format!("\"{id}\""));
            let ids = ids.collect::<Vec<_>>().join(",");
            ("queue.ack", format!(r#"{of_queue},"ids":[{ids}]"#))
        }
        Step::Stats => ("queue.stats", of_queue),
        Step::Remove => ("queue.delete", of_queue),
        Step::Delete(key) => ("key.delete", of_key(key)),
        Step::Scan => ("key.scan", r#""glob":"*""#.to_owned()),
    };
    line.command(Asked::Drain(step.clone()), name, &arguments);
}

/// An answer to the last one of the steps.
pub(super) fn on_answer(
    steps: &mut Vec<Step>,
    step: Step,
    answer: Result<String, String>,
    cx: &mut Cx<'_>,
) -> Check {
    let amaquet = &mut cx.history.amaquet;
    let unexpected = |answer: &dyn core::fmt::Debug| promise::of(format!("{step:?}: {answer:?}"));
    let result = match &answer {
        Ok(result) => Some(result.as_str()),
        Err(code) if code == "NOT_FOUND" => None,
        Err(code) => return Err(unexpected(code)),
    };
    let bad = || unexpected(&answer);
    steps.pop();
    match (&step, result) {
        (Step::Value(key), found) => {
            let found = found.and_then(|it| field(it, "value"));
            let found = found.and_then(|it| number(it.text(), "data")).unwrap_or(0);
            let floor = amaquet.written.get(key).map_or(0, |it| it.floor);
            answers::read_value(amaquet, key, floor, found)
        }
        (Step::Counter(key), found) => {
            let found = found.and_then(|it| number(it, "value")).unwrap_or(0);
            let added = amaquet.added.entry(key).or_default();
            let floor = added.floor.max(added.answered);
            answers::read_counter(amaquet, key, floor, found)
        }
        (Step::Pop(list, newest), Some(found)) => {
            let item = text_in(found, "value").ok_or_else(bad)?;
            amaquet.on_popped(list, &item)?;
            let mut newest = newest.clone();
            // What was taken from the back of a list that vanished goes behind the new one.
            if amaquet.lists.get(list).is_some_and(|it| it.lost_pops == 0) {
                in_order(&mut newest, &item)?;
            }
            steps.push(Step::Pop(list, newest));
            Ok(())
        }
        (Step::Take | Step::Ack(_) | Step::Stats, Some(found)) => on_queue(steps, &step, found, cx),
        (Step::Scan, Some(found)) => {
            let keys = field(found, "keys").and_then(Json::as_array);
            let left: Vec<_> = keys.into_iter().flatten().map(Json::text).collect();
            crate::failure::ensure(left.is_empty(), promise::NAME, || {
                format!("{left:?} are left when everything was removed")
            })
        }
        (Step::Pop(..) | Step::Take | Step::Ack(_) | Step::Stats | Step::Scan, None)
        | (Step::Remove | Step::Delete(_), _) => Ok(()),
    }
}

/// The queue is emptied: what is taken is acknowledged, until nothing is left.
fn on_queue(steps: &mut Vec<Step>, step: &Step, found: &str, cx: &mut Cx<'_>) -> Check {
    let amaquet = &mut cx.history.amaquet;
    let bad = || promise::of(format!("{step:?}: {found}"));
    match step {
        Step::Take => {
            let mut taken = Vec::new();
            for message in objects(found, "messages") {
                let text_of = text_in(message, "payload").ok_or_else(bad)?;
                let id = text(message, "id").ok_or_else(bad)?;
                let until = number(message, "lease_expires_at").ok_or_else(bad)?;
                let acked = amaquet.counts.acked;
                amaquet.on_taken((&text_of, &id), tanda_engine::Millis(until), acked)?;
                taken.push((text_of, id));
            }
            steps.push(if taken.is_empty() {
                Step::Stats
            } else {
                Step::Ack(taken)
            });
            Ok(())
        }
        Step::Ack(taken) => {
            let done = objects(found, "results");
            let is_done =
                done.len() == taken.len() && done.iter().all(|it| field(it, "ok").is_some());
            for (text_of, _) in taken {
                amaquet.on_acks(core::slice::from_ref(text_of));
                amaquet.on_acked(text_of, true);
            }
            steps.push(Step::Take);
            if is_done { Ok(()) } else { Err(bad()) }
        }
        Step::Stats => {
            let left = ["depth", "in_flight", "delayed"].map(|name| number(found, name));
            if left != [Some(0); 3] {
                // Leases of others end some time.
                steps.push(Step::Take);
            }
            Ok(())
        }
        Step::Value(_)
        | Step::Counter(_)
        | Step::Pop(..)
        | Step::Remove
        | Step::Delete(_)
        | Step::Scan => Ok(()),
    }
}

/// Items of one connection come in the order in which it pushed them.
fn in_order(newest: &mut Vec<(String, u64)>, item: &str) -> Check {
    let Some((from, number)) = item.rsplit_once('.') else {
        return Err(promise::of(format!("{item} is no item")));
    };
    let number = number.parse().unwrap_or(0);
    match newest.iter_mut().find(|(it, _)| it == from) {
        Some((_, before)) => {
            promise::event(from, number, (*before, u64::MAX))?;
            *before = number;
        }
        None => newest.push((from.to_owned(), number)),
    }
    Ok(())
}
