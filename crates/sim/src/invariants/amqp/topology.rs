//! Durable exchanges, queues and bindings are there after a restart as they were declared;
//! transient queues are gone.
//!
//! Source: `broker-model`, life; AMQP 0-9-1, `queue.declare.durable`, `exclusive`.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{BindingInfo, Destination, ExchangeInfo};
use tanda_wire::amqp::Table;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, BindingDraw, There, args_of_exchange};

pub(crate) const NAME: &str = "AMQP topology outlives a restart";

/// A copy of the disk has what was there both before it was made and after.
pub(crate) fn when_restored(before: &Amqp, after: &Amqp, found: &Found) -> Check {
    let check = |what: &str, there: [There; 2], is_found: bool| {
        let is_right = match there {
            [There::Yes, There::Yes] => is_found,
            [There::No, There::No] => !is_found,
            _ => true,
        };
        ensure(is_right, NAME, || {
            format!("{what}: {there:?}, but found: {is_found}; {found:?}")
        })
    };
    for (name, known) in &before.exchanges {
        let now = after
            .exchanges
            .get(name)
            .map_or(There::Maybe, |it| it.there);
        let is_found = found.exchanges.iter().any(|it| it.name == *name);
        check(name, [known.there, now], is_found)?;
    }
    for (name, queue) in &before.queues {
        let now = after.queues.get(name);
        let now = now.map_or(There::Maybe, |it| it.known.there);
        let same = found.queues.iter().find(|(found, ..)| found == name);
        if !queue.draw.durable {
            check(name, [There::No, There::No], same.is_some())?;
        } else if !queue.draw.comes_and_goes() {
            check(name, [queue.known.there, now], same.is_some())?;
        }
        let args = plain(&queue.draw.args());
        let is_same = same.is_none_or(|(_, _, found)| plain(found) == args);
        ensure(is_same, NAME, || {
            format!("{:?} became {same:?}", queue.draw)
        })?;
    }
    for (binding, known) in &before.bindings {
        let now = after
            .bindings
            .get(binding)
            .map_or(There::Maybe, |it| it.there);
        let is_durable = before.queues.get(&binding.queue);
        let is_durable = is_durable.is_some_and(|it| it.draw.durable);
        if (binding.to_exchange || is_durable) && !binding.comes_and_goes {
            check(
                &format!("{binding:?}"),
                [known.there, now],
                found.has(binding),
            )?;
        }
    }
    Ok(())
}

/// What a broker that has just started has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Names of queues, with what they were declared with: durable, arguments.
    pub(crate) queues: Vec<(String, bool, Vec<u8>)>,
    pub(crate) exchanges: Vec<ExchangeInfo>,
    pub(crate) bindings: Vec<BindingInfo>,
}

impl Found {
    fn has(&self, binding: &BindingDraw) -> bool {
        self.bindings.iter().any(|it| {
            it.source == binding.exchange
                && it.key == binding.key
                && it.args == binding.args()
                && match &it.destination {
                    Destination::Queue(name) => !binding.to_exchange && *name == binding.queue,
                    Destination::Exchange(name) => binding.to_exchange && *name == binding.queue,
                }
        })
    }
}

pub(crate) fn when_started(history: &Amqp, found: &Found) -> Check {
    let check = |what: &str, there: There, is_found: bool| {
        let is_right = match there {
            There::Yes => is_found,
            There::No => !is_found,
            There::Maybe => true,
        };
        ensure(is_right, NAME, || {
            format!("{what}: {there:?}, but found: {is_found}; {found:?}")
        })
    };
    for (name, known) in &history.exchanges {
        let same = found.exchanges.iter().find(|it| it.name == *name);
        check(name, known.there, same.is_some())?;
        let args = args_of_exchange(name);
        let is_same = same.is_none_or(|it| it.durable && it.args == args);
        ensure(is_same, NAME, || format!("{same:?}"))?;
    }
    for (name, queue) in &history.queues {
        let same = found.queues.iter().find(|(found, ..)| found == name);
        check(name, queue.known.there, same.is_some())?;
        let args = plain(&queue.draw.args());
        let is_same = same.is_none_or(|(_, durable, found)| {
            (*durable, plain(found)) == (queue.draw.durable, args)
        });
        ensure(is_same, NAME, || {
            format!("{:?} became {same:?}", queue.draw)
        })?;
    }
    for (binding, known) in &history.bindings {
        let is_found = found.has(binding);
        check(&format!("{binding:?}"), known.there, is_found)?;
    }
    let known: BTreeSet<&str> = history.queues.keys().map(String::as_str).collect();
    let mut strangers = found.queues.iter();
    let stranger = strangers.find(|(name, ..)| !known.contains(name.as_str()));
    ensure(stranger.is_none(), NAME, || {
        format!("{stranger:?} was transient, or never there")
    })
}

/// Arguments by name: the doors write one number in different types.
fn plain(args: &[u8]) -> BTreeMap<String, String> {
    let entries = Table::new(args).unwrap_or_default().iter().flatten();
    let entries = entries.map(|entry| {
        let key = String::from_utf8_lossy(entry.key.as_bytes()).into_owned();
        let number = entry.value.as_i64().map(|number| number.to_string());
        (key, number.unwrap_or_else(|| format!("{:?}", entry.value)))
    });
    entries.collect()
}
