//! What comes to a consumer: deliveries, answers, errors, and the end of its key.

use tanda_engine::Millis;
use tanda_wire::fila::batch::Batch;
use tanda_wire::fila::delivery::DeliveryMessage;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::settle::{AckResult, ExtendLeaseResult, NackResult};
use tanda_wire::fila::{ErrorCode, Opcode};

use super::{Consumer, right};
use crate::clients::settle::{Kind, Settle};
use crate::clients::{Cx, Incoming};
use crate::failure::{Check, Violation, ensure};
use crate::history::{Holder, Need, Right, Settled};
use crate::invariants::authority::Deaf;
use crate::invariants::{authority, credit, protocol};

impl Consumer {
    pub(crate) fn on_frame(&mut self, frame: &Incoming, cx: &mut Cx<'_>) -> Check {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "no other opcode answers a consumer"
        )]
        match frame.opcode {
            Opcode::ConsumeOk => {
                let Some(sub) = self.subscriptions.get(&frame.request_id) else {
                    return Err(protocol::stray(frame.opcode, frame.request_id));
                };
                authority::on_allowed(&cx.history.keys, &sub.right, "to consume")
            }
            Opcode::Delivery => self.on_delivery(frame, cx),
            Opcode::AckResult => {
                let answer = AckResult::decode(&frame.body).map_err(bad(frame))?;
                self.on_codes(frame, Kind::Ack, &answer.results, cx)
            }
            Opcode::NackResult => {
                let answer = NackResult::decode(&frame.body).map_err(bad(frame))?;
                self.on_codes(frame, Kind::Nack, &answer.results, cx)
            }
            Opcode::ExtendLeaseResult => self.on_extended(frame, cx),
            other => Err(protocol::stray(other, frame.request_id)),
        }
    }

    fn on_delivery(&mut self, frame: &Incoming, cx: &mut Cx<'_>) -> Check {
        let Some(sub) = self.subscriptions.get_mut(&frame.request_id) else {
            return Err(protocol::stray(frame.opcode, frame.request_id));
        };
        authority::on_allowed(&cx.history.keys, &sub.right, "a delivery")?;
        authority::on_delivery(&cx.history.keys, sub.deaf, frame.begins_at)?;
        let batch = Batch::<DeliveryMessage<'_>>::decode_header(&frame.body).map_err(bad(frame))?;
        for message in batch {
            let message = message.map_err(bad(frame))?;
            cx.trace.note(cx.now, || {
                format!(
                    "  delivery {:032x} of {} on {}: {:?}",
                    u128::from_be_bytes(message.meta.message_id),
                    message.queue,
                    frame.request_id,
                    message.meta
                )
            });
            ensure(message.queue == sub.queue, protocol::NAME, || {
                format!(
                    "{:?} delivered to a subscriber of {:?}",
                    message.queue, sub.queue
                )
            })?;
            sub.received += 1;
            credit::on_received(&sub.queue, sub.granted, sub.received)?;
            self.held.push(cx.history.on_delivery(cx.now, &message)?);
        }
        Ok(())
    }

    fn on_codes(
        &mut self,
        frame: &Incoming,
        kind: Kind,
        codes: &[ErrorCode],
        cx: &mut Cx<'_>,
    ) -> Check {
        let settle = self.answered(frame, kind, codes.len())?;
        for (((held, retry_after_ms), right), code) in settle.each().zip(codes) {
            if is_forbidden(cx, right, *code)? {
                let (at, held) = (settle.sent_at, held.clone());
                cx.history
                    .on_settle_forbidden(cx.now, at, held, kind.into());
                continue;
            }
            let settled = match (*code, kind) {
                (ErrorCode::Ok, Kind::Ack) => Settled::Ack,
                (ErrorCode::Ok, Kind::Nack | Kind::Extend) => Settled::Nack(*retry_after_ms),
                (ErrorCode::MessageNotFound, _) => Settled::RefusedSettle,
                (code, _) => return Err(protocol::unexpected("settle", code)),
            };
            cx.trace
                .note(cx.now, || format!("  {:032x}: {settled:?}", held.id));
            cx.history.on_settled(cx.now, settle.sent_at, held, settled);
        }
        Ok(())
    }

    fn on_extended(&mut self, frame: &Incoming, cx: &mut Cx<'_>) -> Check {
        let answer = ExtendLeaseResult::decode(&frame.body).map_err(bad(frame))?;
        let settle = self.answered(frame, Kind::Extend, answer.results.len())?;
        for (((held, _), right), result) in settle.each().zip(&answer.results) {
            if is_forbidden(cx, right, result.error_code)? {
                let (at, held) = (settle.sent_at, held.clone());
                let kind = Kind::Extend.into();
                cx.history.on_settle_forbidden(cx.now, at, held, kind);
                continue;
            }
            let settled = match (result.error_code, result.lease_expires_at_ms) {
                (ErrorCode::Ok, end) => Settled::Extended(Millis(end)),
                (ErrorCode::MessageNotFound, _) => Settled::RefusedExtension,
                (code, _) => return Err(protocol::unexpected("extend", code)),
            };
            cx.trace
                .note(cx.now, || format!("  {:032x}: {settled:?}", held.id));
            cx.history.on_settled(cx.now, settle.sent_at, held, settled);
        }
        Ok(())
    }

    fn answered(
        &mut self,
        frame: &Incoming,
        kind: Kind,
        count: usize,
    ) -> Result<Settle, Violation> {
        let settle = self.open.remove(&frame.request_id);
        let fits = |settle: &Settle| settle.kind == kind && settle.items.len() == count;
        settle
            .filter(fits)
            .ok_or_else(|| protocol::stray(frame.opcode, frame.request_id))
    }

    /// A queue that must be there is found.
    pub(crate) fn on_error(
        &mut self,
        request_id: u32,
        error: &ErrorFrame<'_>,
        cx: &mut Cx<'_>,
    ) -> Check {
        if let Some(sub) = self.subscriptions.get_mut(&request_id) {
            sub.is_live = false;
            if error.error_code == ErrorCode::Forbidden {
                cx.history.counts.forbidden += 1;
                authority::on_forbidden(&cx.history.keys, &sub.right, cx.now)?;
            }
            let is_missing = error.error_code == ErrorCode::QueueNotFound && sub.must_find;
            return ensure(!is_missing, crate::invariants::nothing_lost::NAME, || {
                format!("queue {:?} is gone", sub.queue)
            });
        }
        let Some(settle) = self.open.remove(&request_id) else {
            return Err(protocol::stray(Opcode::Error, request_id));
        };
        if error.error_code == ErrorCode::Unauthorized {
            for (held, _) in settle.items {
                let (at, kind) = (settle.sent_at, settle.kind.into());
                cx.history.on_settle_forbidden(cx.now, at, held, kind);
            }
        }
        Ok(())
    }

    /// A change of the key of this connection was answered, when so many bytes had been sent.
    pub(crate) fn on_key_changed(&mut self, from: u64, holder: Holder, cx: &mut Cx<'_>) {
        for sub in self.subscriptions.values_mut() {
            let right = right(cx, holder, &sub.queue);
            if !right.is_possible() {
                sub.deaf.get_or_insert(Deaf { from, right });
            }
        }
        let connect = cx.history.keys.right(holder, cx.now, Need::Connect);
        if !connect.is_possible() {
            for held in &self.held {
                cx.history.on_orphaned(held.id);
            }
        }
    }
}

/// Whether a settlement was forbidden, and a key decided that right.
fn is_forbidden(cx: &Cx<'_>, right: &Right, code: ErrorCode) -> Result<bool, Violation> {
    if code == ErrorCode::Forbidden {
        authority::on_forbidden(&cx.history.keys, right, cx.now)?;
        return Ok(true);
    }
    authority::on_allowed(&cx.history.keys, right, "to settle")?;
    Ok(false)
}

fn bad(frame: &Incoming) -> impl Fn(tanda_wire::cursor::DecodeError) -> Violation {
    let opcode = frame.opcode;
    move |error| protocol::bad_body(opcode, error)
}
