//! What clients make of answers and events.

use tanda_engine::Millis;

use super::line::{Line, field, number, objects, text, text_in};
use super::{Asked, Cx};
use crate::failure::Check;
use crate::history::amaquet::{Amaquet, Granted, There};
use crate::invariants::amaquet as promise;

/// Codes that any command may be answered with when nothing was done. The last one is for a frame
/// whose end did not come, or not in time.
const NOT_DONE: [&str; 3] = ["OVERLOADED", "CANCELLED", "BAD_FRAME"];
/// Nobody knows what was done.
const UNKNOWN: &str = "INTERNAL";

pub(super) fn on_answer(
    line: &mut Line,
    (id, asked): (u64, Asked),
    answer: Result<String, String>,
    cx: &mut Cx<'_>,
) -> Check {
    match answer {
        Ok(result) => {
            cx.history.amaquet.counts.answered += 1;
            on_result(line, asked, &result, cx)
        }
        Err(code) => {
            if line.subscription == Some(id) {
                line.subscription = None;
            }
            on_failure(&asked, &code, cx)
        }
    }
}

fn on_result(line: &mut Line, asked: Asked, result: &str, cx: &mut Cx<'_>) -> Check {
    let amaquet = &mut cx.history.amaquet;
    let missing = || promise::of(format!("{result} answers no {asked:?}"));
    match &asked {
        Asked::Set { key, number } => {
            let written = amaquet.written.entry(key.clone()).or_default();
            written.floor = written.floor.max(*number);
        }
        Asked::Get { key, floor } => {
            let found = field(result, "value").and_then(|it| number(it.text(), "data"));
            read_value(amaquet, key, *floor, found.ok_or_else(missing)?)?;
        }
        Asked::Add { key, floor } => {
            let value = number(result, "value").ok_or_else(missing)?;
            amaquet.on_added(key, *floor, value)?;
        }
        Asked::Count { key, floor } => {
            let value = number(result, "value").ok_or_else(missing)?;
            read_counter(amaquet, key, *floor, value)?;
        }
        Asked::Push { list, items } => {
            let listed = amaquet.lists.entry(list).or_default();
            for item in items {
                let there = listed.items.entry(item.clone()).or_insert(There::Maybe);
                if *there == There::Maybe {
                    *there = There::Yes;
                }
            }
        }
        Asked::Pop { list, waits } => {
            let item = text_in(result, "value").ok_or_else(missing)?;
            amaquet.counts.waited += u64::from(*waits);
            amaquet.on_popped(list, &item)?;
        }
        Asked::Acquire {
            lock,
            ttl_ms,
            newest,
        } => {
            let token = number(result, "token").ok_or_else(missing)?;
            let ends_at = number(result, "expires_at").ok_or_else(missing)?;
            let granted = Granted {
                token,
                at: Millis(ends_at.saturating_sub(*ttl_ms)),
                ends_at: Millis(ends_at),
                is_released: false,
            };
            amaquet.on_granted(lock, *newest, granted)?;
            line.held.push((lock, token));
        }
        Asked::Send(texts) => on_sent(amaquet, texts, result),
        Asked::Take(acked) => {
            for message in objects(result, "messages") {
                let text_of = text_in(message, "payload").ok_or_else(missing)?;
                let id = text(message, "id").ok_or_else(missing)?;
                let until = number(message, "lease_expires_at").ok_or_else(missing)?;
                amaquet.on_taken((&text_of, &id), Millis(until), *acked)?;
                line.taken.push((text_of, id));
            }
        }
        Asked::Ack(texts) => {
            for (text_of, one) in texts.iter().zip(objects(result, "results")) {
                amaquet.on_acked(text_of, field(one, "ok").is_some());
            }
        }
        Asked::Release { .. } | Asked::Publish | Asked::Subscribe | Asked::Other => {}
        Asked::Drain(_) => {}
    }
    Ok(())
}

