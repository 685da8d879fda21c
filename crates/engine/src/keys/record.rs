//! Records of keys (docs/formats/records.md).

use super::{ApiKey, ApiKeyId, Grant, KeyHash, Keys, Permission};
use crate::record::{Kind, Reader, begin, put_len, put_short};
use crate::{Millis, QueueId, ReplayError};

/// What an `ApiKey` record says.
mod what {
    pub(super) const KEY: u8 = 1;
    pub(super) const REVOKED: u8 = 2;
    pub(super) const COUNTERS: u8 = 3;
}

/// Bits of a key.
mod flag {
    pub(super) const SUPERADMIN: u8 = 1;
    pub(super) const BOOTSTRAP: u8 = 2;
}

/// Most permissions in one record that are read.
const GRANTS_MAX: usize = 1 << 20;

fn begin_key(out: &mut Vec<u8>, now: Millis, what: u8) {
    begin(out, Kind::ApiKey, QueueId(0), now);
    out.push(what);
}

/// A key, without its permissions.
pub(crate) fn encode_key(out: &mut Vec<u8>, now: Millis, key: &ApiKey) {
    begin_key(out, now, what::KEY);
    out.extend_from_slice(&key.id.0.to_be_bytes());
    put_short(out, key.name.as_bytes());
    out.extend_from_slice(&key.created_at.0.to_be_bytes());
    let expires_at = key.expires_at.unwrap_or(Millis(0));
    out.extend_from_slice(&expires_at.0.to_be_bytes());
    let flags = [
        (key.is_superadmin, flag::SUPERADMIN),
        (key.is_bootstrap, flag::BOOTSTRAP),
    ];
    out.push(
        flags
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, flag)| flag)
            .sum(),
    );
    out.extend_from_slice(key.hash.bytes());
}

/// A key is gone.
pub(super) fn encode_revoked(out: &mut Vec<u8>, now: Millis, id: ApiKeyId) {
    begin_key(out, now, what::REVOKED);
    out.extend_from_slice(&id.0.to_be_bytes());
}

/// A key's permissions.
pub(crate) fn encode_acl(out: &mut Vec<u8>, now: Millis, id: ApiKeyId, grants: &[Grant]) {
    begin(out, Kind::Acl, QueueId(0), now);
    out.extend_from_slice(&id.0.to_be_bytes());
    put_len(out, grants.len());
    for grant in grants {
        out.push(grant.permission as u8);
        put_short(out, grant.pattern.as_bytes());
    }
}

impl Keys {
    /// What the records of the keys that exist do not say.
    pub(crate) fn encode_counters(&self, out: &mut Vec<u8>, now: Millis) {
        begin_key(out, now, what::COUNTERS);
        out.extend_from_slice(&self.next_id.to_be_bytes());
        out.push(u8::from(self.table.bootstrap.is_some()));
        if let Some(hash) = &self.table.bootstrap {
            out.extend_from_slice(hash.bytes());
        }
    }

    /// Applies an `ApiKey` record.
    pub(crate) fn apply_key(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        match reader.u8()? {
            what::KEY => {
                let key = read_key(reader)?;
                self.insert(key);
            }
            what::REVOKED => {
                let id = ApiKeyId(reader.u64()?);
                // Keys of a log without its beginning may be unknown.
                self.remove(id);
                self.next_id = self.next_id.max(id.0.saturating_add(1));
            }
            what::COUNTERS => {
                self.next_id = self.next_id.max(reader.u64()?);
                let has_bootstrap = reader.u8()? != 0;
                self.table.bootstrap = if has_bootstrap {
                    Some(read_hash(reader)?)
                } else {
                    None
                };
            }
            n => return Err(reader.problem(&format!("an ApiKey record of what is unknown ({n})"))),
        }
        Ok(())
    }

    /// Applies an `Acl` record. It may be of a key whose revocation follows.
    pub(crate) fn apply_acl(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        let id = ApiKeyId(reader.u64()?);
        let count = reader.u32()? as usize;
        if count > GRANTS_MAX {
            return Err(reader.problem(&format!("{count} permissions in one record")));
        }
        let mut grants = Vec::new();
        for _ in 0..count {
            let byte = reader.u8()?;
            let permission = Permission::from_byte(byte)
                .ok_or_else(|| reader.problem(&format!("permission {byte} is unknown")))?;
            let pattern = reader.short()?.into();
            grants.push(Grant {
                permission,
                pattern,
            });
        }
        self.set_grants(id, grants);
        Ok(())
    }
}

fn read_key(reader: &mut Reader<'_>) -> Result<ApiKey, ReplayError> {
    let id = ApiKeyId(reader.u64()?);
    let name = reader.short()?.into();
    let created_at = reader.millis()?;
    let expires_at = Some(reader.millis()?).filter(|at| at.0 > 0);
    let flags = reader.u8()?;
    if flags & !(flag::SUPERADMIN | flag::BOOTSTRAP) != 0 {
        return Err(reader.problem(&format!("a key with unknown flags ({flags})")));
    }
    Ok(ApiKey {
        id,
        name,
        created_at,
        expires_at,
        is_superadmin: flags & flag::SUPERADMIN != 0,
        is_bootstrap: flags & flag::BOOTSTRAP != 0,
        grants: [].into(),
        hash: read_hash(reader)?,
    })
}

fn read_hash(reader: &mut Reader<'_>) -> Result<KeyHash, ReplayError> {
    let (high, low) = (reader.u128()?, reader.u128()?);
    let mut bytes = [0; 32];
    let (first, second) = bytes.split_at_mut(16);
    first.copy_from_slice(&high.to_be_bytes());
    second.copy_from_slice(&low.to_be_bytes());
    Ok(KeyHash::from_bytes(bytes))
}
