//! Exchanges are declared and deleted.

use bytes::Bytes;

use super::exchange::{Declaration, ExchangeId, NAME_BYTES_MAX};
use super::record::{encode_exchange, encode_exchanges_gone};
use super::{ALTERNATE, args};
use crate::engine::{Cx, Engine};
use crate::{ExchangeKind, ExchangeSpec, TopologyCode, TopologyError, VhostId};

/// What names of the broker's own begin with.
const RESERVED: &str = "amq.";

impl Engine {
    pub(crate) fn declare_exchange(
        &mut self,
        cx: &mut Cx<'_>,
        spec: &ExchangeSpec,
    ) -> Result<(), TopologyError> {
        let name = spec.name.as_str();
        if spec.passive {
            refuse_default(name)?;
            let found = self.topology.find(spec.vhost, name);
            let not_found = || self.no_exchange(spec.vhost, name);
            return found.map(|_| ()).ok_or_else(not_found);
        }
        let kind = ExchangeKind::from_name(&spec.kind).ok_or_else(|| {
            let text = format!("unknown exchange type '{}'", spec.kind);
            TopologyError::new(TopologyCode::PreconditionFailed, text)
        })?;
        refuse_default(name)?;
        let of = self.exchange_text(spec.vhost, name);
        let args = args::table(&spec.args)?;
        if let Some(found) = self.topology.find(spec.vhost, name) {
            return check_equivalent(&found.it, (spec, kind), &of);
        }
        self.check_exchange(spec, &of)?;
        if let Ok(Some(alternate)) = args.find(ALTERNATE.as_bytes())
            && alternate.as_long_string().is_none()
        {
            let found = alternate.type_name();
            let text = format!("invalid type '{found}' for arg '{ALTERNATE}' in {of}");
            return Err(TopologyError::new(TopologyCode::PreconditionFailed, text));
        }
        let it = Declaration {
            id: ExchangeId(self.topology.next_exchange),
            vhost: spec.vhost,
            name: name.into(),
            kind,
            durable: spec.durable,
            auto_delete: spec.auto_delete,
            internal: spec.internal,
            // Not a part of a buffer that is mostly something else's.
            args: Bytes::copy_from_slice(&spec.args),
        };
        if it.durable {
            encode_exchange(&mut self.record, cx.now, &it);
            self.append_topology(cx);
        }
        self.topology.add_exchange(it);
        Ok(())
    }

    /// Whether a new exchange may be there.
    fn check_exchange(&self, spec: &ExchangeSpec, of: &str) -> Result<(), TopologyError> {
        let refused = |code, text| Err(TopologyError::new(code, text));
        let (name, len) = (spec.name.as_str(), spec.name.len());
        if name.starts_with(RESERVED) {
            let text = format!("exchange name '{name}' contains reserved prefix 'amq.*'");
            return refused(TopologyCode::AccessRefused, text);
        }
        if len > NAME_BYTES_MAX {
            let text = format!("an exchange name has at most {NAME_BYTES_MAX} bytes, not {len}");
            return refused(TopologyCode::PreconditionFailed, text);
        }
        if self.topology.vhost_name(spec.vhost).is_none() {
            let text = "the virtual host is gone".to_owned();
            return refused(TopologyCode::NotFound, text);
        }
        if self.storage_full && spec.durable {
            return refused(TopologyCode::Storage, "the disk is full".to_owned());
        }
        let max = self.config.limits.exchanges_max;
        if self.topology.ids.len() >= max as usize {
            let text = format!(
                "cannot declare {of}: exchange limit of {max} \
                 (limits.exchanges_max) is reached"
            );
            return refused(TopologyCode::PreconditionFailed, text);
        }
        Ok(())
    }

    pub(crate) fn delete_exchange(
        &mut self,
        cx: &mut Cx<'_>,
        (vhost, name): (VhostId, &str),
        if_unused: bool,
    ) -> Result<(), TopologyError> {
        refuse_default(name)?;
        let of = self.exchange_text(vhost, name);
        if name.starts_with(RESERVED) {
            let text = format!("deletion of system {of} not allowed");
            return Err(TopologyError::new(TopologyCode::AccessRefused, text));
        }
        let Some(found) = self.topology.find(vhost, name) else {
            return Ok(());
        };
        if if_unused && (found.len() > 0 || found.watched.is_some()) {
            let text = format!("{of} in use");
            return Err(TopologyError::new(TopologyCode::PreconditionFailed, text));
        }
        let id = found.it.id;
        let gone = self.topology.cascade([].into(), vec![id]);
        if self.topology.is_written(&gone) {
            encode_exchanges_gone(&mut self.record, cx.now, &gone);
            self.append_topology(cx);
        }
        self.topology.remove_exchanges(&gone);
        Ok(())
    }

    /// How texts name an exchange.
    pub(super) fn exchange_text(&self, vhost: VhostId, name: &str) -> String {
        let vhost = self.topology.vhost_name(vhost);
        format!("exchange '{name}' in vhost '{}'", vhost.map_or("", |it| it))
    }

    /// An exchange that should be there is not.
    pub(crate) fn no_exchange(&self, vhost: VhostId, name: &str) -> TopologyError {
        let text = format!("no {}", self.exchange_text(vhost, name));
        TopologyError::new(TopologyCode::NotFound, text)
    }
}

/// Nobody may do anything to the default exchange.
pub(super) fn refuse_default(name: &str) -> Result<(), TopologyError> {
    if name.is_empty() {
        let text = "operation not permitted on the default exchange".to_owned();
        return Err(TopologyError::new(TopologyCode::AccessRefused, text));
    }
    Ok(())
}

/// Refuses to declare an exchange otherwise than it is.
fn check_equivalent(
    it: &Declaration,
    (spec, kind): (&ExchangeSpec, ExchangeKind),
    of: &str,
) -> Result<(), TopologyError> {
    let kinds = (it.kind.name(), kind.name());
    let text = |truth: bool| if truth { "true" } else { "false" };
    let fields = [
        ("type", kinds),
        ("durable", (text(it.durable), text(spec.durable))),
        (
            "auto_delete",
            (text(it.auto_delete), text(spec.auto_delete)),
        ),
        ("internal", (text(it.internal), text(spec.internal))),
    ];
    for (key, (current, received)) in fields {
        if current != received {
            let shown = (format!("'{current}'"), format!("'{received}'"));
            return Err(args::inequivalent(key, of, (&shown.0, &shown.1)));
        }
    }
    let tables = (args::table(&it.args)?, args::table(&spec.args)?);
    args::check_same(tables, ALTERNATE, of)
}
