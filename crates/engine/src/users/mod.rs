//! Users: who may log in with a password or a certificate, and what they may do in which virtual
//! host.
//!
//! Owns the catalog of users with their permissions: its records, its limits, and the immutable
//! table of it ([`UserTable`]) on which doors decide without asking. It refuses to know passwords
//! and regular expressions: hashes and patterns are made, checked and applied outside, here they
//! are texts.
//!
//! ```text
//!  AdminRequest ──► on_users ──► records (User, Permission) ──► Journal
//!                       │
//!                       └──► UserTable ──► (once it is on disk) doors
//! ```

mod on_users;
mod record;
mod request;
mod table;

use std::sync::Arc;

pub use request::{
    NewTopicPermissions, NewUser, NewVhostPermissions, PasswordChange, PermissionError,
    PutUserError, UserNotFound, UserReply, UserRequest,
};
pub use table::{PasswordHash, TopicPermissions, User, UserId, UserTable, VhostPermissions};

/// The catalog of users.
#[derive(Debug)]
pub(crate) struct Users {
    table: UserTable,
    /// The next user's id, and the next version of a password: never used twice.
    next_id: u64,
    /// The table has changed since it was taken.
    is_changed: bool,
    /// Bytes of all texts of permissions.
    text_bytes: usize,
}

impl Users {
    pub(crate) fn new() -> Self {
        Self {
            table: UserTable::default(),
            next_id: 1,
            is_changed: true,
            text_bytes: 0,
        }
    }

    /// Replicated: a user is there from now on, or has another password or other tags. One with
    /// another id takes the place of its namesake, whose permissions it does not have.
    fn insert(&mut self, mut user: User) {
        let newest = user.id.0.max(user.password_version);
        self.next_id = self.next_id.max(newest.saturating_add(1));
        let before = self.table.find(&user.name);
        if let Some(before) = before.filter(|before| before.id == user.id) {
            user.permissions = before.permissions.clone();
            user.topics = before.topics.clone();
        }
        self.replace(user);
    }

    fn replace(&mut self, user: User) {
        self.text_bytes += user.text_bytes();
        if let Some(before) = self.table.insert(Arc::new(user)) {
            self.text_bytes -= before.text_bytes();
        }
        self.is_changed = true;
    }

    /// Replicated: a user is gone, with all its permissions. Of a log without its beginning it may
    /// be unknown.
    fn remove(&mut self, name: &str) {
        if let Some(user) = self.table.remove(name) {
            self.text_bytes -= user.text_bytes();
            self.is_changed = true;
        }
    }

    /// Replicated: changes what a user may do, if there is such a user.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut User)) {
        let Some(user) = self.table.find(name) else {
            return;
        };
        let mut changed = User::clone(user);
        change(&mut changed);
        self.replace(changed);
    }

    /// Replicated: a virtual host is gone, and with it what anybody may do there.
    pub(crate) fn forget_vhost(&mut self, vhost: &str) {
        let names: Vec<Arc<str>> = self
            .table
            .iter()
            .filter(|user| user.speaks_of(vhost))
            .map(|user| Arc::clone(&user.name))
            .collect();
        for name in names {
            self.change(&name, |user| {
                user.permissions.remove(vhost);
                user.topics.retain(|(of, _), _| &**of != vhost);
            });
        }
    }

    /// Rough bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        const USER: usize = 1024;
        self.table.len() * USER + self.text_bytes * 2
    }

    /// Panics when the state contradicts itself.
    pub(crate) fn assert_invariants(&self) {
        let bytes: usize = self.table.iter().map(|user| user.text_bytes()).sum();
        assert_eq!(bytes, self.text_bytes, "bytes of permissions");
        for user in self.table.iter() {
            let newest = user.id.0.max(user.password_version);
            assert!(
                newest < self.next_id,
                "user {} has {newest}, {} is next",
                user.name,
                self.next_id
            );
        }
    }
}

#[cfg(test)]
mod tests;
