//! Records of virtual hosts, exchanges and bindings (docs/formats/records.md).

use core::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use bytes::Bytes;

use super::Topology;
use super::exchange::{Binding, Declaration, ExchangeId, Target};
use crate::record::{Kind, Reader, begin, put_len, put_long, put_short};
use crate::{ExchangeKind, Millis, QueueId, ReplayError, VhostId};

/// What a `Vhost` record says.
mod vhost {
    pub(super) const THERE: u8 = 1;
    pub(super) const GONE: u8 = 2;
    pub(super) const COUNTERS: u8 = 3;
}

/// What an `Exchange` or `Binding` record says.
mod what {
    pub(super) const THERE: u8 = 1;
    pub(super) const GONE: u8 = 2;
}

/// Bits of an exchange.
mod flag {
    pub(super) const AUTO_DELETE: u8 = 1;
    pub(super) const INTERNAL: u8 = 2;
    pub(super) const ALL: u8 = 3;
}

/// Most exchanges in one record that are read.
const GONE_MAX: usize = 1 << 20;

pub(super) fn encode_vhost(out: &mut Vec<u8>, now: Millis, id: VhostId, name: &str) {
    begin(out, Kind::Vhost, QueueId(0), now);
    out.push(vhost::THERE);
    out.extend_from_slice(&id.0.to_be_bytes());
    put_short(out, name.as_bytes());
}

pub(super) fn encode_vhost_gone(out: &mut Vec<u8>, now: Millis, id: VhostId) {
    begin(out, Kind::Vhost, QueueId(0), now);
    out.push(vhost::GONE);
    out.extend_from_slice(&id.0.to_be_bytes());
}

/// The virtual host that a record of one says is gone.
pub(crate) fn vhost_gone(mut reader: Reader<'_>) -> Option<VhostId> {
    let what = reader.u8().ok()?;
    let id = reader.u32().ok()?;
    (what == vhost::GONE).then_some(VhostId(id))
}