/// Some of the messages may have been refused.
fn on_sent(amaquet: &mut Amaquet, texts: &[String], result: &str) {
    for (text_of, one) in texts.iter().zip(objects(result, "messages")) {
        let Some(id) = text(one, "id") else {
            continue;
        };
        if let Some(queued) = amaquet.queued.get_mut(text_of)
            && queued.there == There::Maybe
        {
            (queued.there, queued.id) = (There::Yes, Some(id));
        }
    }
}

pub(super) fn read_value(amaquet: &mut Amaquet, key: &str, floor: u64, found: u64) -> Check {
    let written = amaquet.written.entry(key.to_owned()).or_default();
    promise::in_bounds(key, found, (floor, written.issued))?;
    written.floor = written.floor.max(found);
    Ok(())
}

pub(super) fn read_counter(
    amaquet: &mut Amaquet,
    key: &'static str,
    floor: u64,
    found: u64,
) -> Check {
    let added = amaquet.added.entry(key).or_default();
    promise::in_bounds(key, found, (floor, added.issued))?;
    added.floor = added.floor.max(found);
    Ok(())
}

fn on_failure(asked: &Asked, code: &str, cx: &mut Cx<'_>) -> Check {
    let amaquet = &mut cx.history.amaquet;
    if code == UNKNOWN {
        on_unknown(asked, amaquet);
        return Ok(());
    }
    amaquet.counts.cancelled += u64::from(code == "CANCELLED");
    if NOT_DONE.contains(&code) {
        if let Asked::Ack(texts) = asked {
            not_acked(amaquet, texts);
        }
        return Ok(());
    }
    match (asked, code) {
        (Asked::Get { key, floor }, "NOT_FOUND") => read_value(amaquet, key, *floor, 0),
        (Asked::Count { key, floor }, "NOT_FOUND") => read_counter(amaquet, key, *floor, 0),
        (Asked::Pop { .. }, "NOT_FOUND" | "TIMEOUT")
        | (Asked::Acquire { .. }, "CONFLICT" | "TIMEOUT")
        | (Asked::Send(_) | Asked::Take(_), "NOT_FOUND")
        | (Asked::Other, "EXISTS") => Ok(()),
        (Asked::Ack(texts), "NOT_FOUND") => {
            not_acked(amaquet, texts);
            Ok(())
        }
        (Asked::Release { lock, ends_at, .. }, "CONFLICT" | "NOT_FOUND") => {
            promise::released(lock, cx.now, *ends_at, code)
        }
        _ => Err(promise::of(format!("{asked:?} is answered with {code}"))),
    }
}

fn not_acked(amaquet: &mut Amaquet, texts: &[String]) {
    for text_of in texts {
        amaquet.on_acked(text_of, false);
    }
}

/// It may have been done, or not.
pub(super) fn on_unknown(asked: &Asked, amaquet: &mut Amaquet) {
    amaquet.counts.unknown += 1;
    if let Asked::Pop { list, .. } = asked {
        amaquet.lists.entry(list).or_default().lost_pops += 1;
    }
}

/// An event of the subscription.
pub(super) fn on_event(line: &mut Line, event: &str, cx: &mut Cx<'_>) -> Check {
    let bad = || promise::of(format!("{event} is no event"));
    let channel = text(event, "channel").ok_or_else(bad)?;
    let from = channel.strip_suffix(".x").ok_or_else(bad)?;
    let data = field(event, "payload").and_then(|it| number(it.text(), "data"));
    let data = data.ok_or_else(bad)?;
    let amaquet = &mut cx.history.amaquet;
    let issued = amaquet.published.get(from).copied().unwrap_or(0);
    let last = line.heard.entry(from.to_owned()).or_default();
    promise::event(from, data, (*last, issued))?;
    *last = data;
    amaquet.counts.events += 1;
    amaquet.counts.dropped += number(event, "dropped").unwrap_or(0);
    Ok(())
}
