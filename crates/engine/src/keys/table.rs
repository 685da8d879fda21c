//! The table of keys as of one version.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::RandomState;

use super::{CredentialError, Grant, KeyHash, Permission};
use crate::Millis;

/// Longest secret that is looked at: a longer one is nobody's.
const SECRET_BYTES_MAX: usize = 4096;

/// A key's identity; never reused. Operators see `k7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKeyId(pub u64);

impl ApiKeyId {
    /// Reads what [`fmt::Display`] writes; `None` when it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('k')?;
        let is_plain = !digits.starts_with(['0', '+']);
        let id = digits.parse().ok().filter(|_| is_plain)?;
        Some(Self(id))
    }
}

impl fmt::Display for ApiKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{}", self.0)
    }
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its identity.
    pub id: ApiKeyId,
    /// A name for people.
    pub name: Arc<str>,
    /// When it was made.
    pub created_at: Millis,
    /// From then on it is no good; `None` = never.
    pub expires_at: Option<Millis>,
    /// It may do everything.
    pub is_superadmin: bool,
    /// It was configured as the first key.
    pub is_bootstrap: bool,
    /// What it may do.
    pub grants: Arc<[Grant]>,
    pub(super) hash: KeyHash,
}

impl ApiKey {
    /// Whether it is no good any more.
    #[must_use]
    pub fn is_expired(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether it may do this with the queue of this name.
    #[must_use]
    pub fn may(&self, permission: Permission, queue: &str) -> bool {
        let covers = |grant: &Grant| grant.permission == permission && grant.covers(queue);
        self.is_superadmin || self.grants.iter().any(covers)
    }

    /// Whether it may do anything with the queue of this name.
    #[must_use]
    pub fn may_touch(&self, queue: &str) -> bool {
        self.is_superadmin || self.grants.iter().any(|grant| grant.covers(queue))
    }

    /// Whether it may do what concerns the whole broker: `admin` on `*`.
    #[must_use]
    pub fn may_administer_all(&self) -> bool {
        let is_all =
            |grant: &Grant| grant.permission == Permission::Admin && grant.covers_everything();
        self.is_superadmin || self.grants.iter().any(is_all)
    }

    pub(super) fn pattern_bytes(&self) -> usize {
        self.grants.iter().map(|grant| grant.pattern.len()).sum()
    }
}

/// All keys as of one version. Cheap to share; never changes.
#[derive(Clone, Debug)]
pub struct KeyTable {
    by_id: BTreeMap<ApiKeyId, Arc<ApiKey>>,
    /// By a tag of the hash that nobody outside can compute, so that the time of a search tells
    /// nothing of the hashes.
    by_tag: BTreeMap<(u64, ApiKeyId), Arc<ApiKey>>,
    hasher: RandomState,
    /// Of the bootstrap key that was made last, whether it still exists or not.
    pub(super) bootstrap: Option<KeyHash>,
}

impl Default for KeyTable {
    /// A table without keys: no secret is any good.
    fn default() -> Self {
        Self::new(RandomState::with_seeds(0, 0, 0, 0))
    }
}

impl KeyTable {
    pub(super) const fn new(hasher: RandomState) -> Self {
        Self {
            by_id: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            hasher,
            bootstrap: None,
        }
    }

    /// The key that a secret belongs to.
    ///
    /// # Errors
    /// `CredentialError` when it belongs to none that is good at `now`.
    pub fn authenticate(
        &self,
        secret: Option<&[u8]>,
        now: Millis,
    ) -> Result<&Arc<ApiKey>, CredentialError> {
        let secret = secret.filter(|secret| !secret.is_empty());
        let secret = secret.ok_or(CredentialError::Missing)?;
        if secret.len() > SECRET_BYTES_MAX {
            return Err(CredentialError::Unknown);
        }
        let hash = KeyHash::of(secret);
        let tag = self.hasher.hash_one(hash.bytes());
        let found = self
            .by_tag
            .range((tag, ApiKeyId(0))..=(tag, ApiKeyId(u64::MAX)))
            .map(|(_, key)| key)
            .find(|key| key.hash.is_same(&hash))
            .ok_or(CredentialError::Unknown)?;
        if found.is_expired(now) {
            return Err(CredentialError::Expired { key: found.id });
        }
        Ok(found)
    }

    /// The key of an id.
    #[must_use]
    pub fn find(&self, id: ApiKeyId) -> Option<&Arc<ApiKey>> {
        self.by_id.get(&id)
    }

    /// All keys, in the order in which they were made.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<ApiKey>> {
        self.by_id.values()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether a bootstrap key was ever made.
    #[must_use]
    pub const fn was_bootstrapped(&self) -> bool {
        self.bootstrap.is_some()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn has_hash(&self, hash: &KeyHash) -> bool {
        self.iter().any(|key| key.hash.is_same(hash))
    }

    pub(super) fn after(&self, id: ApiKeyId) -> Option<&Arc<ApiKey>> {
        let from = ApiKeyId(id.0.saturating_add(1));
        self.by_id.range(from..).next().map(|(_, key)| key)
    }

    pub(super) fn insert(&mut self, key: Arc<ApiKey>) {
        let tag = self.hasher.hash_one(key.hash.bytes());
        self.by_tag.insert((tag, key.id), Arc::clone(&key));
        self.by_id.insert(key.id, key);
    }

    pub(super) fn remove(&mut self, id: ApiKeyId) -> Option<Arc<ApiKey>> {
        let key = self.by_id.remove(&id)?;
        let tag = self.hasher.hash_one(key.hash.bytes());
        self.by_tag.remove(&(tag, id));
        Some(key)
    }

    pub(super) fn assert_invariants(&self) {
        assert_eq!(self.by_id.len(), self.by_tag.len(), "keys in both indices");
        for ((_, id), key) in &self.by_tag {
            let same = self
                .by_id
                .get(id)
                .is_some_and(|other| Arc::ptr_eq(other, key));
            assert!(same, "key {id} is another one in the other index");
        }
    }
}
