//! Watches begin and end.

use super::{Watch, WatchSpec};
use crate::engine::{Cx, Engine};
use crate::{ConnId, Event, ExchangeKind, SubId, TopologyCode, TopologyError, VhostId};

/// Longest pattern: AMQP has no longer keys.
const PATTERN_BYTES_MAX: usize = 255;

impl Engine {
    pub(crate) fn on_watch(&mut self, cx: &mut Cx<'_>, sub: SubId, spec: &WatchSpec) {
        self.on_unwatch(sub);
        let result = self.watch(cx, sub, spec);
        let token = sub.token;
        let after = self.queues.last_lsn;
        cx.emit(sub.conn, after, Event::Watching { token, result });
    }

    fn watch(
        &mut self,
        cx: &mut Cx<'_>,
        sub: SubId,
        spec: &WatchSpec,
    ) -> Result<(), TopologyError> {
        self.check_watch(sub.conn, spec)?;
        let exchange = self.open_topic(cx, (spec.vhost, &spec.exchange))?;
        let id = self.watches.insert(Watch {
            sub,
            exchange,
            pattern: spec.pattern.as_str().into(),
            buffer: spec.buffer.max(1),
            under_way: 0,
            dropped: 0,
        });
        self.topology.add_watch(exchange, &spec.pattern, id);
        if let Some(conn) = self.consumers.conn_mut(sub.conn) {
            conn.watches += 1;
        }
        Ok(())
    }

    fn check_watch(&self, conn: ConnId, spec: &WatchSpec) -> Result<(), TopologyError> {
        let refused = |code, text| Err(TopologyError::new(code, text));
        let len = spec.pattern.len();
        if len > PATTERN_BYTES_MAX {
            let text = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes, not {len}");
            return refused(TopologyCode::PreconditionFailed, text);
        }
        let Some(conn) = self.consumers.conn(conn) else {
            let text = "the connection is gone".to_owned();
            return refused(TopologyCode::NotFound, text);
        };
        let max = conn.limits.subscriptions_max;
        if conn.watches >= max {
            let text = format!("a connection watches at most {max} patterns");
            return refused(TopologyCode::ResourceError, text);
        }
        let max = self.config.limits.bindings_max;
        if self.topology.bindings_len() + self.watches.len() >= max as usize {
            let text = format!("binding limit of {max} (limits.bindings_max) is reached");
            return refused(TopologyCode::ResourceError, text);
        }
        Ok(())
    }

    pub(crate) fn on_unwatch(&mut self, sub: SubId) {
        let Some(id) = self.watches.find(sub) else {
            return;
        };
        if let Some(watch) = self.watches.remove(id) {
            self.topology
                .remove_watch(watch.exchange, &watch.pattern, id);
            if let Some(conn) = self.consumers.conn_mut(sub.conn) {
                conn.watches -= 1;
            }
        }
    }

    pub(crate) fn on_watch_drained(&mut self, sub: SubId, events: u32) {
        let watch = self.watches.find(sub);
        if let Some(watch) = watch.and_then(|id| self.watches.at_mut(id)) {
            watch.under_way = watch.under_way.saturating_sub(events);
        }
    }

    /// A connection is gone, and its watches with it.
    pub(crate) fn forget_watches(&mut self, conn: ConnId) {
        let gone: Vec<_> = self.watches.of_conn(conn).collect();
        for id in gone {
            if let Some(watch) = self.watches.remove(id) {
                self.topology
                    .remove_watch(watch.exchange, &watch.pattern, id);
            }
        }
    }

    /// Exchanges that were watched are gone: who watched is told.
    pub(crate) fn end_watches(&mut self, cx: &mut Cx<'_>) {
        if self.topology.unwatched.is_empty() {
            return;
        }
        for id in core::mem::take(&mut self.topology.unwatched) {
            let Some(watch) = self.watches.remove(id) else {
                continue;
            };
            let SubId { conn, token } = watch.sub;
            if let Some(conn) = self.consumers.conn_mut(conn) {
                conn.watches -= 1;
            }
            cx.emit(conn, self.queues.last_lsn, Event::WatchEnded { token });
        }
    }

    /// The patterns by which an exchange is watched.
    pub(crate) fn list_channels(
        &self,
        (vhost, name): (VhostId, &str),
        bytes_max: usize,
    ) -> Result<Vec<String>, TopologyError> {
        let exchange = self.topology.find(vhost, name);
        let exchange = exchange.ok_or_else(|| self.no_exchange(vhost, name))?;
        if exchange.it.kind != ExchangeKind::Topic {
            return Err(self.not_topic(vhost, name));
        }
        let patterns = exchange.watched.as_deref();
        let patterns = patterns.into_iter().flat_map(|it| it.patterns());
        let mut left = bytes_max;
        let mut all = Vec::new();
        for pattern in patterns {
            let Some(less) = left.checked_sub(pattern.len()) else {
                let text = format!("its channels are more than {bytes_max} bytes");
                return Err(TopologyError::new(TopologyCode::ResourceError, text));
            };
            left = less;
            all.push(pattern.to_owned());
        }
        Ok(all)
    }
}
