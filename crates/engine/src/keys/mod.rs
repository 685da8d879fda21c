//! API keys: who may do what.
//!
//! Owns the catalog of keys with their permissions: its records, its limits, and the immutable
//! table of it ([`KeyTable`]) on which sessions decide without asking. It refuses to know secrets:
//! they are made and shown outside, here are only their hashes.
//!
//! ```text
//!  AdminRequest ──► on_keys ──► records (ApiKey, Acl) ──► Journal
//!                      │
//!                      └──► KeyTable ──► (once it is on disk) sessions, HTTP door
//! ```

mod caller;
mod glob;
mod grant;
mod hash;
mod on_keys;
mod record;
mod request;
mod table;

use std::sync::Arc;

use ahash::RandomState;

pub(crate) use glob::matches as glob_matches;
pub(crate) use record::{encode_acl, encode_key};

pub use caller::{Caller, CredentialError};
pub use grant::{Grant, Permission};
pub use hash::KeyHash;
pub use request::{
    AclOf, ApiKeyInfo, ApiKeyNotFound, Bootstrapped, CreateApiKeyError, NewApiKey, SetAclError,
};
pub use table::{ApiKey, ApiKeyId, KeyTable};

/// The catalog of keys.
#[derive(Debug)]
pub(crate) struct Keys {
    table: KeyTable,
    /// The next key's id: ids are never used twice.
    next_id: u64,
    /// The table has changed since it was taken.
    is_changed: bool,
    /// Bytes of all patterns.
    pattern_bytes: usize,
}

impl Keys {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            table: KeyTable::new(hasher.clone()),
            next_id: 1,
            is_changed: true,
            pattern_bytes: 0,
        }
    }

    /// Replicated: a key exists from now on, without permissions.
    fn insert(&mut self, key: ApiKey) {
        self.remove(key.id);
        self.next_id = self.next_id.max(key.id.0.saturating_add(1));
        if key.is_bootstrap {
            self.table.bootstrap = Some(key.hash);
        }
        self.table.insert(Arc::new(key));
        self.is_changed = true;
    }

    /// Replicated: a key is gone. False when there is none of this id.
    fn remove(&mut self, id: ApiKeyId) -> bool {
        let Some(key) = self.table.remove(id) else {
            return false;
        };
        self.pattern_bytes -= key.pattern_bytes();
        self.is_changed = true;
        true
    }

    /// Replicated: what a key may do from now on. False when there is none of this id.
    fn set_grants(&mut self, id: ApiKeyId, grants: Vec<Grant>) -> bool {
        let Some(key) = self.table.find(id) else {
            return false;
        };
        let mut changed = ApiKey::clone(key);
        self.pattern_bytes -= changed.pattern_bytes();
        changed.grants = grants.into();
        self.pattern_bytes += changed.pattern_bytes();
        self.table.insert(Arc::new(changed));
        self.is_changed = true;
        true
    }

    /// Rough bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        const KEY: usize = 512;
        self.table.len() * KEY + self.pattern_bytes * 2
    }

    /// The first key after this one, for a capture.
    pub(crate) fn after(&self, id: ApiKeyId) -> Option<&Arc<ApiKey>> {
        self.table.after(id)
    }

    /// Panics when the state contradicts itself.
    pub(crate) fn assert_invariants(&self) {
        self.table.assert_invariants();
        let keys = self.table.iter();
        let bytes: usize = keys.map(|key| key.pattern_bytes()).sum();
        assert_eq!(bytes, self.pattern_bytes, "bytes of patterns");
        let last = self.table.iter().next_back();
        let highest = last.map_or(0, |key| key.id.0);
        let next = self.next_id;
        assert!(highest < next, "key {highest} is there, {next} is next");
    }
}

#[cfg(test)]
mod tests;
