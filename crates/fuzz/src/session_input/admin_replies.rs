//! Answers to rare requests, drawn from a script: each kind that an engine has.

use std::sync::Arc;

use tanda_engine::{
    AclOf, AdminReply, AdminRequest, ApiKeyId, ApiKeyInfo, ApiKeyNotFound, Bootstrapped,
    BucketStats, CheckScriptsError, ClusterStatus, CreateApiKeyError, CreateQueueError, Defaults,
    DeleteQueueError, Grant, KeyKind, KeyPart, KeyStats, Millis, MissingThrottleKey, Permission,
    PermissionError, PutUserError, QueueCounts, QueueDetails, QueueExplanation, QueueNotFound,
    QueueSpec, QueueStats, QueueSummary, Rebalancing, RedriveError, Redriven, RuntimeConfigError,
    SetAclError, ThrottleLimit, ThrottleNotFound, ThrottleStats, ThrottleSummary, UpdateQueueError,
    UserNotFound, UserReply,
};

use super::topology_replies;
use crate::script::Script;

/// Entries of one list.
const LIST_MAX: usize = 40;

/// Draws an answer of one kind.
pub(super) type Make = fn(&mut Script<'_>) -> AdminReply;

/// The byte of a script from which on an answer is one to its request.
const FITTING: u8 = 64;

/// All kinds; stored inputs know them by their places, so more come at the end.
const ALL: [Make; 38] = [
    CREATED,
    CREATE_REFUSED,
    UPDATE_REFUSED,
    UPDATED,
    DELETE_REFUSED,
    STATS,
    STATS_REFUSED,
    QUEUES,
    REDRIVEN,
    REDRIVE_REFUSED,
    CONFIG_REFUSED,
    CONFIG,
    CONFIG_LIST,
    CLUSTER_STATUS,
    PURGED,
    REBALANCING_SET,
    DELETED,
    CONFIG_SET,
    CONFIG_UNSET,
    INSPECTED,
    INSPECT_REFUSED,
    SCRIPTS_CHECKED,
    EXPLAINED,
    THROTTLE,
    THROTTLE_REFUSED,
    THROTTLE_BUCKET,
    BUCKET_REFUSED,
    KEY_CREATED,
    KEY_REFUSED,
    BOOTSTRAPPED,
    KEY_REVOKED,
    KEYS,
    ACL_SET,
    ACL_REFUSED,
    ACL,
    KEY_UNKNOWN,
    TOPOLOGY,
    USER,
];

const CREATED: Make = |script| AdminReply::Created(Ok(text(script)));
const CREATE_REFUSED: Make = |script| AdminReply::Created(Err(create_refused(script)));
const UPDATED: Make = |_| AdminReply::Updated(Ok(()));
const UPDATE_REFUSED: Make = |script| AdminReply::Updated(Err(update_refused(script)));
const SCRIPTS_CHECKED: Make = |script| {
    let problem = text(script);
    AdminReply::ScriptsChecked(Err(CheckScriptsError::Refused { problem }))
};
const DELETED: Make = |_| AdminReply::Deleted(Ok(()));
const DELETE_REFUSED: Make = |_| AdminReply::Deleted(Err(DeleteQueueError::ReservedName));
const PURGED: Make = |_| AdminReply::Purged(Ok(1));
const STATS: Make = |script| AdminReply::Stats(Ok(stats(script)));
const STATS_REFUSED: Make = |_| AdminReply::Stats(Err(QueueNotFound));
const INSPECTED: Make = |script| AdminReply::Inspected(Ok(details(script)));
const INSPECT_REFUSED: Make = |_| AdminReply::Inspected(Err(QueueNotFound));
const EXPLAINED: Make = |script| AdminReply::Explained(Ok(explanation(script)));
const QUEUES: Make = |script| {
    let summary = QueueSummary {
        name: text(script),
        counts: counts(script),
    };
    AdminReply::Queues(vec![summary; script.pick(LIST_MAX)])
};
const REDRIVEN: Make = |script| {
    AdminReply::Redriven(Ok(Redriven {
        redriven: script.u64(),
        left_unclassified: script.u64(),
        rejected_by_script: script.u64(),
    }))
};
const REDRIVE_REFUSED: Make = |_| AdminReply::Redriven(Err(RedriveError::NotDeadLetterQueue));
const CONFIG_SET: Make = |_| AdminReply::ConfigSet(Ok(()));
const CONFIG_REFUSED: Make = |_| AdminReply::ConfigSet(Err(RuntimeConfigError::Storage));
const CONFIG: Make = |script| AdminReply::Config(Some(text(script)));
const CONFIG_UNSET: Make = |_| AdminReply::Config(None);
const CONFIG_LIST: Make = |script| {
    let entry = (text(script), text(script));
    AdminReply::ConfigList(vec![entry; script.pick(4)])
};
const CLUSTER_STATUS: Make = |script| {
    AdminReply::ClusterStatus(ClusterStatus {
        rebalancing: Rebalancing::Disabled,
        pause_ends_at: Millis(script.u64()),
        queue_leaderships: script.u32(),
    })
};
const REBALANCING_SET: Make = |_| AdminReply::RebalancingSet;
const THROTTLE: Make = |script| AdminReply::Throttle(Ok(throttle_stats(script)));
const THROTTLE_REFUSED: Make = |_| AdminReply::Throttle(Err(ThrottleNotFound));
const THROTTLE_BUCKET: Make = |script| AdminReply::ThrottleBucket(Ok(bucket(script)));
const BUCKET_REFUSED: Make = |_| AdminReply::ThrottleBucket(Err(ThrottleNotFound));
const KEY_CREATED: Make = |script| AdminReply::ApiKeyCreated(Ok(key(script)));
const KEY_REFUSED: Make = |script| AdminReply::ApiKeyCreated(Err(key_refused(script)));
const BOOTSTRAPPED: Make = |script| {
    let (key, replaced) = (key(script), Some(ApiKeyId(script.u64())));
    AdminReply::Bootstrapped(Ok(Bootstrapped::Made { key, replaced }))
};
const KEY_REVOKED: Make = |script| AdminReply::ApiKeyRevoked(Ok(key(script)));
const KEY_UNKNOWN: Make = |script| match script.pick(2) {
    0 => AdminReply::ApiKeyRevoked(Err(ApiKeyNotFound)),
    _ => AdminReply::Acl(Err(ApiKeyNotFound)),
};
const KEYS: Make = |script| {
    let key = key(script);
    AdminReply::ApiKeys(vec![key; script.pick(LIST_MAX)])
};
const ACL_SET: Make = |script| AdminReply::AclSet(Ok(key(script)));
const ACL_REFUSED: Make = |script| AdminReply::AclSet(Err(acl_refused(script)));
const ACL: Make = |script| AdminReply::Acl(Ok(acl(script)));

const USER: Make = |script| {
    AdminReply::User(match script.pick(8) {
        0 => UserReply::Put(Ok(true)),
        1 => UserReply::Put(Err(PutUserError::Storage)),
        2 => UserReply::Seeded(Ok(false)),
        3 => UserReply::Deleted(Ok(())),
        4 => UserReply::Deleted(Err(UserNotFound)),
        5 => UserReply::Rehashed(true),
        6 => UserReply::PermissionsChanged(Ok(())),
        _ => UserReply::PermissionsChanged(Err(PermissionError::VhostNotFound)),
    })
};

const TOPOLOGY: Make = |script| {
    let byte = script.byte();
    drawn(script, &topology_replies::ALL, byte)
};

/// What an engine may answer to a request.
fn fitting(request: &AdminRequest) -> &'static [Make] {
    match request {
        AdminRequest::CreateQueue(_) => &[CREATED, CREATE_REFUSED],
        AdminRequest::UpdateQueue { .. } => &[UPDATED, UPDATE_REFUSED],
        AdminRequest::CheckScripts { .. } => &[SCRIPTS_CHECKED],
        AdminRequest::DeleteQueue { .. } => &[DELETED, DELETE_REFUSED],
        AdminRequest::PurgeQueue { .. } => &[PURGED],
        AdminRequest::QueueStats { .. } => &[STATS, STATS_REFUSED],
        AdminRequest::InspectQueue { .. } => &[INSPECTED, INSPECT_REFUSED],
        AdminRequest::ThrottleStats { .. } => &[THROTTLE, THROTTLE_REFUSED],
        AdminRequest::ThrottleBucket { .. } => &[THROTTLE_BUCKET, BUCKET_REFUSED],
        AdminRequest::ListQueues => &[QUEUES],
        AdminRequest::Redrive { .. } => &[REDRIVEN, REDRIVE_REFUSED],
        AdminRequest::SetConfig { .. } => &[CONFIG_SET, CONFIG_REFUSED],
        AdminRequest::GetConfig { .. } => &[CONFIG, CONFIG_UNSET],
        AdminRequest::ListConfig { .. } => &[CONFIG_LIST],
        AdminRequest::SetRebalancing(_) => &[REBALANCING_SET],
        AdminRequest::ClusterStatus => &[CLUSTER_STATUS],
        AdminRequest::Explain { .. } => &[EXPLAINED],
        AdminRequest::CreateApiKey(_) => &[KEY_CREATED, KEY_REFUSED],
        AdminRequest::Bootstrap { .. } => &[BOOTSTRAPPED],
        AdminRequest::RevokeApiKey { .. } => &[KEY_REVOKED, KEY_UNKNOWN],
        AdminRequest::ListApiKeys => &[KEYS],
        AdminRequest::SetAcl { .. } => &[ACL_SET, ACL_REFUSED],
        AdminRequest::GetAcl { .. } => &[ACL, KEY_UNKNOWN],
        AdminRequest::User(_) => &[USER],
        AdminRequest::OpenVhost { .. }
        | AdminRequest::CreateVhost { .. }
        | AdminRequest::DeleteVhost { .. }
        | AdminRequest::ListVhosts
        | AdminRequest::DeclareExchange(_)
        | AdminRequest::DeleteExchange { .. }
        | AdminRequest::Bind(_)
        | AdminRequest::Unbind(_)
        | AdminRequest::ListExchanges { .. }
        | AdminRequest::ListBindings { .. }
        | AdminRequest::ListChannels { .. }
        | AdminRequest::CountVhost { .. }
        | AdminRequest::ListQueuesOf { .. }
        | AdminRequest::DeclareQueue(_)
        | AdminRequest::RemoveQueue { .. }
        | AdminRequest::RemoveOwnQueues
        | AdminRequest::Purge { .. } => &[TOPOLOGY],
    }
}

