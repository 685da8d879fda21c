//! Publishing: to queues by name, and through exchanges.

use super::contents::{self, Says};
use super::link::{Ask, Link};
use super::{AmqpClient, Call, Cx};
use crate::history::amqp::{Amqp, Door, Outcome, Published, ROUTING_KEYS};
use crate::random::Random;

/// Messages of one run, of all producers.
const SENT_MAX: usize = 500;

impl AmqpClient {
    pub(super) fn produce(
        &mut self,
        random: &mut Random,
        link: &mut Link,
        cx: &mut Cx<'_>,
        window: usize,
    ) {
        if link.line.is_paused {
            return;
        }
        if window > 0 && self.door == Door::Amqp && !self.channel.is_selected {
            link.ask(Ask::Confirms);
            return self.call(cx, Call::Select);
        }
        for _ in 0..random.length(5) {
            let is_full = window > 0 && self.channel.open.len() >= window;
            if is_full || cx.history.amqp.sent.len() >= SENT_MAX {
                return;
            }
            let tag = self.publish(random, link, cx, (None, window > 0));
            if window > 0 {
                self.channel.published += 1;
                self.channel.open.insert(self.channel.published, tag);
            } else {
                cx.history.amqp.on_unknown(tag);
            }
        }
    }

    /// Publishes one message and returns its tag.
    pub(super) fn publish(
        &mut self,
        random: &mut Random,
        link: &mut Link,
        cx: &mut Cx<'_>,
        (tx, is_confirmed): (Option<usize>, bool),
    ) -> usize {
        if self.channel.stream == 0 {
            cx.history.amqp.streams += 1;
            self.channel.stream = cx.history.amqp.streams;
        }
        let (exchange, key) = draw_target(random, &cx.history.amqp);
        let tag = cx.history.amqp.sent.len();
        // The header CC routes by AMQP only.
        let is_routed = exchange == "ex.direct" || exchange == "ex.topic";
        let is_routed = is_routed && self.door == Door::Amqp;
        let cc = is_routed && random.one_in(5);
        let cc: Vec<&'static str> = (0..if cc { random.length(2) } else { 0 })
            .filter_map(|_| random.pick(&ROUTING_KEYS).copied())
            .filter(|key| !key.is_empty())
            .collect();
        let says = Says {
            is_persistent: random.percent(85),
            priority: u8::try_from(random.below(8)).unwrap_or(0),
            ttl_ms: random.one_in(12).then(|| random.below(4_000)),
            cc: &cc,
            has_headers: cx.history.amqp.has_more,
        };
        let says = says.of(self.door);
        let properties = contents::properties(self.door, tag, says, self.more.as_mut());
        let body = contents::body(random, tag, cx.history.is_small);
        let is_mandatory = random.one_in(3);
        link.ask(Ask::Publish {
            exchange,
            key: &key,
            is_mandatory,
            is_persistent: says.is_persistent,
            is_confirmed,
            properties: &properties,
            body: &body,
        });
        let message = Published {
            door: self.door,
            exchange,
            key,
            is_persistent: says.is_persistent,
            ttl_ms: says.ttl_ms,
            priority: says.priority,
            cc,
            properties,
            body,
            is_mandatory,
            stream: self.channel.stream,
            sent_at: cx.now,
            epoch: cx.history.amqp.epoch,
            tx,
            outcome: Outcome::Open,
            is_returned: false,
            must: std::collections::BTreeSet::new(),
            may: std::collections::BTreeSet::new(),
        };
        let conn = link.line.conn;
        cx.trace.note(cx.now, || {
            let Published { exchange, key, .. } = &message;
            format!("  c{conn} publishes {tag} to {exchange:?} {key:?}")
        });
        cx.history.amqp.on_publish(message)
    }
}

/// Half of the messages go to a queue by its name.
fn draw_target(random: &mut Random, amqp: &Amqp) -> (&'static str, String) {
    let names: Vec<&String> = amqp
        .queues
        .keys()
        .filter(|it| !it.ends_with(".dead"))
        .collect();
    let key = random.pick(&ROUTING_KEYS).copied().unwrap_or("");
    match random.pick(&names) {
        Some(name) if random.one_in(2) => ("", (*name).clone()),
        _ => {
            let exchanges: Vec<&str> = amqp.exchanges.keys().copied().collect();
            let exchange = random.pick(&exchanges).copied().unwrap_or("");
            (exchange, key.to_owned())
        }
    }
}
