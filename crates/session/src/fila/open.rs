//! An open connection: which frame is allowed, and who takes it.

use bytes::Bytes;
use tanda_wire::fila::continuation::{Reassembler, ReassemblyLimits};
use tanda_wire::fila::control::{Disconnect, Ping, Pong};
use tanda_wire::fila::frame::{FrameHeader, RequestIdClass, request_id_class};
use tanda_wire::fila::{Direction, Opcode};

use super::authority::Lost;
use super::keepalive::Keepalive;
use super::link::{Call, Link};
use super::{
    on_admin, on_cluster, on_keys, on_publish, on_settle, on_subscribe, permissions, throttles,
};

/// What a frame does to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It stays open.
    Stay,
    /// It closes once the answers under way are out.
    Close,
}

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) keepalive: Keepalive,
    reassembler: Reassembler,
    /// Both sides speak `CREDIT_FLOW_CONTROL`.
    has_credit: bool,
}

impl Open {
    pub(super) fn new(link: &Link, has_credit: bool) -> Self {
        Self {
            keepalive: Keepalive::new(link.now),
            reassembler: Reassembler::new(ReassemblyLimits {
                total_bytes_max: link.config.max_body_bytes,
                unfinished_max: link.config.unfinished_max,
            }),
            has_credit,
        }
    }

    /// Bytes of unfinished bodies.
    pub(super) const fn held_bytes(&self) -> usize {
        self.reassembler.held_bytes()
    }

    /// Takes one frame; `part` is what follows its header.
    pub(super) fn on_frame(&mut self, link: &mut Link, header: FrameHeader, part: Bytes) -> Next {
        if let Some(lost) = link.authority.lost {
            return on_lost_key(link, header, lost);
        }
        if let Some(problem) = problem_of(link, header) {
            link.invalid_frame(header.request_id, &problem);
            self.reassembler.discard(header.request_id);
            return Next::Stay;
        }
        let body = if header.is_continued() || self.reassembler.unfinished() > 0 {
            match self.reassembler.push(header, &part) {
                Ok(None) => return Next::Stay,
                // Only a joined body is a new buffer; a whole one stays where it came in.
                Ok(Some(std::borrow::Cow::Owned(whole))) => Bytes::from(whole),
                Ok(Some(std::borrow::Cow::Borrowed(_))) => part,
                Err(error) => {
                    link.invalid_frame(error.request_id(), &error.to_string());
                    return if error.is_over_limit() {
                        Next::Close
                    } else {
                        Next::Stay
                    };
                }
            }
        } else {
            part
        };
        let FrameHeader {
            opcode, request_id, ..
        } = header;
        self.on_call(
            link,
            Call {
                opcode,
                request_id,
                body,
            },
        )
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "on_rare takes all the rest")]
    fn on_call(&mut self, link: &mut Link, call: Call) -> Next {
        match call.opcode {
            Opcode::Ping => {
                if link.decode::<Ping>(&call).is_some() {
                    link.outbound.body(call.request_id, &Pong {});
                }
            }
            Opcode::Pong => self.keepalive.on_pong(call.request_id),
            Opcode::Disconnect => return Next::Close,
            Opcode::Enqueue => on_publish::on_enqueue(link, call),
            Opcode::Consume if permissions::refuses(link, &call) => {}
            Opcode::Consume => on_subscribe::on_consume(link, &call, self.has_credit),
            Opcode::Credit => on_subscribe::on_credit(link, &call),
            Opcode::CancelConsume => on_subscribe::on_cancel(link, &call),
            Opcode::Ack => on_settle::on_ack(link, call),
            Opcode::Nack => on_settle::on_nack(link, call),
            Opcode::ExtendLease => on_settle::on_extend(link, call),
            _ => on_rare(link, call),
        }
        Next::Stay
    }

    /// Says goodbye: the server wants to close.
    pub(super) fn on_shutdown(&mut self, link: &mut Link) {
        let id = self.keepalive.next_id();
        link.outbound.body(id, &Disconnect {});
    }
}

