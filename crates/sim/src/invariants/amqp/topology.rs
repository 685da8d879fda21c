//! Durable exchanges, queues and bindings are there after a restart as they were declared;
//! transient queues are gone.
//!
//! Source: `broker-model`, life; AMQP 0-9-1, `queue.declare.durable`, `exclusive`.

use std::collections::BTreeSet;

use tanda_engine::{BindingInfo, Destination, ExchangeInfo};

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, There};

pub(crate) const NAME: &str = "AMQP topology outlives a restart";

/// What a broker that has just started has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Names of queues, with what they were declared with: durable, arguments.
    pub(crate) queues: Vec<(String, bool, Vec<u8>)>,
    pub(crate) exchanges: Vec<ExchangeInfo>,
    pub(crate) bindings: Vec<BindingInfo>,
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
        ensure(same.is_none_or(|it| it.durable), NAME, || {
            format!("{same:?}")
        })?;
    }
    for (name, queue) in &history.queues {
        let same = found.queues.iter().find(|(found, ..)| found == name);
        check(name, queue.known.there, same.is_some())?;
        let args = queue.draw.args();
        let is_same =
            same.is_none_or(|(_, durable, found)| (*durable, found) == (queue.draw.durable, &args));
        ensure(is_same, NAME, || {
            format!("{:?} became {same:?}", queue.draw)
        })?;
    }
    for (binding, known) in &history.bindings {
        let same = found.bindings.iter().any(|it| {
            it.source == binding.exchange
                && it.key == binding.key
                && it.destination == Destination::Queue(binding.queue.clone())
        });
        check(&format!("{binding:?}"), known.there, same)?;
    }
    let known: BTreeSet<&str> = history.queues.keys().map(String::as_str).collect();
    let mut strangers = found.queues.iter();
    let stranger = strangers.find(|(name, ..)| !known.contains(name.as_str()));
    ensure(stranger.is_none(), NAME, || {
        format!("{stranger:?} was transient, or never there")
    })
}