/// Any answer, also one that the protocol cannot have asked for.
pub(super) fn any(script: &mut Script<'_>) -> AdminReply {
    let byte = script.byte();
    drawn(script, &ALL, byte)
}

/// An answer to this request, or, one time in four, to any.
pub(super) fn to(script: &mut Script<'_>, request: &AdminRequest) -> AdminReply {
    match script.byte() {
        byte @ 0..FITTING => drawn(script, &ALL, byte),
        byte => drawn(script, fitting(request), byte),
    }
}

fn drawn(script: &mut Script<'_>, kinds: &[Make], byte: u8) -> AdminReply {
    let at = usize::from(byte) % kinds.len().max(1);
    kinds.get(at).unwrap_or(&REBALANCING_SET)(script)
}

/// Text that may be longer than a string of the protocol can be.
pub(super) fn text(script: &mut Script<'_>) -> String {
    let part = String::from_utf8_lossy(script.short()).into_owned();
    let times = match script.byte() {
        0xFF => 300,
        other => usize::from(other % 3),
    };
    part.repeat(times)
}

fn create_refused(script: &mut Script<'_>) -> CreateQueueError {
    match script.pick(7) {
        0 => CreateQueueError::AlreadyExists,
        1 => CreateQueueError::ReservedName,
        2 => CreateQueueError::ScriptsUnsupported,
        3 => CreateQueueError::ScriptRefused {
            problem: text(script),
        },
        4 => CreateQueueError::TooManyQueues { max: script.u32() },
        5 => CreateQueueError::VhostNotFound,
        _ => CreateQueueError::InvalidSetting {
            setting: "lease",
            problem: text(script),
        },
    }
}

