//! Users are made, changed and deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{encode_gone, encode_permissions, encode_topic_permissions, encode_user};
use super::{
    NewTopicPermissions, NewUser, NewVhostPermissions, PasswordChange, PasswordHash,
    PermissionError, PutUserError, User, UserId, UserNotFound, UserReply, UserRequest, UserTable,
    VhostPermissions,
};
use crate::engine::{Cx, Engine};

/// Longest name of a user, of a tag, and of an exchange, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Tags of a user.
const TAGS_MAX: usize = 16;
/// Longest hash of a password, in bytes.
const HASH_BYTES_MAX: usize = 1024;

impl Engine {
    /// The table of users, if it has changed since it was taken. It may be used once the journal
    /// is durable up to its present end.
    #[must_use]
    pub fn take_users(&mut self) -> Option<Arc<UserTable>> {
        core::mem::take(&mut self.users.is_changed).then(|| Arc::new(self.users.table.clone()))
    }

    pub(crate) fn on_user(&mut self, cx: &mut Cx<'_>, request: UserRequest) -> UserReply {
        match request {
            UserRequest::Put(new) => UserReply::Put(self.put_user(cx, *new)),
            UserRequest::Seed(new) => UserReply::Seeded(self.seed_user(cx, *new)),
            UserRequest::Rehash { user, from, to } => {
                UserReply::Rehashed(self.rehash_password(cx, &user, (&from, to)))
            }
            UserRequest::Delete { name } => UserReply::Deleted(self.delete_user(cx, &name)),
            UserRequest::SetPermissions(new) => {
                UserReply::PermissionsChanged(self.set_permissions(cx, *new))
            }
            UserRequest::ClearPermissions { user, vhost } => {
                UserReply::PermissionsChanged(self.clear_permissions(cx, (&user, &vhost)))
            }
            UserRequest::SetTopicPermissions(new) => {
                UserReply::PermissionsChanged(self.set_topic_permissions(cx, &new))
            }
            UserRequest::ClearTopicPermissions {
                user,
                vhost,
                exchange,
            } => {
                let place = (user.as_str(), vhost.as_str());
                let cleared = self.clear_topic_permissions(cx, place, exchange.as_deref());
                UserReply::PermissionsChanged(cleared)
            }
        }
    }

    /// Makes a user or changes one; true when it is new.
    fn put_user(&mut self, cx: &mut Cx<'_>, new: NewUser) -> Result<bool, PutUserError> {
        check(&new)?;
        let before = self.users.table.find(&new.name).map(Arc::clone);
        if before.is_none() {
            self.check_room_for_user()?;
        }
        let is_new = before.is_none();
        let next = self.users.next_id;
        let mut user = before.map_or_else(
            || User {
                id: UserId(next),
                name: new.name.as_str().into(),
                password: None,
                password_version: next,
                tags: [].into(),
                permissions: BTreeMap::new(),
                topics: BTreeMap::new(),
            },
            |user| User::clone(&user),
        );
        match new.password {
            PasswordChange::Keep => {}
            PasswordChange::Remove => {
                user.password = None;
                user.password_version = next;
            }
            PasswordChange::Set(hash) => {
                user.password = Some(hash);
                user.password_version = next;
            }
        }
        if let Some(tags) = new.tags {
            user.tags = tags.into_iter().map(String::into_boxed_str).collect();
        }
        self.write_user(cx, user);
        Ok(is_new)
    }

    fn write_user(&mut self, cx: &mut Cx<'_>, user: User) {
        encode_user(&mut self.record, cx.now, &user);
        cx.journal.append(&self.record);
        self.users.insert(user);
    }

    fn check_room_for_user(&self) -> Result<(), PutUserError> {
        if self.storage_full {
            return Err(PutUserError::Storage);
        }
        let max = self.config.limits.users_max;
        if self.users.table.len() >= max as usize {
            return Err(PutUserError::TooMany { max });
        }
        Ok(())
    }

