//! A backup is exactly what was confirmed at one moment, between its request and when it could be
//! read.
//!
//! Source: `docs/recovery.md`, backups: "everything that was confirmed when it was asked for, and
//! whatever came until its snapshot began"; what came and went is told apart by what clients saw.
//!
//! Times here are numbers of the clients' history, which order all they did and saw.

use std::collections::BTreeSet;

use crate::failure::{Check, ensure};
use crate::history::History;

pub(crate) const NAME: &str = "a backup is one moment";

/// When the backup was asked for, and when it could be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) asked: u64,
    pub(crate) ready: u64,
}

/// `found` are the messages of a restored backup.
pub(crate) fn when_restored(history: &History, span: Span, found: &BTreeSet<u128>) -> Check {
    let Span {
        mut asked,
        mut ready,
    } = span;
    let (mut came, mut went) = (0, 0);
    for id in found {
        // Of one that no client has seen only its content is known.
        let Some(message) = history.messages.get(id) else {
            continue;
        };
        let sent = history.sent(message.tag)?;
        let queue = history.queue(&sent.queue)?;
        if queue.is_scratch {
            continue;
        }
        if sent.first_sent > asked {
            (asked, came) = (sent.first_sent, *id);
        }
        let acked = message.order.ack_ok.filter(|_| queue.is_committed());
        if let Some(acked) = acked.filter(|acked| *acked < ready) {
            (ready, went) = (acked, *id);
        }
    }
    ensure(asked <= ready, NAME, || {
        format!(
            "it has {came:032x}, sent at {asked}, and {went:032x}, whose ack was answered at \
             {ready}; it was taken in {span:?}"
        )
    })?;
    let mut missing = BTreeSet::new();
    for (id, message) in &history.messages {
        let is_scratch = history.queue(&history.sent(message.tag)?.queue)?.is_scratch;
        if is_scratch || found.contains(id) || history.purged_at_min(*id).is_some() {
            continue;
        }
        if let Some(confirmed) = message.order.confirmed {
            let acked = message.order.ack_sent.unwrap_or(u64::MAX);
            missing.insert((confirmed, acked, *id));
        }
    }
    let mut moment = asked;
    for (confirmed, acked, id) in missing {
        // It was there all the time between.
        if confirmed < moment && moment < acked {
            moment = acked;
        }
        ensure(moment <= ready, NAME, || {
            format!(
                "{id:032x} is missing, confirmed at {confirmed}, acked at {acked} at the earliest; \
                 what is there was there together between {asked} and {ready}; it was taken in \
                 {span:?}"
            )
        })?;
    }
    Ok(())
}
