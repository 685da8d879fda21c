//! Lists of exchanges and bindings.

use super::exchange::{Exchange, Target};
use crate::engine::Engine;
use crate::{
    BindingInfo, Destination, ExchangeInfo, ExchangeKind, TopologyCode, TopologyError, VhostId,
};

impl Engine {
    pub(crate) fn list_exchanges(
        &self,
        vhost: VhostId,
    ) -> Result<Vec<ExchangeInfo>, TopologyError> {
        let mut all: Vec<_> = self.exchanges_in(vhost)?.map(info).collect();
        all.push(ExchangeInfo {
            name: String::new(),
            kind: ExchangeKind::Direct,
            durable: true,
            auto_delete: false,
            internal: false,
            args: bytes::Bytes::new(),
            bindings: 0,
            watches: 0,
        });
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    pub(crate) fn list_bindings(&self, vhost: VhostId) -> Result<Vec<BindingInfo>, TopologyError> {
        let mut all = Vec::new();
        for exchange in self.exchanges_in(vhost)? {
            for (binding, _) in exchange.bindings() {
                let Some(destination) = self.name_of(binding.target) else {
                    continue;
                };
                all.push(BindingInfo {
                    source: exchange.it.name.to_string(),
                    destination,
                    key: binding.key.to_string(),
                    args: bytes::Bytes::copy_from_slice(&binding.args),
                });
            }
        }
        all.sort_by(|a, b| {
            let order = (&a.source, &a.destination, &a.key);
            order.cmp(&(&b.source, &b.destination, &b.key))
        });
        Ok(all)
    }

    fn exchanges_in(
        &self,
        vhost: VhostId,
    ) -> Result<impl Iterator<Item = &Exchange>, TopologyError> {
        if self.topology.vhost_name(vhost).is_none() {
            let text = "the virtual host is gone".to_owned();
            return Err(TopologyError::new(TopologyCode::NotFound, text));
        }
        let all = self.topology.ids.iter();
        let all = all.filter_map(|id| self.topology.at(*id));
        Ok(all.filter(move |it| it.it.vhost == vhost))
    }

    fn name_of(&self, target: Target) -> Option<Destination> {
        Some(match target {
            Target::Queue(id) => {
                let queue = self.queues.at(self.queues.index_of(id)?);
                Destination::Queue(queue.identity.name.to_string())
            }
            Target::Exchange(id) => {
                Destination::Exchange(self.topology.at(id)?.it.name.to_string())
            }
        })
    }
}

fn info(exchange: &Exchange) -> ExchangeInfo {
    let it = &exchange.it;
    ExchangeInfo {
        name: it.name.to_string(),
        kind: it.kind,
        durable: it.durable,
        auto_delete: it.auto_delete,
        internal: it.internal,
        args: it.args.clone(),
        bindings: exchange.len() as u64,
        watches: exchange.watched.as_ref().map_or(0, |it| it.len()) as u64,
    }
}