    /// The first user is made once, with all permissions in the default virtual host: deleted, it
    /// stays so. False when it was made before, or somebody has its name.
    fn seed_user(&mut self, cx: &mut Cx<'_>, new: NewUser) -> Result<bool, PutUserError> {
        if self.users.table.is_seeded {
            return Ok(false);
        }
        let is_there = self.users.table.find(&new.name).is_some();
        if !is_there {
            let name = new.name.clone();
            self.put_user(cx, new)?;
            let all: Arc<str> = ".*".into();
            let permissions = VhostPermissions {
                configure: Arc::clone(&all),
                write: Arc::clone(&all),
                read: all,
            };
            self.write_permissions(cx, (&name, crate::topology::DEFAULT_VHOST), permissions);
        }
        self.users.encode_seeded(&mut self.record, cx.now);
        cx.journal.append(&self.record);
        Ok(!is_there)
    }

    /// Another hash of the same password takes the place of one, if that is still the user's.
    fn rehash_password(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        (from, to): (&PasswordHash, PasswordHash),
    ) -> bool {
        let fits = (1..=HASH_BYTES_MAX).contains(&to.reveal().len());
        let user = self.users.table.find(name).filter(|_| fits);
        let Some(user) = user.filter(|user| user.password.as_ref() == Some(from)) else {
            return false;
        };
        let mut user = User::clone(user);
        user.password = Some(to);
        self.write_user(cx, user);
        true
    }

    fn delete_user(&mut self, cx: &mut Cx<'_>, name: &str) -> Result<(), UserNotFound> {
        self.users.table.find(name).ok_or(UserNotFound)?;
        encode_gone(&mut self.record, cx.now, name);
        cx.journal.append(&self.record);
        self.users.remove(name);
        Ok(())
    }

    fn set_permissions(
        &mut self,
        cx: &mut Cx<'_>,
        new: NewVhostPermissions,
    ) -> Result<(), PermissionError> {
        let it = &new.permissions;
        let user = self.check_permission(
            (&new.user, &new.vhost),
            &[&it.configure, &it.write, &it.read],
        )?;
        let had = user.permissions.get(new.vhost.as_str());
        let had = had.map_or(0, |it| {
            new.vhost.len() + it.configure.len() + it.write.len() + it.read.len()
        });
        let more = new.vhost.len() + it.configure.len() + it.write.len() + it.read.len();
        self.check_room_for_permission(had, more)?;
        self.write_permissions(cx, (&new.user, &new.vhost), new.permissions);
        Ok(())
    }

    fn write_permissions(
        &mut self,
        cx: &mut Cx<'_>,
        (user, vhost): (&str, &str),
        permissions: VhostPermissions,
    ) {
        encode_permissions(&mut self.record, cx.now, (user, vhost), Some(&permissions));
        cx.journal.append(&self.record);
        self.users.change(user, |user| {
            user.permissions.insert(vhost.into(), permissions);
        });
    }

    /// What is not there is cleared already.
    fn clear_permissions(
        &mut self,
        cx: &mut Cx<'_>,
        (name, vhost): (&str, &str),
    ) -> Result<(), PermissionError> {
        let user = self.check_place(name, vhost)?;
        if user.permissions.contains_key(vhost) {
            encode_permissions(&mut self.record, cx.now, (name, vhost), None);
            cx.journal.append(&self.record);
            self.users.change(name, |user| {
                user.permissions.remove(vhost);
            });
        }
        Ok(())
    }

    fn set_topic_permissions(
        &mut self,
        cx: &mut Cx<'_>,
        new: &NewTopicPermissions,
    ) -> Result<(), PermissionError> {
        let it = &new.permissions;
        let user = self.check_permission((&new.user, &new.vhost), &[&it.write, &it.read])?;
        let len = new.exchange.len();
        if len > NAME_BYTES_MAX {
            let problem =
                format!("an exchange's name has at most {NAME_BYTES_MAX} bytes, this one {len}");
            return Err(PermissionError::Invalid { problem });
        }
        let place = (Arc::from(new.vhost.as_str()), Arc::from(&*new.exchange));
        let names = new.vhost.len() + len;
        let had = user.topics.get(&place);
        let max = self.config.limits.topic_permissions_max;
        if had.is_none() && user.topics.len() >= max {
            let problem = format!("a user has topic permissions for at most {max} exchanges");
            return Err(PermissionError::TooMany { problem });
        }
        let had = had.map_or(0, |it| names + it.write.len() + it.read.len());
        self.check_room_for_permission(had, names + it.write.len() + it.read.len())?;
        let texts = (&*new.user, &*new.vhost, &*new.exchange);
        encode_topic_permissions(&mut self.record, cx.now, texts, Some(it));
        cx.journal.append(&self.record);
        self.users.change(&new.user, |user| {
            user.topics.insert(place, it.clone());
        });
        Ok(())
    }