/// An exchange; all that are written survive a restart.
pub(super) fn encode_exchange(out: &mut Vec<u8>, now: Millis, it: &Declaration) {
    begin(out, Kind::Exchange, QueueId(0), now);
    out.push(what::THERE);
    out.extend_from_slice(&it.id.0.to_be_bytes());
    out.extend_from_slice(&it.vhost.0.to_be_bytes());
    put_short(out, it.name.as_bytes());
    out.push(match it.kind {
        ExchangeKind::Direct => 1,
        ExchangeKind::Fanout => 2,
        ExchangeKind::Topic => 3,
        ExchangeKind::Headers => 4,
    });
    let flags = [
        (it.auto_delete, flag::AUTO_DELETE),
        (it.internal, flag::INTERNAL),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    out.push(set.map(|(_, flag)| flag).sum());
    put_long(out, &it.args);
}

pub(super) fn encode_exchanges_gone(out: &mut Vec<u8>, now: Millis, gone: &[ExchangeId]) {
    begin(out, Kind::Exchange, QueueId(0), now);
    out.push(what::GONE);
    put_exchanges(out, gone);
}

/// Appends exchanges that go with what a record says is gone.
pub(crate) fn put_exchanges(out: &mut Vec<u8>, gone: &[ExchangeId]) {
    put_len(out, gone.len());
    for id in gone {
        out.extend_from_slice(&id.0.to_be_bytes());
    }
}

pub(super) fn encode_binding(out: &mut Vec<u8>, now: Millis, of: (ExchangeId, &Binding)) {
    begin(out, Kind::Binding, QueueId(0), now);
    out.push(what::THERE);
    put_binding(out, of);
}

/// A binding is gone, and with it exchanges.
pub(super) fn encode_binding_gone(
    out: &mut Vec<u8>,
    now: Millis,
    of: (ExchangeId, &Binding),
    gone: &[ExchangeId],
) {
    begin(out, Kind::Binding, QueueId(0), now);
    out.push(what::GONE);
    put_binding(out, of);
    put_exchanges(out, gone);
}

fn put_binding(out: &mut Vec<u8>, (source, binding): (ExchangeId, &Binding)) {
    out.extend_from_slice(&source.0.to_be_bytes());
    let (kind, id) = match binding.target {
        Target::Queue(id) => (1, u64::from(id.0)),
        Target::Exchange(id) => (2, id.0),
    };
    out.push(kind);
    out.extend_from_slice(&id.to_be_bytes());
    put_short(out, binding.key.as_bytes());
    put_long(out, &binding.args);
}

fn read_binding(reader: &mut Reader<'_>) -> Result<(ExchangeId, Binding), ReplayError> {
    let source = ExchangeId(reader.u64()?);
    let (kind, id) = (reader.u8()?, reader.u64()?);
    let target = match kind {
        1 => {
            let id = u32::try_from(id);
            let id = id.map_err(|_large| reader.problem("a queue's id is too large"))?;
            Target::Queue(QueueId(id))
        }
        2 => Target::Exchange(ExchangeId(id)),
        n => return Err(reader.problem(&format!("destination of a kind that is unknown ({n})"))),
    };
    let key = reader.short()?.into();
    let args = reader.long_bytes()?.into();
    Ok((source, Binding { target, key, args }))
}

/// Exchanges that went with what a record says is gone.
pub(crate) fn read_exchanges(reader: &mut Reader<'_>) -> Result<Vec<ExchangeId>, ReplayError> {
    let count = reader.u32()? as usize;
    if count > GONE_MAX {
        return Err(reader.problem(&format!("{count} exchanges in one record")));
    }
    (0..count).map(|_| reader.u64().map(ExchangeId)).collect()
}

/// How far a capture has come.
#[derive(Clone, Debug)]
pub(crate) enum Cursor {
    Vhosts,
    /// Exchanges from this one on.
    Exchanges(ExchangeId),
    Bindings(After),
}

/// Bindings of exchanges from one on; of this one, those after a binding.
#[derive(Clone, Debug)]
pub(crate) struct After {
    from: ExchangeId,
    binding: Option<Binding>,
}

impl Topology {
    /// Captures a bit more, about `left` records; `None` when all of it is captured.
    pub(crate) fn capture(
        &self,
        now: Millis,
        cursor: Cursor,
        left: &mut usize,
        out: &mut Vec<Vec<u8>>,
    ) -> Option<Cursor> {
        match cursor {
            Cursor::Vhosts => {
                self.capture_vhosts(now, out);
                Some(Cursor::Exchanges(ExchangeId(0)))
            }
            Cursor::Exchanges(from) => {
                for id in self.ids.range(from..) {
                    if *left == 0 {
                        return Some(Cursor::Exchanges(*id));
                    }
                    *left -= 1;
                    let it = self.at(*id).map(|exchange| &exchange.it);
                    if let Some(it) = it.filter(|it| it.durable && !it.id.is_predeclared()) {
                        let mut record = Vec::new();
                        encode_exchange(&mut record, now, it);
                        out.push(record);
                    }
                }
                Some(Cursor::Bindings(After {
                    from: ExchangeId(0),
                    binding: None,
                }))
            }
            Cursor::Bindings(after) => self.capture_bindings(now, after, left, out),
        }
    }

    fn capture_vhosts(&self, now: Millis, out: &mut Vec<Vec<u8>>) {
        let mut record = Vec::new();
        begin(&mut record, Kind::Vhost, QueueId(0), now);
        record.push(vhost::COUNTERS);
        record.extend_from_slice(&self.next_vhost.to_be_bytes());
        record.extend_from_slice(&self.next_exchange.to_be_bytes());
        out.push(record);
        let named = self.vhosts.range((Excluded(VhostId::DEFAULT), Unbounded));
        for (id, name) in named {
            let mut record = Vec::new();
            encode_vhost(&mut record, now, *id, name);
            out.push(record);
        }
    }

    fn capture_bindings(
        &self,
        now: Millis,
        start: After,
        left: &mut usize,
        out: &mut Vec<Vec<u8>>,
    ) -> Option<Cursor> {
        let mut after = start.binding;
        for id in self.ids.range(start.from..) {
            let after = after.take().filter(|_| *id == start.from);
            let Some(exchange) = self.at(*id) else {
                continue;
            };
            let mut last = after.clone();
            for (binding, durable) in exchange.bindings_after(after.as_ref()) {
                if *left == 0 {
                    return Some(Cursor::Bindings(After {
                        from: *id,
                        binding: last,
                    }));
                }
                *left -= 1;
                if durable {
                    let mut record = Vec::new();
                    encode_binding(&mut record, now, (*id, binding));
                    out.push(record);
                }
                last = Some(binding.clone());
            }
            *left = left.saturating_sub(1);
        }
        None
    }

    /// Applies a `Vhost` record.
    ///
    /// Returns the name of the virtual host that is gone by it.
    pub(crate) fn apply_vhost(
        &mut self,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Arc<str>>, ReplayError> {
        match reader.u8()? {
            vhost::THERE => {
                let id = VhostId(reader.u32()?);
                return Ok(self.add_vhost(id, reader.short()?.into()));
            }
            vhost::GONE => {
                let id = VhostId(reader.u32()?);
                if id == VhostId::DEFAULT {
                    return Err(reader.problem("the default virtual host is gone"));
                }
                return Ok(self.remove_vhost(id));
            }
            vhost::COUNTERS => {
                self.next_vhost = self.next_vhost.max(reader.u32()?);
                self.next_exchange = self.next_exchange.max(reader.u64()?);
            }
            n => return Err(reader.problem(&format!("a Vhost record of what is unknown ({n})"))),
        }
        Ok(None)
    }

    /// Applies an `Exchange` record.
    pub(crate) fn apply_exchange(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        match reader.u8()? {
            what::THERE => {
                let it = read_exchange(reader)?;
                self.add_exchange(it);
            }
            what::GONE => {
                let gone = read_exchanges(reader)?;
                self.remove_exchanges(&gone);
            }
            n => {
                let problem = format!("an Exchange record of what is unknown ({n})");
                return Err(reader.problem(&problem));
            }
        }
        Ok(())
    }

    /// Applies a `Binding` record. Whether a queue is there is known only in the end
    /// ([`Self::forget_lost`]).
    pub(crate) fn apply_binding(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        match reader.u8()? {
            what::THERE => {
                let (source, binding) = read_binding(reader)?;
                self.add_binding(source, binding, true);
            }
            what::GONE => {
                let (source, binding) = read_binding(reader)?;
                let gone = read_exchanges(reader)?;
                self.remove_binding(source, &binding);
                self.remove_exchanges(&gone);
            }
            n => return Err(reader.problem(&format!("a Binding record of what is unknown ({n})"))),
        }
        Ok(())
    }

    /// At the end of recovery: bindings to queues that are not there go.
    pub(crate) fn forget_lost(&mut self, is_there: impl Fn(QueueId, VhostId) -> bool) {
        let mut lost: Vec<_> = self.sources.keys().copied().collect();
        lost.sort_unstable();
        lost.retain(|target| match target {
            Target::Exchange(_) => false,
            Target::Queue(queue) => {
                let mut sources = self.sources.get(target).into_iter().flatten();
                let vhost = sources.find_map(|(id, _)| self.at(*id).map(|it| it.it.vhost));
                !vhost.is_some_and(|vhost| is_there(*queue, vhost))
            }
        });
        for target in lost {
            self.remove_bindings_to(target);
        }
    }
}

fn read_exchange(reader: &mut Reader<'_>) -> Result<Declaration, ReplayError> {
    let id = ExchangeId(reader.u64()?);
    if id.is_predeclared() {
        return Err(reader.problem("an exchange with an id of those that are always there"));
    }
    let vhost = VhostId(reader.u32()?);
    let name = reader.short()?.into();
    let kind = match reader.u8()? {
        1 => ExchangeKind::Direct,
        2 => ExchangeKind::Fanout,
        3 => ExchangeKind::Topic,
        4 => ExchangeKind::Headers,
        n => return Err(reader.problem(&format!("an exchange of a kind that is unknown ({n})"))),
    };
    let flags = reader.u8()?;
    if flags & !flag::ALL != 0 {
        return Err(reader.problem(&format!("an exchange with unknown flags ({flags})")));
    }
    Ok(Declaration {
        id,
        vhost,
        name,
        kind,
        durable: true,
        auto_delete: flags & flag::AUTO_DELETE != 0,
        internal: flags & flag::INTERNAL != 0,
        args: Bytes::copy_from_slice(reader.long_bytes()?),
    })
}
