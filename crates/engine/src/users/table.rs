//! The table of users as of one version.

use core::fmt;
use core::ops::Bound::{Excluded, Unbounded};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A user's identity; never reused, so that a user who was deleted is not one of the same name who
/// came later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u64);

/// What a password is checked against; made and understood outside. It does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Arc<str>);

impl PasswordHash {
    /// Wraps a hash.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text, for whoever checks passwords.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

/// What a user may do in one virtual host: regular expressions of names of exchanges and queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VhostPermissions {
    /// What may be made and deleted.
    pub configure: Arc<str>,
    /// Where messages may be put.
    pub write: Arc<str>,
    /// Where messages may be taken from.
    pub read: Arc<str>,
}

/// Which routing keys a user may use with one exchange: regular expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPermissions {
    /// When publishing.
    pub write: Arc<str>,
    /// When binding.
    pub read: Arc<str>,
}

/// One user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its identity.
    pub id: UserId,
    /// Its name: 1 to 255 bytes.
    pub name: Arc<str>,
    /// `None`: no password lets it in, only a certificate.
    pub password: Option<PasswordHash>,
    /// Changes with the password, but not when only its hash is made anew.
    pub password_version: u64,
    /// What the user is besides: `administrator` and so on.
    pub tags: Arc<[Box<str>]>,
    /// By virtual host.
    pub permissions: BTreeMap<Arc<str>, VhostPermissions>,
    /// By virtual host and exchange.
    pub topics: BTreeMap<(Arc<str>, Arc<str>), TopicPermissions>,
}

impl User {
    /// Whether it has a tag.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|it| &**it == tag)
    }

    /// Whether any permission is about a virtual host.
    pub(super) fn speaks_of(&self, vhost: &str) -> bool {
        self.permissions.contains_key(vhost) || self.topics.keys().any(|(of, _)| &**of == vhost)
    }

    pub(super) fn text_bytes(&self) -> usize {
        let all = self.permissions.iter();
        let all = all
            .map(|(vhost, it)| vhost.len() + it.configure.len() + it.write.len() + it.read.len());
        let topics = self.topics.iter();
        let topics = topics.map(|((vhost, exchange), it)| {
            vhost.len() + exchange.len() + it.write.len() + it.read.len()
        });
        all.sum::<usize>() + topics.sum::<usize>()
    }
}

/// All users as of one version. Cheap to share; never changes.
#[derive(Clone, Debug, Default)]
pub struct UserTable {
    by_name: BTreeMap<Arc<str>, Arc<User>>,
    pub(super) is_seeded: bool,
}

impl FromIterator<User> for UserTable {
    fn from_iter<T: IntoIterator<Item = User>>(users: T) -> Self {
        let users = users
            .into_iter()
            .map(|user| (Arc::clone(&user.name), Arc::new(user)));
        Self {
            by_name: users.collect(),
            is_seeded: false,
        }
    }
}

impl UserTable {
    /// The user of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// All users, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// Number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether the first user was ever made here, also when it is gone.
    #[must_use]
    pub const fn is_seeded(&self) -> bool {
        self.is_seeded
    }

    pub(super) fn after(&self, name: Option<&str>) -> Option<&Arc<User>> {
        let from = name.map_or(Unbounded, Excluded);
        let mut rest = self.by_name.range::<str, _>((from, Unbounded));
        rest.next().map(|(_, user)| user)
    }

    pub(super) fn insert(&mut self, user: Arc<User>) -> Option<Arc<User>> {
        self.by_name.insert(Arc::clone(&user.name), user)
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<User>> {
        self.by_name.remove(name)
    }
}