    /// Of one exchange, or of all of the virtual host. What is not there is cleared already.
    fn clear_topic_permissions(
        &mut self,
        cx: &mut Cx<'_>,
        (name, vhost): (&str, &str),
        exchange: Option<&str>,
    ) -> Result<(), PermissionError> {
        let user = self.check_place(name, vhost)?;
        let is_meant = |of: &str, it: &str| of == vhost && exchange.is_none_or(|name| name == it);
        let places = user.topics.keys();
        let places: Vec<_> = places
            .filter(|(of, it)| is_meant(of, it))
            .cloned()
            .collect();
        for place in places {
            encode_topic_permissions(&mut self.record, cx.now, (name, vhost, &place.1), None);
            cx.journal.append(&self.record);
            self.users.change(name, |user| {
                user.topics.remove(&place);
            });
        }
        Ok(())
    }

    /// User and virtual host are there.
    fn check_place(&self, user: &str, vhost: &str) -> Result<&Arc<User>, PermissionError> {
        let user = self.users.table.find(user);
        let user = user.ok_or(PermissionError::UserNotFound)?;
        let found = self.topology.find_vhost(vhost);
        found.ok_or(PermissionError::VhostNotFound)?;
        Ok(user)
    }

    fn check_permission(
        &self,
        (user, vhost): (&str, &str),
        patterns: &[&str],
    ) -> Result<&Arc<User>, PermissionError> {
        let user = self.check_place(user, vhost)?;
        if self.storage_full {
            return Err(PermissionError::Storage);
        }
        let max = self.config.limits.regex_bytes_max;
        let long = patterns.iter().find(|it| it.len() > max);
        if let Some(long) = long {
            let len = long.len();
            let problem = format!("a regular expression has at most {max} bytes, this one {len}");
            return Err(PermissionError::Invalid { problem });
        }
        Ok(user)
    }

    fn check_room_for_permission(&self, had: usize, more: usize) -> Result<(), PermissionError> {
        let max = self.config.limits.regex_total_bytes_max;
        if self.users.text_bytes - had + more > max {
            let problem = format!("the permissions of all users have at most {max} bytes");
            return Err(PermissionError::TooMany { problem });
        }
        Ok(())
    }
}

fn check(new: &NewUser) -> Result<(), PutUserError> {
    let invalid = |problem| Err(PutUserError::Invalid { problem });
    if let Some(problem) = name_problem("a user's name", &new.name) {
        return invalid(problem);
    }
    let tags = new.tags.as_deref().unwrap_or_default();
    if tags.len() > TAGS_MAX {
        let count = tags.len();
        return invalid(format!(
            "a user has at most {TAGS_MAX} tags, this one {count}"
        ));
    }
    let problems = tags.iter().map(|tag| name_problem("a tag", tag));
    if let Some(problem) = problems.flatten().next() {
        return invalid(problem);
    }
    if let PasswordChange::Set(hash) = &new.password {
        let len = hash.reveal().len();
        if len == 0 || len > HASH_BYTES_MAX {
            return invalid(format!(
                "the hash of a password has 1 to {HASH_BYTES_MAX} bytes, not {len}"
            ));
        }
    }
    Ok(())
}

fn name_problem(what: &str, name: &str) -> Option<String> {
    let len = name.len();
    if len == 0 || len > NAME_BYTES_MAX {
        return Some(format!("{what} has 1 to {NAME_BYTES_MAX} bytes, not {len}"));
    }
    let bad = name.chars().find(|c| c.is_control())?;
    Some(format!(
        "{what} has no control characters, this one has {bad:?}"
    ))
}
