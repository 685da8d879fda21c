//! The engine's answers about keys, as result frames and as lines for the operator's log.

use tanda_engine::{
    AclOf, AdminReply, ApiKeyInfo, ApiKeyNotFound, CreateApiKeyError, Millis, SetAclError,
};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::keys::{
    self, CreateApiKeyResult, GetAclResult, ListApiKeysResult, RevokeApiKeyResult, SetAclResult,
};

use super::errors::{self, code_of};
use super::link::Link;
use super::on_keys::{KeysCall, name_of};
use super::slots::{Entry, Kind};
use crate::audit::AuditOutcome;

/// Answers the request of `entry`. Replies about anything else are not for here.
pub(super) fn on_reply(link: &mut Link, entry: &Entry, reply: &AdminReply) {
    let id = entry.request_id;
    match reply {
        AdminReply::ApiKeyCreated(result) => created(link, entry, result),
        AdminReply::ApiKeyRevoked(result) => {
            let error_code = code_of(result.as_ref(), |_: &ApiKeyNotFound| {
                ErrorCode::ApiKeyNotFound
            });
            note_change(
                link,
                entry,
                "RevokeApiKey",
                result.as_ref().ok(),
                error_code,
            );
            link.outbound.body(id, &RevokeApiKeyResult { error_code });
        }
        AdminReply::AclSet(result) => {
            let error_code = code_of(result.as_ref(), |error: &SetAclError| {
                errors::set_acl(error)
            });
            note_change(link, entry, "SetAcl", result.as_ref().ok(), error_code);
            link.outbound.body(id, &SetAclResult { error_code });
        }
        AdminReply::ApiKeys(keys) => list(link, id, keys),
        AdminReply::Acl(result) => acl(link, id, result),
        AdminReply::Created(_)
        | AdminReply::Vhost(_)
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
        | AdminReply::QueuePurged(_)
        | AdminReply::User(_)
        | AdminReply::Updated(_)
        | AdminReply::Deleted(_)
        | AdminReply::Purged(_)
        | AdminReply::ScriptsChecked(_)
        | AdminReply::Stats(_)
        | AdminReply::Inspected(_)
        | AdminReply::Queues(_)
        | AdminReply::Redriven(_)
        | AdminReply::ConfigSet(_)
        | AdminReply::Config(_)
        | AdminReply::ConfigList(_)
        | AdminReply::RebalancingSet
        | AdminReply::ClusterStatus(_)
        | AdminReply::Explained(_)
        | AdminReply::Throttle(_)
        | AdminReply::ThrottleBucket(_)
        | AdminReply::Bootstrapped(_) => {}
    }
}

fn created(link: &mut Link, entry: &Entry, result: &Result<ApiKeyInfo, CreateApiKeyError>) {
    let id = entry.request_id;
    let (Kind::Keys(KeysCall::Create(secret)), Ok(key)) = (&entry.kind, result) else {
        let error_code = match result {
            Err(error) => errors::create_key(error),
            Ok(_) => ErrorCode::InternalError,
        };
        let outcome = AuditOutcome::Refused(error_code.name());
        link.note_outcome("CreateApiKey", "", outcome);
        let result = CreateApiKeyResult {
            error_code,
            ..CreateApiKeyResult::default()
        };
        return link.outbound.body(id, &result);
    };
    let kind = if key.is_superadmin { "superadmin " } else { "" };
    let object = format!("{kind}{} {}", key.id, key.name);
    link.note_outcome("CreateApiKey", &object, AuditOutcome::Done);
    let key_id = key.id.to_string();
    let result = CreateApiKeyResult {
        error_code: ErrorCode::Ok,
        key_id: &key_id,
        key: secret.reveal(),
        is_superadmin: key.is_superadmin,
    };
    link.outbound.body(id, &result);
}

fn note_change(
    link: &mut Link,
    entry: &Entry,
    action: &str,
    key: Option<&ApiKeyInfo>,
    error_code: ErrorCode,
) {
    let (object, outcome) = match (key, &entry.kind) {
        (Some(key), _) => (format!("{} {}", key.id, key.name), AuditOutcome::Done),
        (None, Kind::Keys(KeysCall::Change(id))) => {
            (id.clone(), AuditOutcome::Refused(error_code.name()))
        }
        (None, _) => (String::new(), AuditOutcome::Refused(error_code.name())),
    };
    link.note_outcome(action, &object, outcome);
}

fn list(link: &mut Link, id: u32, keys: &[ApiKeyInfo]) {
    let ids: Vec<String> = keys.iter().map(|key| key.id.to_string()).collect();
    let keys = keys.iter().zip(&ids).map(|(key, key_id)| keys::ApiKeyInfo {
        key_id,
        name: &key.name,
        created_at_ms: key.created_at.0,
        expires_at_ms: key.expires_at.unwrap_or(Millis(0)).0,
        is_superadmin: key.is_superadmin,
    });
    let result = ListApiKeysResult {
        error_code: ErrorCode::Ok,
        keys: keys.collect(),
    };
    link.outbound.body(id, &result);
}

fn acl(link: &mut Link, id: u32, result: &Result<AclOf, ApiKeyNotFound>) {
    let Ok(acl) = result else {
        let result = GetAclResult {
            error_code: ErrorCode::ApiKeyNotFound,
            ..GetAclResult::default()
        };
        return link.outbound.body(id, &result);
    };
    let permissions = acl.grants.iter().map(|grant| keys::Permission {
        kind: name_of(grant.permission),
        pattern: &grant.pattern,
    });
    let key_id = acl.key.id.to_string();
    let result = GetAclResult {
        error_code: ErrorCode::Ok,
        key_id: &key_id,
        is_superadmin: acl.key.is_superadmin,
        permissions: permissions.collect(),
    };
    link.outbound.body(id, &result);
}
