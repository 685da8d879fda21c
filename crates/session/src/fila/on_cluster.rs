//! Cluster requests, as a single node answers them.

use tanda_engine::{AdminRequest, Rebalancing, VhostId};
use tanda_wire::cursor::{DecodeError, Reader};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, MoveQueueLeader, RebalancingMode, SetRebalancing,
    SetRebalancingResult,
};

use super::link::{Call, Link};
use super::slots::Kind;

/// The names are checked now and read again when the engine's list is there, so that a frame of
/// millions of names costs no more memory than its bytes.
pub(super) fn on_routes(link: &mut Link, call: Call) {
    for name in RouteNames::new(&call.body) {
        if let Err(error) = name {
            return link.bad_body(&call, error);
        }
    }
    link.ask(
        call.request_id,
        Kind::Routes(call.body),
        AdminRequest::ListQueues,
    );
}

/// The queue names of a `GetRoutes` body; yields nothing after an error.
pub(super) struct RouteNames<'a> {
    reader: Reader<'a>,
    /// Names left; the count itself could not be read.
    left: Result<u32, Option<DecodeError>>,
}

impl<'a> RouteNames<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        let mut reader = Reader::new(body);
        let left = reader.u32_be().map_err(Some);
        Self { reader, left }
    }

    /// Whether every queue is meant.
    pub(super) const fn is_all(&self) -> bool {
        matches!(self.left, Ok(0))
    }
}

impl<'a> Iterator for RouteNames<'a> {
    type Item = Result<&'a str, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = match &mut self.left {
            Ok(left) => left,
            Err(error) => return error.take().map(Err),
        };
        *left = left.checked_sub(1)?;
        let name = self
            .reader
            .u16_be()
            .and_then(|len| self.reader.utf8(len.into(), "string"));
        if name.is_err() {
            *left = 0;
        }
        Some(name)
    }
}

/// A single node has the ID 0, which names no member.
pub(super) fn on_drain_node(link: &mut Link, call: &Call) {
    if link.decode::<DrainNode>(call).is_some() {
        let error_code = ErrorCode::NodeNotFound;
        link.outbound
            .body(call.request_id, &DrainNodeResult { error_code });
    }
}

/// The queue is looked up first, because an unknown queue is the better thing to say.
pub(super) fn on_move_leader(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<MoveQueueLeader<'_>>(call) else {
        return;
    };
    let name = frame.queue.to_owned();
    link.ask(
        call.request_id,
        Kind::MoveLeader,
        AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        },
    );
}

pub(super) fn on_set_rebalancing(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<SetRebalancing>(call) else {
        return;
    };
    let rebalancing = match RebalancingMode::from_wire(frame.mode) {
        Some(RebalancingMode::Enabled) => Rebalancing::Enabled,
        Some(RebalancingMode::Paused) => Rebalancing::Paused {
            pause_ms: frame.pause_ms,
        },
        Some(RebalancingMode::Disabled) => Rebalancing::Disabled,
        None => {
            let error_code = ErrorCode::InvalidConfigValue;
            return link
                .outbound
                .body(call.request_id, &SetRebalancingResult { error_code });
        }
    };
    link.ask(
        call.request_id,
        Kind::Admin,
        AdminRequest::SetRebalancing(rebalancing),
    );
}

pub(super) fn on_cluster_status(link: &mut Link, call: &Call) {
    if link.decode::<GetClusterStatus>(call).is_some() {
        link.ask(call.request_id, Kind::Admin, AdminRequest::ClusterStatus);
    }
}
