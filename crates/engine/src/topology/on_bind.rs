//! Bindings are made and removed.

use super::args;
use super::exchange::{Binding, NAME_BYTES_MAX, Target};
use super::headers::Rule;
use super::on_exchange::refuse_default;
use super::record::{encode_binding, encode_binding_gone};
use crate::engine::{Cx, Engine};
use crate::{BindingSpec, ConnId, Destination, ExchangeKind, TopologyCode, TopologyError, VhostId};

impl Engine {
    pub(crate) fn bind(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        spec: &BindingSpec,
    ) -> Result<(), TopologyError> {
        refuse_defaults(spec)?;
        let Some(source) = self.topology.find(spec.vhost, &spec.source) else {
            return Err(self.no_exchange(spec.vhost, &spec.source));
        };
        let (id, kind, durable) = (source.it.id, source.it.kind, source.it.durable);
        let target = self.destination(spec);
        let target = target.ok_or_else(|| self.no_destination(spec))?;
        let table = args::table(&spec.args)?;
        let binding = Binding {
            target,
            key: spec.key.as_str().into(),
            args: args::canonical(table),
        };
        if kind == ExchangeKind::Headers {
            Rule::new(target, binding.key.clone(), binding.args.clone())?;
        }
        self.check_access(conn, target)?;
        if self.topology.at(id).is_some_and(|it| it.has(&binding)) {
            return Ok(());
        }
        let durable = durable && self.outlives_restart(target);
        self.check_binding(spec, durable)?;
        if durable {
            encode_binding(&mut self.record, cx.now, (id, &binding));
            self.append_topology(cx);
        }
        self.topology.add_binding(id, binding, durable);
        Ok(())
    }

    /// Whether a new binding may be there.
    fn check_binding(&self, spec: &BindingSpec, durable: bool) -> Result<(), TopologyError> {
        let refused = |code, text| Err(TopologyError::new(code, text));
        let len = spec.key.len();
        if len > NAME_BYTES_MAX {
            let text = format!("a binding key has at most {NAME_BYTES_MAX} bytes, not {len}");
            return refused(TopologyCode::PreconditionFailed, text);
        }
        if self.storage_full && durable {
            return refused(TopologyCode::Storage, "the disk is full".to_owned());
        }
        let max = self.config.limits.bindings_max;
        if self.topology.bindings >= max as usize {
            let of = self.exchange_text(spec.vhost, &spec.source);
            let text = format!(
                "cannot bind to {of}: binding limit of {max} \
                 (limits.bindings_max) is reached"
            );
            return refused(TopologyCode::ResourceError, text);
        }
        Ok(())
    }

    pub(crate) fn unbind(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        spec: &BindingSpec,
    ) -> Result<(), TopologyError> {
        refuse_defaults(spec)?;
        let table = args::table(&spec.args)?;
        let Some(source) = self.topology.find(spec.vhost, &spec.source) else {
            return Ok(());
        };
        let id = source.it.id;
        let Some(target) = self.destination(spec) else {
            return Ok(());
        };
        self.check_access(conn, target)?;
        let binding = Binding {
            target,
            key: spec.key.as_str().into(),
            args: args::canonical(table),
        };
        let Some(durable) = self.topology.at(id).and_then(|it| it.find(&binding)) else {
            return Ok(());
        };
        let gone = self.topology.cascade([(id, 1)].into(), Vec::new());
        if durable || self.topology.is_written(&gone) {
            encode_binding_gone(&mut self.record, cx.now, (id, &binding), &gone);
            self.append_topology(cx);
        }
        self.topology.remove_binding(id, &binding);
        self.topology.remove_exchanges(&gone);
        Ok(())
    }

    fn destination(&self, spec: &BindingSpec) -> Option<Target> {
        match &spec.destination {
            Destination::Queue(name) => {
                let index = self.queues.find_in(spec.vhost, name)?;
                Some(Target::Queue(self.queues.at(index).identity.id))
            }
            Destination::Exchange(name) => {
                let exchange = self.topology.find(spec.vhost, name)?;
                Some(Target::Exchange(exchange.it.id))
            }
        }
    }

    fn no_destination(&self, spec: &BindingSpec) -> TopologyError {
        match &spec.destination {
            Destination::Queue(name) => {
                let text = format!("no {}", self.queue_text(spec.vhost, name));
                TopologyError::new(TopologyCode::NotFound, text)
            }
            Destination::Exchange(name) => self.no_exchange(spec.vhost, name),
        }
    }

    /// How texts name a queue.
    pub(super) fn queue_text(&self, vhost: VhostId, name: &str) -> String {
        let vhost = self.topology.vhost_name(vhost);
        format!("queue '{name}' in vhost '{}'", vhost.map_or("", |it| it))
    }

    /// Another connection's queue is not for this one, and a dead-letter queue for nobody.
    fn check_access(&self, conn: ConnId, target: Target) -> Result<(), TopologyError> {
        let Target::Queue(id) = target else {
            return Ok(());
        };
        let Some(index) = self.queues.index_of(id) else {
            return Ok(());
        };
        self.check_owner(index, conn)?;
        let queue = self.queues.at(index);
        if queue.is_dead_letter() {
            let of = self.queue_text(queue.identity.vhost, &queue.identity.name);
            let text = format!("{of} takes the dead letters of one queue only");
            return Err(TopologyError::new(TopologyCode::AccessRefused, text));
        }
        Ok(())
    }

    fn outlives_restart(&self, target: Target) -> bool {
        match target {
            Target::Queue(id) => {
                let index = self.queues.index_of(id);
                index.is_some_and(|index| !self.queues.at(index).is_transient())
            }
            Target::Exchange(id) => self.topology.at(id).is_some_and(|it| it.it.durable),
        }
    }
}

fn refuse_defaults(spec: &BindingSpec) -> Result<(), TopologyError> {
    refuse_default(&spec.source)?;
    match &spec.destination {
        Destination::Queue(_) => Ok(()),
        Destination::Exchange(name) => refuse_default(name),
    }
}