fn update_refused(script: &mut Script<'_>) -> UpdateQueueError {
    match script.pick(4) {
        0 => UpdateQueueError::NotFound,
        1 => UpdateQueueError::ReservedName,
        2 => UpdateQueueError::ScriptRefused {
            problem: text(script),
        },
        _ => UpdateQueueError::Storage,
    }
}

pub(super) fn counts(script: &mut Script<'_>) -> QueueCounts {
    QueueCounts {
        depth: script.u64(),
        in_flight: u64::from(script.byte()),
        active_consumers: script.u32(),
        oldest_unclassified_at: Some(Millis(0)),
        ..QueueCounts::default()
    }
}

fn stats(script: &mut Script<'_>) -> QueueStats {
    let key = KeyStats {
        key: text(script),
        pending: script.u64(),
        deficit: i64::from(script.byte()) - 100,
        weight: script.u32(),
    };
    QueueStats {
        counts: counts(script),
        keys: vec![key; script.pick(LIST_MAX)],
        quantum: script.u32(),
        throttles: vec![throttle(script); script.pick(3)],
    }
}

fn details(script: &mut Script<'_>) -> QueueDetails {
    QueueDetails {
        id: text(script),
        name: text(script),
        dead_letter_queue: None,
        parent: None,
        config: QueueSpec::default().resolve(&Defaults::default()),
        counts: counts(script),
    }
}

