//! Records of users (docs/formats/records.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PasswordHash, TopicPermissions, User, UserId, Users, VhostPermissions};
use crate::record::{Kind, Reader, begin, put_short};
use crate::{Millis, QueueId, ReplayError};

/// What a `User` record says.
mod what {
    pub(super) const USER: u8 = 1;
    pub(super) const GONE: u8 = 2;
    pub(super) const COUNTERS: u8 = 3;
}

/// What a `Permission` record says.
mod of {
    pub(super) const VHOST: u8 = 1;
    pub(super) const VHOST_CLEARED: u8 = 2;
    pub(super) const TOPIC: u8 = 3;
    pub(super) const TOPIC_CLEARED: u8 = 4;
}

fn begin_user(out: &mut Vec<u8>, now: Millis, what: u8) {
    begin(out, Kind::User, QueueId(0), now);
    out.push(what);
}

fn put_texts(out: &mut Vec<u8>, texts: &[&str]) {
    for text in texts {
        put_short(out, text.as_bytes());
    }
}

/// A user, without its permissions.
pub(super) fn encode_user(out: &mut Vec<u8>, now: Millis, user: &User) {
    begin_user(out, now, what::USER);
    out.extend_from_slice(&user.id.0.to_be_bytes());
    out.extend_from_slice(&user.password_version.to_be_bytes());
    let password = user.password.as_ref().map_or("", PasswordHash::reveal);
    put_texts(out, &[&user.name, password]);
    out.push(u8::try_from(user.tags.len()).unwrap_or(u8::MAX));
    for tag in user.tags.iter().take(usize::from(u8::MAX)) {
        put_short(out, tag.as_bytes());
    }
}

/// A user is gone.
pub(super) fn encode_gone(out: &mut Vec<u8>, now: Millis, name: &str) {
    begin_user(out, now, what::GONE);
    put_short(out, name.as_bytes());
}

fn begin_permission(out: &mut Vec<u8>, now: Millis, of: u8) {
    begin(out, Kind::Permission, QueueId(0), now);
    out.push(of);
}

/// What a user may do in a virtual host; `None`: nothing any more.
pub(super) fn encode_permissions(
    out: &mut Vec<u8>,
    now: Millis,
    (user, vhost): (&str, &str),
    permissions: Option<&VhostPermissions>,
) {
    let Some(it) = permissions else {
        begin_permission(out, now, of::VHOST_CLEARED);
        return put_texts(out, &[user, vhost]);
    };
    begin_permission(out, now, of::VHOST);
    put_texts(out, &[user, vhost, &it.configure, &it.write, &it.read]);
}

/// Which routing keys a user may use with an exchange of a virtual host; `None`: any again.
pub(super) fn encode_topic_permissions(
    out: &mut Vec<u8>,
    now: Millis,
    (user, vhost, exchange): (&str, &str, &str),
    permissions: Option<&TopicPermissions>,
) {
    let Some(it) = permissions else {
        begin_permission(out, now, of::TOPIC_CLEARED);
        return put_texts(out, &[user, vhost, exchange]);
    };
    begin_permission(out, now, of::TOPIC);
    put_texts(out, &[user, vhost, exchange, &it.write, &it.read]);
}

impl Users {
    /// What the records of the users that exist do not say.
    fn encode_counters(&self, out: &mut Vec<u8>, now: Millis) {
        begin_user(out, now, what::COUNTERS);
        out.extend_from_slice(&self.next_id.to_be_bytes());
        out.push(u8::from(self.table.is_seeded));
    }

    /// Appends the record that the first user was made, whatever becomes of it.
    pub(super) fn encode_seeded(&mut self, out: &mut Vec<u8>, now: Millis) {
        self.table.is_seeded = true;
        self.is_changed = true;
        self.encode_counters(out, now);
    }

    /// The records of the first user after `after`, the counters before all; returns its name when
    /// there is one.
    pub(crate) fn capture(
        &self,
        now: Millis,
        after: Option<&str>,
        out: &mut Vec<Vec<u8>>,
    ) -> Option<Arc<str>> {
        let mut add = |encode: &dyn Fn(&mut Vec<u8>)| {
            let mut record = Vec::new();
            encode(&mut record);
            out.push(record);
        };
        if after.is_none() {
            add(&|record| self.encode_counters(record, now));
        }
        let user = self.table.after(after)?;
        add(&|record| encode_user(record, now, user));
        for (vhost, it) in &user.permissions {
            add(&|record| encode_permissions(record, now, (&user.name, vhost), Some(it)));
        }
        for ((vhost, exchange), it) in &user.topics {
            let place = (&*user.name, &**vhost, &**exchange);
            add(&|record| encode_topic_permissions(record, now, place, Some(it)));
        }
        Some(Arc::clone(&user.name))
    }

    /// Applies a `User` record.
    pub(crate) fn apply_user(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        match reader.u8()? {
            what::USER => {
                let user = read_user(reader)?;
                self.insert(user);
            }
            what::GONE => {
                let name = reader.short()?;
                self.remove(name);
            }
            what::COUNTERS => {
                self.next_id = self.next_id.max(reader.u64()?);
                self.table.is_seeded |= reader.u8()? != 0;
                self.is_changed = true;
            }
            n => return Err(reader.problem(&format!("a User record of what is unknown ({n})"))),
        }
        Ok(())
    }

    /// Applies a `Permission` record. It may be of a user whose end follows.
    pub(crate) fn apply_permission(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        let kind = reader.u8()?;
        let (user, vhost) = (reader.short()?, reader.short()?);
        match kind {
            of::VHOST => {
                let permissions = VhostPermissions {
                    configure: reader.short()?.into(),
                    write: reader.short()?.into(),
                    read: reader.short()?.into(),
                };
                self.change(user, |user| {
                    user.permissions.insert(vhost.into(), permissions);
                });
            }
            of::VHOST_CLEARED => self.change(user, |user| {
                user.permissions.remove(vhost);
            }),
            of::TOPIC => {
                let exchange = reader.short()?;
                let permissions = TopicPermissions {
                    write: reader.short()?.into(),
                    read: reader.short()?.into(),
                };
                self.change(user, |user| {
                    user.topics
                        .insert((vhost.into(), exchange.into()), permissions);
                });
            }
            of::TOPIC_CLEARED => {
                let place = (Arc::from(vhost), Arc::from(reader.short()?));
                self.change(user, |user| {
                    user.topics.remove(&place);
                });
            }
            n => return Err(reader.problem(&format!("permissions of what is unknown ({n})"))),
        }
        Ok(())
    }
}

fn read_user(reader: &mut Reader<'_>) -> Result<User, ReplayError> {
    let id = UserId(reader.u64()?);
    let password_version = reader.u64()?;
    let name = reader.short()?.into();
    let password = Some(reader.short()?).filter(|text| !text.is_empty());
    let count = reader.u8()?;
    let mut tags = Vec::new();
    for _ in 0..count {
        tags.push(reader.short()?.into());
    }
    Ok(User {
        id,
        name,
        password: password.map(PasswordHash::new),
        password_version,
        tags: tags.into(),
        permissions: BTreeMap::new(),
        topics: BTreeMap::new(),
    })
}
