//! Which queues a message goes to: over exchanges, each at most once, to queues, each once.

use super::exchange::{Exchange, ExchangeId, Message, Target};
use super::headers::MessageHeaders;
use super::topic::TopicScratch;
use crate::engine::Engine;
use crate::queues::{QueueIndex, Queues};
use crate::watch::{Seen, WatchId};
use crate::{Content, PublishBatch, PublishError, PublishItem, VhostId};

use super::Topology;

/// What routing works with; kept from message to message.
#[derive(Debug, Default)]
pub(crate) struct RouteScratch {
    topic: TopicScratch,
    /// Exchanges that the message has come to, in order.
    seen: Vec<ExchangeId>,
    targets: Vec<Target>,
    /// Watches that the message has come to, each once.
    pub(crate) watches: Vec<Seen>,
    found: Vec<WatchId>,
}

/// The route of the item before: most batches have one exchange and one key.
#[derive(Debug, Default)]
pub(crate) struct LastRoute {
    /// Exchange and key in the batch's data, with their lengths, if they say all that matters.
    of: Option<(usize, usize)>,
    result: Option<PublishError>,
    queues: Vec<QueueIndex>,
    /// Watches that it comes to.
    pub(crate) watches: Vec<Seen>,
}

impl LastRoute {
    /// Where the item goes; none when it goes nowhere.
    pub(crate) fn queues(&self) -> Result<&[QueueIndex], PublishError> {
        match self.result {
            Some(error) => Err(error),
            None => Ok(&self.queues),
        }
    }
}

impl Topology {
    /// Appends the queues that an exchange gives a message to, each once; an exchange that is not
    /// there gives it to none. Returns whether headers were looked at.
    ///
    /// Its cost: docs/adr/0007-routing-in-the-engine.md.
    pub(crate) fn route(
        &self,
        queues: &Queues,
        (vhost, exchange): (VhostId, &str),
        message: (&[&str], Content<'_>),
        scratch: &mut RouteScratch,
        out: &mut Vec<QueueIndex>,
    ) -> bool {
        let first = self.find(vhost, exchange);
        if first.is_none() && !exchange.is_empty() {
            scratch.watches.clear();
            return false;
        }
        self.route_from(queues, (vhost, first), message, scratch, out)
    }

    /// The same from an exchange that was found; `None` is the default exchange.
    fn route_from(
        &self,
        queues: &Queues,
        (vhost, first): (VhostId, Option<&Exchange>),
        (keys, content): (&[&str], Content<'_>),
        scratch: &mut RouteScratch,
        out: &mut Vec<QueueIndex>,
    ) -> bool {
        let start = out.len();
        scratch.watches.clear();
        let Some(first) = first else {
            out.extend(keys.iter().filter_map(|key| queues.find_in(vhost, key)));
            once(out, start);
            return false;
        };
        let headers = MessageHeaders::new(content);
        let message = Message {
            keys,
            headers: &headers,
        };
        let mut reads_headers = false;
        scratch.seen.clear();
        scratch.seen.push(first.it.id);
        let mut at = 0;
        let mut next = Some(first);
        while let Some(exchange) = next {
            reads_headers |= exchange.reads_headers();
            scratch.targets.clear();
            exchange.route(&message, &mut scratch.topic, &mut scratch.targets);
            let is_watched = exchange.watched.as_ref().is_some_and(|watched| {
                let work = (&mut scratch.topic, &mut scratch.found);
                watched.find(keys, work, &mut scratch.watches)
            });
            if scratch.targets.is_empty()
                && !is_watched
                && let Some(alternate) = &exchange.alternate
            {
                if alternate.is_empty() {
                    out.extend(keys.iter().filter_map(|key| queues.find_in(vhost, key)));
                } else if let Some(alternate) = self.find(vhost, alternate) {
                    see(&mut scratch.seen, alternate.it.id);
                }
            }
            for target in &scratch.targets {
                match target {
                    Target::Queue(id) => out.extend(queues.index_of(*id)),
                    Target::Exchange(id) => see(&mut scratch.seen, *id),
                }
            }
            at += 1;
            next = scratch.seen.get(at).and_then(|id| self.at(*id));
        }
        once(out, start);
        reads_headers
    }

    /// The exchange that a client publishes to; `None` is the default exchange.
    fn publishable(
        &self,
        vhost: VhostId,
        exchange: &str,
    ) -> Result<Option<&Exchange>, PublishError> {
        if exchange.is_empty() {
            return Ok(None);
        }
        match self.find(vhost, exchange) {
            None => Err(PublishError::ExchangeNotFound),
            Some(it) if it.it.internal => Err(PublishError::ExchangeInternal),
            found => Ok(found),
        }
    }
}

impl Engine {
    /// Where an item with [`crate::PublishTarget::Route`] goes.
    pub(crate) fn find_route(
        &mut self,
        batch: &PublishBatch,
        item: &PublishItem,
        last: &mut LastRoute,
    ) {
        let start = item.content.start as usize;
        let same = last.of.is_some_and(|(at, len)| {
            let before = batch.data.get(at..at + len);
            let now = batch.data.get(start..start + len);
            item.extra_keys.len == 0 && before.is_some() && before == now
        });
        if same {
            return;
        }
        last.of = None;
        last.queues.clear();
        last.watches.clear();
        let content = Content::new(item.form, item.content.of(&batch.data));
        let (exchange, key) = content.address();
        let first = match self.topology.publishable(batch.vhost, exchange) {
            Ok(first) => first,
            Err(error) => {
                last.result = Some(error);
                return;
            }
        };
        last.result = None;
        let extra = batch.extra_keys_of(item);
        let one = [key];
        let mut all = Vec::new();
        let keys = if extra.is_empty() {
            one.as_slice()
        } else {
            all.push(key);
            all.extend(extra.iter().map(|span| span.text(&batch.data)));
            all.as_slice()
        };
        let reads_headers = self.topology.route_from(
            &self.queues,
            (batch.vhost, first),
            (keys, content),
            &mut self.routes,
            &mut last.queues,
        );
        last.watches.extend_from_slice(&self.routes.watches);
        if !reads_headers && extra.is_empty() {
            // The lengths are in it: what begins alike is of one exchange and key.
            last.of = Some((start, 2 + exchange.len() + key.len()));
        }
    }
}

fn see(seen: &mut Vec<ExchangeId>, id: ExchangeId) {
    if !seen.contains(&id) {
        seen.push(id);
    }
}

/// Each queue once.
fn once(out: &mut Vec<QueueIndex>, start: usize) {
    let Some(added) = out.get_mut(start..) else {
        return;
    };
    if added.len() < 2 {
        return;
    }
    added.sort_unstable();
    let mut kept = start;
    for at in start..out.len() {
        let is_new = at == start || out.get(at) != out.get(kept - 1);
        if is_new {
            out.swap(kept, at);
            kept += 1;
        }
    }
    out.truncate(kept);
}