fn explanation(script: &mut Script<'_>) -> QueueExplanation {
    QueueExplanation {
        name: text(script),
        counts: counts(script),
        consumers_ready: script.u32(),
        consumers_without_credit: 0,
        consumers_with_full_buffer: 0,
        next_due_at: None,
        next_lease_end_at: Some(Millis(script.u64())),
        groups_held: 0,
        last_script_error: Some(text(script)),
        unfit: script.u64(),
        first_unfit: None,
        throttles: vec![throttle(script); script.pick(3)],
        message: None,
    }
}

fn throttle(script: &mut Script<'_>) -> ThrottleSummary {
    let limit = ThrottleLimit {
        window_ms: script.u64(),
        max_deliveries: script.u64(),
    };
    let part = KeyPart {
        kind: match script.pick(3) {
            0 => KeyKind::FairnessKey,
            1 => KeyKind::Attribute,
            _ => KeyKind::Header,
        },
        name: "tenant".to_owned(),
    };
    ThrottleSummary {
        name: text(script),
        limits: vec![limit; script.pick(3)],
        key: vec![part; script.pick(3)],
        missing: MissingThrottleKey::SharedBucket,
        subscribers: script.u32(),
    }
}

fn bucket(script: &mut Script<'_>) -> BucketStats {
    BucketStats {
        shared: script.pick(2) == 1,
        values: vec![text(script); script.pick(3)],
        counted: vec![script.u64(); script.pick(3)],
        waiting: script.u64(),
        next_room_at: Millis(script.u64()),
    }
}

fn throttle_stats(script: &mut Script<'_>) -> ThrottleStats {
    ThrottleStats {
        summary: throttle(script),
        queues: vec![text(script); script.pick(3)],
        active_buckets: script.u64(),
        buckets_at_limit: 1,
        waiting: script.u64(),
        buckets: vec![bucket(script); script.pick(LIST_MAX)],
    }
}

fn key(script: &mut Script<'_>) -> ApiKeyInfo {
    ApiKeyInfo {
        id: ApiKeyId(script.u64()),
        name: text(script).into(),
        created_at: Millis(script.u64()),
        expires_at: (script.pick(2) == 1).then_some(Millis(1)),
        is_superadmin: script.pick(2) == 1,
    }
}

