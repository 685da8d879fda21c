//! Settlements on their way: what is waited for, and the frames.

use tanda_engine::Millis;
use tanda_wire::fila::Opcode;
use tanda_wire::fila::settle::{
    AckItem, AckWriter, ExtendItem, ExtendWriter, NackItem, NackWriter,
};

use super::Peer;
use crate::history::{Forbidden, Held, Right};

/// A request that waits for its answer.
pub(super) struct Settle {
    pub(super) sent_at: Millis,
    pub(super) kind: Kind,
    /// With each nack's `retry_after`, or the length of each extension.
    pub(super) items: Vec<(Held, Option<u64>)>,
    /// To consume, of each.
    pub(super) rights: Vec<Right>,
}

impl Settle {
    /// Its items with the right to each.
    pub(super) fn each(&self) -> impl Iterator<Item = (&(Held, Option<u64>), &Right)> {
        self.items.iter().zip(&self.rights)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ack,
    Nack,
    Extend,
}

impl From<Kind> for Forbidden {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Ack => Self::Ack,
            Kind::Nack => Self::Nack,
            Kind::Extend => Self::Extension,
        }
    }
}

/// Sends one batch and returns its request id.
pub(super) fn write_settle(peer: &mut Peer, kind: Kind, items: &[(Held, Option<u64>)]) -> u32 {
    let opcode = match kind {
        Kind::Ack => Opcode::Ack,
        Kind::Nack => Opcode::Nack,
        Kind::Extend => Opcode::ExtendLease,
    };
    peer.request_with(opcode, |out| {
        match kind {
            Kind::Ack => {
                let mut writer = AckWriter::new(out);
                for (held, _) in items {
                    writer.push(&AckItem {
                        queue: &held.queue,
                        message_id: held.id.to_be_bytes(),
                        ..AckItem::default()
                    })?;
                }
                writer.finish();
            }
            Kind::Nack => {
                let mut writer = NackWriter::new(out);
                for (held, retry_after_ms) in items {
                    writer.push(&NackItem {
                        queue: &held.queue,
                        message_id: held.id.to_be_bytes(),
                        error: "not today",
                        retry_after_ms: *retry_after_ms,
                        ..NackItem::default()
                    })?;
                }
                writer.finish();
            }
            Kind::Extend => {
                let mut writer = ExtendWriter::new(out);
                for (held, by_ms) in items {
                    writer.push(&ExtendItem {
                        queue: &held.queue,
                        message_id: held.id.to_be_bytes(),
                        extend_by_ms: by_ms.unwrap_or(0),
                        ..ExtendItem::default()
                    })?;
                }
                writer.finish();
            }
        }
        Ok(())
    })
}
