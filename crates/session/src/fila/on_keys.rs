//! Requests about API keys and their permissions.

use tanda_engine::{AdminRequest, Grant, Millis, NewApiKey, Permission};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::keys::{
    CreateApiKey, GetAcl, ListApiKeys, PERMISSION_ADMIN, PERMISSION_CONSUME, PERMISSION_PRODUCE,
    RevokeApiKey, SetAcl, SetAclResult,
};

use super::link::{Call, Link};
use super::slots::Kind;
use crate::secret::Secret;

/// What a reply about keys does not say.
#[derive(Debug)]
pub(super) enum KeysCall {
    /// `CreateApiKey`: the secret, which only its answer shows.
    Create(Secret),
    /// `RevokeApiKey` and `SetAcl`: the key's id as it was given, for the log.
    Change(String),
}

pub(super) fn on_create_key(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<CreateApiKey<'_>>(call) else {
        return;
    };
    let drawn = link.config.entropy.as_ref().and_then(|from| from.draw());
    let Some(bits) = drawn else {
        let text = "the system gives no random bytes, without which there is no secret";
        return link
            .outbound
            .error(call.request_id, ErrorCode::InternalError, text, &[]);
    };
    let secret = Secret::of(bits);
    let new = NewApiKey {
        name: frame.name.to_owned(),
        expires_at: Some(Millis(frame.expires_at_ms)).filter(|at| at.0 > 0),
        is_superadmin: frame.is_superadmin,
        hash: secret.hash(),
    };
    link.ask(
        call.request_id,
        Kind::Keys(KeysCall::Create(secret)),
        AdminRequest::CreateApiKey(Box::new(new)),
    );
}

pub(super) fn on_revoke_key(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<RevokeApiKey<'_>>(call) else {
        return;
    };
    let id = frame.key_id.to_owned();
    let kind = Kind::Keys(KeysCall::Change(id.clone()));
    link.ask(call.request_id, kind, AdminRequest::RevokeApiKey { id });
}

pub(super) fn on_list_keys(link: &mut Link, call: &Call) {
    if link.decode::<ListApiKeys>(call).is_some() {
        link.ask(call.request_id, Kind::Admin, AdminRequest::ListApiKeys);
    }
}

pub(super) fn on_set_acl(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<SetAcl<'_>>(call) else {
        return;
    };
    let grants = frame.permissions.iter().map(|permission| {
        Some(Grant {
            permission: permission_of(permission.kind)?,
            pattern: permission.pattern.into(),
        })
    });
    let Some(grants) = grants.collect() else {
        let error_code = ErrorCode::InvalidConfigValue;
        return link
            .outbound
            .body(call.request_id, &SetAclResult { error_code });
    };
    let id = frame.key_id.to_owned();
    let kind = Kind::Keys(KeysCall::Change(id.clone()));
    link.ask(call.request_id, kind, AdminRequest::SetAcl { id, grants });
}

pub(super) fn on_get_acl(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<GetAcl<'_>>(call) else {
        return;
    };
    let id = frame.key_id.to_owned();
    link.ask(call.request_id, Kind::Admin, AdminRequest::GetAcl { id });
}

fn permission_of(kind: &str) -> Option<Permission> {
    let is = |permission: &Permission| name_of(*permission) == kind;
    Permission::ALL.into_iter().find(is)
}

/// A permission as the protocol spells it.
pub(super) const fn name_of(permission: Permission) -> &'static str {
    match permission {
        Permission::Produce => PERMISSION_PRODUCE,
        Permission::Consume => PERMISSION_CONSUME,
        Permission::Admin => PERMISSION_ADMIN,
    }
}
