//! Keys are made, revoked and given permissions.

use std::sync::Arc;

use super::record::{encode_acl, encode_key, encode_revoked};
use super::{
    AclOf, ApiKey, ApiKeyId, ApiKeyInfo, ApiKeyNotFound, Bootstrapped, CreateApiKeyError, Grant,
    KeyHash, KeyTable, NewApiKey, SetAclError,
};
use crate::engine::{Cx, Engine};

/// Longest name of a key in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Name of the key that is configured.
const BOOTSTRAP_NAME: &str = "bootstrap";

impl Engine {
    /// The table of keys, if it has changed since it was taken. It may be used once the journal is
    /// durable up to its present end.
    #[must_use]
    pub fn take_keys(&mut self) -> Option<Arc<KeyTable>> {
        core::mem::take(&mut self.keys.is_changed).then(|| Arc::new(self.keys.table.clone()))
    }

    pub(crate) fn create_key(
        &mut self,
        cx: &mut Cx<'_>,
        new: &NewApiKey,
    ) -> Result<ApiKeyInfo, CreateApiKeyError> {
        check_name(&new.name)?;
        self.check_room_for_key()?;
        self.check_secret(&new.hash)?;
        Ok(self.add_key(cx, new, Origin::Asked))
    }

    pub(crate) fn list_keys(&self) -> Vec<ApiKeyInfo> {
        let keys = self.keys.table.iter();
        keys.map(|key| ApiKeyInfo::from(&**key)).collect()
    }

    fn check_room_for_key(&self) -> Result<(), CreateApiKeyError> {
        if self.storage_full {
            return Err(CreateApiKeyError::Storage);
        }
        let max = self.config.limits.api_keys_max;
        if self.keys.table.len() >= max as usize {
            return Err(CreateApiKeyError::TooMany { max });
        }
        Ok(())
    }

    fn check_secret(&self, hash: &KeyHash) -> Result<(), CreateApiKeyError> {
        if self.keys.table.has_hash(hash) {
            return Err(CreateApiKeyError::SecretInUse);
        }
        Ok(())
    }

    fn add_key(&mut self, cx: &mut Cx<'_>, new: &NewApiKey, origin: Origin) -> ApiKeyInfo {
        let key = ApiKey {
            id: ApiKeyId(self.keys.next_id),
            name: new.name.as_str().into(),
            created_at: cx.now,
            // 0 stands for never in its record; nothing is before 1.
            expires_at: new.expires_at.map(|at| at.max(crate::Millis(1))),
            is_superadmin: new.is_superadmin,
            is_bootstrap: origin == Origin::Configured,
            grants: [].into(),
            hash: new.hash,
        };
        encode_key(&mut self.record, cx.now, &key);
        cx.journal.append(&self.record);
        let info = ApiKeyInfo::from(&key);
        self.keys.insert(key);
        info
    }

    /// The configured key comes once: when its secret is new. Revoked, it stays revoked. Another
    /// secret takes the place of the one before.
    pub(crate) fn bootstrap(
        &mut self,
        cx: &mut Cx<'_>,
        hash: KeyHash,
    ) -> Result<Bootstrapped, CreateApiKeyError> {
        let was_before = self
            .keys
            .table
            .bootstrap
            .is_some_and(|last| last.is_same(&hash));
        if was_before {
            let is_revoked = !self.keys.table.has_hash(&hash);
            return Ok(Bootstrapped::Known { is_revoked });
        }
        let earlier = self.keys.table.iter().find(|key| key.is_bootstrap);
        let earlier = earlier.map(|key| key.id);
        if earlier.is_none() {
            self.check_room_for_key()?;
        }
        self.check_secret(&hash)?;
        let new = NewApiKey {
            name: BOOTSTRAP_NAME.to_owned(),
            expires_at: None,
            is_superadmin: true,
            hash,
        };
        let key = self.add_key(cx, &new, Origin::Configured);
        if let Some(id) = earlier {
            self.remove_key(cx, id);
        }
        Ok(Bootstrapped::Made {
            key,
            replaced: earlier,
        })
    }

    pub(crate) fn revoke_key(
        &mut self,
        cx: &mut Cx<'_>,
        id: &str,
    ) -> Result<ApiKeyInfo, ApiKeyNotFound> {
        let key = self.key_of(id).ok_or(ApiKeyNotFound)?;
        let info = ApiKeyInfo::from(&**key);
        self.remove_key(cx, info.id);
        Ok(info)
    }

    fn remove_key(&mut self, cx: &mut Cx<'_>, id: ApiKeyId) {
        encode_revoked(&mut self.record, cx.now, id);
        cx.journal.append(&self.record);
        self.keys.remove(id);
    }

    pub(crate) fn set_acl(
        &mut self,
        cx: &mut Cx<'_>,
        id: &str,
        grants: Vec<Grant>,
    ) -> Result<ApiKeyInfo, SetAclError> {
        let key = self.key_of(id).ok_or(SetAclError::NotFound)?;
        let (info, had) = (ApiKeyInfo::from(&**key), key.pattern_bytes());
        let limits = &self.config.limits;
        let max = limits.permissions_max;
        if grants.len() > max {
            return Err(SetAclError::TooMany { max });
        }
        let max = limits.pattern_bytes_max;
        let lengths = grants.iter().map(|grant| grant.pattern.len());
        if let Some(len) = lengths.clone().find(|len| *len == 0 || *len > max) {
            return Err(SetAclError::BadPattern { len, max });
        }
        let max = limits.pattern_total_bytes_max;
        if self.keys.pattern_bytes - had + lengths.sum::<usize>() > max {
            return Err(SetAclError::TooManyBytes { max });
        }
        encode_acl(&mut self.record, cx.now, info.id, &grants);
        cx.journal.append(&self.record);
        self.keys.set_grants(info.id, grants);
        Ok(info)
    }

    pub(crate) fn acl(&self, id: &str) -> Result<AclOf, ApiKeyNotFound> {
        let key = self.key_of(id).ok_or(ApiKeyNotFound)?;
        Ok(AclOf {
            key: ApiKeyInfo::from(&**key),
            grants: Arc::clone(&key.grants),
        })
    }

    fn key_of(&self, id: &str) -> Option<&Arc<ApiKey>> {
        self.keys.table.find(ApiKeyId::parse(id)?)
    }
}

/// Where a key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Asked,
    Configured,
}

fn check_name(name: &str) -> Result<(), CreateApiKeyError> {
    let len = name.len();
    let bad = name.chars().find(|c| c.is_control());
    let problem = if len > NAME_BYTES_MAX {
        format!("a key's name has at most {NAME_BYTES_MAX} bytes, this one has {len}")
    } else if let Some(bad) = bad {
        format!("a key's name has no control characters, this one has {bad:?}")
    } else {
        return Ok(());
    };
    Err(CreateApiKeyError::BadName { problem })
}
