//! Who asks over HTTP: the holder of a key, a user, or anybody.

use std::sync::Arc;

use tanda_engine::{ApiKey, Caller, Permission, User};
use tanda_session::login::{Identity, Permission as Wanted};

/// The virtual host of what goes by a queue's name alone.
pub(super) const VHOST: &str = "/";

/// See the module.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// Anybody, or the holder of a key.
    Caller(Caller),
    /// A user who logged in with a password. What it may do is said by its tags: `administrator`
    /// everything, `monitoring` look at everything; these, `management` and `policymaker` what
    /// their permissions allow; others nothing.
    User {
        user: Arc<User>,
        identity: Arc<dyn Identity>,
    },
}

fn is_administrator(user: &User) -> bool {
    user.has_tag("administrator")
}

fn looks_at_all(user: &User) -> bool {
    is_administrator(user) || user.has_tag("monitoring")
}

fn has_a_door(user: &User) -> bool {
    looks_at_all(user) || user.has_tag("management") || user.has_tag("policymaker")
}

const fn wanted(permission: Permission) -> Wanted {
    match permission {
        Permission::Produce => Wanted::Write,
        Permission::Consume => Wanted::Read,
        Permission::Admin => Wanted::Configure,
    }
}

impl Who {
    /// Whether they may do this with the queue of this name in a virtual host.
    pub(super) fn may_in(&self, permission: Permission, (vhost, queue): (&str, &str)) -> bool {
        match self {
            // What is granted to keys counts in `/`.
            Self::Caller(caller) => {
                caller.is_superadmin() || vhost == VHOST && caller.may(permission, queue)
            }
            Self::User { user, identity } => {
                let may = identity.may(wanted(permission), vhost, queue);
                is_administrator(user) || has_a_door(user) && may
            }
        }
    }

    /// Whether they may do anything with the queue of this name.
    pub(super) fn may_touch(&self, queue: &str) -> bool {
        self.may_touch_in(VHOST, queue)
    }

    /// Whether they may do anything with the queue or exchange of this name in a virtual host.
    pub(super) fn may_touch_in(&self, vhost: &str, name: &str) -> bool {
        match self {
            // What is granted to keys counts in `/`.
            Self::Caller(caller) => {
                caller.is_superadmin() || vhost == VHOST && caller.may_touch(name)
            }
            Self::User { user, identity } => {
                let mut all = Permission::ALL.into_iter();
                let may = all.any(|it| identity.may(wanted(it), vhost, name));
                looks_at_all(user) || has_a_door(user) && may
            }
        }
    }

    /// Whether they may look at what concerns the whole broker.
    pub(super) fn may_look_at_all(&self) -> bool {
        match self {
            Self::Caller(caller) => caller.may_administer_all(),
            Self::User { user, .. } => looks_at_all(user),
        }
    }

    /// Whether they may do everything, keys and users included.
    pub(super) fn is_superadmin(&self) -> bool {
        match self {
            Self::Caller(caller) => caller.is_superadmin(),
            Self::User { user, .. } => is_administrator(user),
        }
    }

    /// Their key.
    pub(super) const fn key(&self) -> Option<&Arc<ApiKey>> {
        match self {
            Self::Caller(caller) => caller.key(),
            Self::User { .. } => None,
        }
    }

    /// The user's name, when it is one.
    pub(super) fn user_name(&self) -> Option<&str> {
        match self {
            Self::Caller(_) => None,
            Self::User { user, .. } => Some(&user.name),
        }
    }

    /// Their name and tags, as `/api/whoami` says them.
    pub(super) fn name_and_tags(&self) -> (String, Vec<String>) {
        let administrator = || vec!["administrator".to_owned()];
        match self {
            Self::Caller(Caller::Anyone) => (String::new(), administrator()),
            Self::Caller(Caller::Key(key)) => {
                let tags = if key.is_superadmin {
                    administrator()
                } else {
                    Vec::new()
                };
                (key.id.to_string(), tags)
            }
            Self::User { user, .. } => {
                let tags = user.tags.iter().map(|tag| tag.to_string());
                (user.name.to_string(), tags.collect())
            }
        }
    }
}
