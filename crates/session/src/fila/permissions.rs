//! Which permission each request needs, in one table (docs/security.md).
//!
//! `Enqueue`, `Ack`, `Nack` and `ExtendLease` are not here: they are checked item by item. What a
//! list shows is decided when it is there.

use tanda_engine::Permission;
use tanda_wire::cursor::Reader;
use tanda_wire::fila::cluster::{
    DrainNodeResult, GetClusterStatusResult, MoveQueueLeaderResult, SetRebalancingResult,
};
use tanda_wire::fila::config::{GetConfigResult, ListConfigResult, SetConfigResult};
use tanda_wire::fila::keys::{
    CreateApiKeyResult, GetAclResult, ListApiKeysResult, RevokeApiKeyResult, SetAclResult,
};
use tanda_wire::fila::queue_admin::{CreateQueueResult, DeleteQueueResult, UpdateQueueResult};
use tanda_wire::fila::redrive::RedriveResult;
use tanda_wire::fila::stats::GetStatsResult;
use tanda_wire::fila::throttle::{GetThrottleBucketResult, GetThrottleStatsResult};
use tanda_wire::fila::{ErrorCode, Opcode};

use super::link::{Call, Link};

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// This for the queue whose name the body begins with.
    Queue(Permission),
    /// `admin` on `*`.
    WholeBroker,
    Superadmin,
}

/// Whether the peer may not do this; then it is answered and noted.
pub(super) fn refuses(link: &mut Link, call: &Call) -> bool {
    let caller = &link.authority.caller;
    let queue = first_string(&call.body).unwrap_or_default();
    let (is_allowed, object) = match need_of(call.opcode) {
        Need::Nothing => (true, ""),
        Need::Queue(permission) => (caller.may(permission, queue), queue),
        Need::WholeBroker => (caller.may_administer_all(), ""),
        Need::Superadmin => (caller.is_superadmin(), ""),
    };
    if is_allowed {
        return false;
    }
    link.note_denial(call.opcode.name(), object);
    answer(link, call);
    true
}

/// What is not named here is for superadmins.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a request that was forgotten here is refused, not allowed"
)]
const fn need_of(opcode: Opcode) -> Need {
    match opcode {
        Opcode::Consume => Need::Queue(Permission::Consume),
        Opcode::CreateQueue
        | Opcode::UpdateQueue
        | Opcode::DeleteQueue
        | Opcode::GetStats
        | Opcode::Redrive
        | Opcode::MoveQueueLeader => Need::Queue(Permission::Admin),
        Opcode::ListQueues | Opcode::GetRoutes => Need::Nothing,
        Opcode::SetConfig
        | Opcode::GetConfig
        | Opcode::ListConfig
        | Opcode::GetThrottleStats
        | Opcode::GetThrottleBucket
        | Opcode::DrainNode
        | Opcode::SetRebalancing
        | Opcode::GetClusterStatus => Need::WholeBroker,
        _ => Need::Superadmin,
    }
}

/// The string that a body begins with. A body without one cannot be decoded either.
fn first_string(body: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(body);
    let len = reader.u16_be().ok()?;
    reader.utf8(len.into(), "string").ok()
}

/// The request's own result where it has an `error_code`, else an `Error`.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all others have no result frame with a code"
)]
fn answer(link: &mut Link, call: &Call) {
    let id = call.request_id;
    let out = &mut link.outbound;
    let error_code = ErrorCode::Forbidden;
    macro_rules! result {
        ($result:ident) => {
            out.body(id, &$result { error_code })
        };
        ($result:ident, ..) => {
            out.body(
                id,
                &$result {
                    error_code,
                    ..$result::default()
                },
            )
        };
    }
    match call.opcode {
        Opcode::CreateQueue => result!(CreateQueueResult, ..),
        Opcode::UpdateQueue => result!(UpdateQueueResult),
        Opcode::DeleteQueue => result!(DeleteQueueResult),
        Opcode::GetStats => result!(GetStatsResult, ..),
        Opcode::Redrive => result!(RedriveResult, ..),
        Opcode::SetConfig => result!(SetConfigResult),
        Opcode::GetConfig => result!(GetConfigResult, ..),
        Opcode::ListConfig => result!(ListConfigResult, ..),
        Opcode::GetThrottleStats => result!(GetThrottleStatsResult, ..),
        Opcode::GetThrottleBucket => result!(GetThrottleBucketResult, ..),
        Opcode::MoveQueueLeader => result!(MoveQueueLeaderResult),
        Opcode::DrainNode => result!(DrainNodeResult),
        Opcode::SetRebalancing => result!(SetRebalancingResult),
        Opcode::GetClusterStatus => result!(GetClusterStatusResult, ..),
        Opcode::CreateApiKey => result!(CreateApiKeyResult, ..),
        Opcode::RevokeApiKey => result!(RevokeApiKeyResult),
        Opcode::ListApiKeys => result!(ListApiKeysResult, ..),
        Opcode::SetAcl => result!(SetAclResult),
        Opcode::GetAcl => result!(GetAclResult, ..),
        _ => {
            let text = format!("this key may not do that ({})", call.opcode);
            out.error(id, error_code, &text, &[]);
        }
    }
}
