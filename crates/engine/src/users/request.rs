//! What is asked and answered about users.

use super::{PasswordHash, TopicPermissions, VhostPermissions};

/// A request about users.
#[derive(Clone, Debug)]
pub enum UserRequest {
    /// Make a user, or change one.
    Put(Box<NewUser>),
    /// Make the first user, with all permissions in the default virtual host, unless that was done
    /// before.
    Seed(Box<NewUser>),
    /// Put another hash of the same password in the place of one.
    Rehash {
        /// The user's name.
        user: String,
        /// The hash that the user has.
        from: PasswordHash,
        /// The one in its place.
        to: PasswordHash,
    },
    /// Delete a user with all its permissions.
    Delete {
        /// Its name.
        name: String,
    },
    /// Say what a user may do in a virtual host.
    SetPermissions(Box<NewVhostPermissions>),
    /// Close a virtual host to a user.
    ClearPermissions {
        /// The user's name.
        user: String,
        /// The virtual host's name.
        vhost: String,
    },
    /// Say which routing keys a user may use with an exchange.
    SetTopicPermissions(Box<NewTopicPermissions>),
    /// Let a user use any routing key.
    ClearTopicPermissions {
        /// The user's name.
        user: String,
        /// The virtual host's name.
        vhost: String,
        /// The exchange's name; `None` = all of the virtual host.
        exchange: Option<String>,
    },
}

impl UserRequest {
    /// Rough size in memory of its texts.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        match self {
            Self::Put(new) | Self::Seed(new) => {
                let tags = new
                    .tags
                    .iter()
                    .flatten()
                    .map(|tag| size_of::<String>() + tag.len());
                new.name.len() + hash_bytes(&new.password) + tags.sum::<usize>()
            }
            Self::Rehash { user, from, to } => user.len() + from.reveal().len() + to.reveal().len(),
            Self::SetPermissions(new) => {
                let it = &new.permissions;
                let patterns = it.configure.len() + it.write.len() + it.read.len();
                new.user.len() + new.vhost.len() + patterns
            }
            Self::SetTopicPermissions(new) => {
                let it = &new.permissions;
                let names = new.user.len() + new.vhost.len() + new.exchange.len();
                names + it.write.len() + it.read.len()
            }
            Self::ClearPermissions { user, vhost } => user.len() + vhost.len(),
            Self::ClearTopicPermissions {
                user,
                vhost,
                exchange,
            } => user.len() + vhost.len() + exchange.as_ref().map_or(0, String::len),
            Self::Delete { name } => name.len(),
        }
    }
}

fn hash_bytes(change: &PasswordChange) -> usize {
    match change {
        PasswordChange::Keep | PasswordChange::Remove => 0,
        PasswordChange::Set(hash) => hash.reveal().len(),
    }
}

/// The answer to a [`UserRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserReply {
    /// The user is there; true when it is new.
    Put(Result<bool, PutUserError>),
    /// The first user was made; false when it was made before.
    Seeded(Result<bool, PutUserError>),
    /// Whether the hash was still the user's.
    Rehashed(bool),
    /// Deleted.
    Deleted(Result<(), UserNotFound>),
    /// Set or cleared.
    PermissionsChanged(Result<(), PermissionError>),
}

/// A user to make or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// Its name: 1 to 255 bytes without control characters.
    pub name: String,
    /// What becomes of its password.
    pub password: PasswordChange,
    /// Its tags; `None` leaves those it has. At most 16 of 1 to 255 bytes.
    pub tags: Option<Vec<String>>,
}

/// What becomes of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordChange {
    /// It stays. There is none of a new user.
    Keep,
    /// No password lets the user in any more.
    Remove,
    /// Another one; whoever used the one before has to log in again.
    Set(PasswordHash),
}

/// Permissions of a user in a virtual host, in place of those it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVhostPermissions {
    /// The user's name.
    pub user: String,
    /// The virtual host's name.
    pub vhost: String,
    /// What is allowed.
    pub permissions: VhostPermissions,
}

/// Permissions of a user for routing keys, in place of those it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopicPermissions {
    /// The user's name.
    pub user: String,
    /// The virtual host's name.
    pub vhost: String,
    /// The exchange's name.
    pub exchange: String,
    /// What is allowed.
    pub permissions: TopicPermissions,
}

/// Why a user was not made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutUserError {
    /// The name is empty, too long, or has control characters; or tags or hash are too long.
    Invalid {
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// There are as many users as may be.
    TooMany {
        /// The most that may be.
        max: u32,
    },
    /// The disk is full.
    Storage,
}

/// Why permissions were not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionError {
    /// No user of that name.
    UserNotFound,
    /// No virtual host of that name.
    VhostNotFound,
    /// A text is too long.
    Invalid {
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// The user, or all users together, would have more than may be.
    TooMany {
        /// What would be too many, and the most that may be.
        problem: String,
    },
    /// The disk is full.
    Storage,
}

/// No user of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserNotFound;