/// The key of this connection was revoked or has expired: its next request is its last.
fn on_lost_key(link: &mut Link, header: FrameHeader, lost: Lost) -> Next {
    if header.opcode == Opcode::Pong {
        return Next::Stay;
    }
    if header.opcode != Opcode::Disconnect {
        link.unauthorized(header.request_id, lost.error);
    }
    Next::Close
}

/// Everything but the hot path. Opcodes that are no requests were refused before.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the rest are answers, refused in problem_of"
)]
fn on_rare(link: &mut Link, call: Call) {
    if permissions::refuses(link, &call) {
        return;
    }
    match call.opcode {
        Opcode::CreateQueue => on_admin::on_create_queue(link, &call),
        Opcode::UpdateQueue => on_admin::on_update_queue(link, &call),
        Opcode::DeleteQueue => on_admin::on_delete_queue(link, &call),
        Opcode::ListQueues => on_admin::on_list_queues(link, &call),
        Opcode::GetStats => on_admin::on_stats(link, &call),
        Opcode::Redrive => on_admin::on_redrive(link, &call),
        Opcode::SetConfig => on_admin::on_set_config(link, &call),
        Opcode::GetConfig => on_admin::on_get_config(link, &call),
        Opcode::ListConfig => on_admin::on_list_config(link, &call),
        Opcode::GetThrottleStats => throttles::on_throttle_stats(link, &call),
        Opcode::GetThrottleBucket => throttles::on_throttle_bucket(link, &call),
        Opcode::GetRoutes => on_cluster::on_routes(link, call),
        Opcode::DrainNode => on_cluster::on_drain_node(link, &call),
        Opcode::MoveQueueLeader => on_cluster::on_move_leader(link, &call),
        Opcode::SetRebalancing => on_cluster::on_set_rebalancing(link, &call),
        Opcode::GetClusterStatus => on_cluster::on_cluster_status(link, &call),
        Opcode::CreateApiKey => on_keys::on_create_key(link, &call),
        Opcode::RevokeApiKey => on_keys::on_revoke_key(link, &call),
        Opcode::ListApiKeys => on_keys::on_list_keys(link, &call),
        Opcode::SetAcl => on_keys::on_set_acl(link, &call),
        Opcode::GetAcl => on_keys::on_get_acl(link, &call),
        _ => link.invalid_frame(call.request_id, "this frame is not a request"),
    }
}

/// What is wrong with a header, whatever its body holds (`Request ID Space`, `Frame Header`).
fn problem_of(link: &Link, header: FrameHeader) -> Option<String> {
    let FrameHeader {
        opcode,
        flags,
        request_id,
    } = header;
    if header.has_reserved_flags() {
        return Some(format!("{opcode}: flags 0x{flags:02X} set a reserved bit"));
    }
    match opcode.direction() {
        Direction::ToServer | Direction::Either => {}
        Direction::ToClient => return Some(format!("{opcode} is sent by servers, not by clients")),
        Direction::Unknown => return Some(format!("opcode 0x{:02X} is unknown", opcode.to_wire())),
    }
    if opcode == Opcode::Handshake {
        return Some("this connection has had its Handshake".to_owned());
    }
    if has_own_id_rules(opcode) {
        return None;
    }
    match request_id_class(request_id) {
        RequestIdClass::Handshake => Some(format!(
            "{opcode}: request ID 0 is reserved for the handshake"
        )),
        RequestIdClass::Server | RequestIdClass::Invalid => Some(format!(
            "{opcode}: request ID 0x{request_id:08X} has bit 31 set, which only servers set"
        )),
        RequestIdClass::Client if link.slots.subscription(request_id).is_some() => Some(format!(
            "{opcode}: request ID {request_id} is in use by a live subscription"
        )),
        RequestIdClass::Client => None,
    }
}

/// Frames that begin no request of their own.
fn has_own_id_rules(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Pong | Opcode::Disconnect | Opcode::Credit | Opcode::CancelConsume
    )
}