fn key_refused(script: &mut Script<'_>) -> CreateApiKeyError {
    match script.pick(4) {
        0 => CreateApiKeyError::BadName {
            problem: text(script),
        },
        1 => CreateApiKeyError::SecretInUse,
        2 => CreateApiKeyError::TooMany { max: script.u32() },
        _ => CreateApiKeyError::Storage,
    }
}

fn acl_refused(script: &mut Script<'_>) -> SetAclError {
    let max = usize::from(script.u16());
    match script.pick(4) {
        0 => SetAclError::NotFound,
        1 => SetAclError::TooMany { max },
        2 => SetAclError::BadPattern { len: 0, max },
        _ => SetAclError::TooManyBytes { max },
    }
}

fn acl(script: &mut Script<'_>) -> AclOf {
    let at = script.pick(Permission::ALL.len());
    let permission = Permission::ALL.get(at).copied();
    let grant = Grant {
        permission: permission.unwrap_or(Permission::Admin),
        pattern: text(script).into(),
    };
    AclOf {
        key: key(script),
        grants: Arc::from(vec![grant; script.pick(LIST_MAX)]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The place of the answer's kind; a new kind does not compile until it has one.
    fn place(reply: &AdminReply) -> u8 {
        match reply {
            AdminReply::Created(_) => 0,
            AdminReply::Updated(_) => 1,
            AdminReply::ScriptsChecked(_) => 2,
            AdminReply::Deleted(_) => 3,
            AdminReply::Purged(_) => 4,
            AdminReply::Throttle(_) => 5,
            AdminReply::ThrottleBucket(_) => 6,
            AdminReply::Stats(_) => 7,
            AdminReply::Inspected(_) => 8,
            AdminReply::Queues(_) => 9,
            AdminReply::Redriven(_) => 10,
            AdminReply::ConfigSet(_) => 11,
            AdminReply::Config(_) => 12,
            AdminReply::ConfigList(_) => 13,
            AdminReply::RebalancingSet => 14,
            AdminReply::ClusterStatus(_) => 15,
            AdminReply::Explained(_) => 16,
            AdminReply::ApiKeyCreated(_) => 17,
            AdminReply::Bootstrapped(_) => 18,
            AdminReply::ApiKeyRevoked(_) => 19,
            AdminReply::ApiKeys(_) => 20,
            AdminReply::AclSet(_) => 21,
            AdminReply::Acl(_) => 22,
            AdminReply::Vhost(_)
            | AdminReply::VhostChanged(_)
            | AdminReply::VhostDeleted(_)
            | AdminReply::Vhosts(_)
            | AdminReply::ExchangeDeclared(_)
            | AdminReply::ExchangeDeleted(_)
            | AdminReply::Bound(_)
            | AdminReply::Unbound(_)
            | AdminReply::Exchanges(_)
            | AdminReply::Bindings(_)
            | AdminReply::Channels(_)
            | AdminReply::VhostCounts(_)
            | AdminReply::QueuesOf(_)
            | AdminReply::QueueDeclared(_)
            | AdminReply::QueueRemoved(_)
            | AdminReply::QueuePurged(_) => 23,
            AdminReply::User(_) => 24,
        }
    }

    #[test]
    fn every_kind_of_answer_is_drawn() {
        let kinds = (0..=u8::MAX).map(|byte| place(&any(&mut Script::new(&[byte]))));
        let drawn: BTreeSet<u8> = kinds.collect();
        assert_eq!(drawn, (0..25).collect());
    }

    #[test]
    fn an_answer_fits_its_request_mostly() {
        let request = AdminRequest::ListApiKeys;
        let fits = |byte: &u8| place(&to(&mut Script::new(&[*byte]), &request)) == 20;
        assert_eq!((FITTING..=u8::MAX).filter(fits).count(), 192);
        assert!((0..FITTING).filter(fits).count() < 4);
    }
}
