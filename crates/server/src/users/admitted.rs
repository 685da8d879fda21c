//! Somebody who was let in, and what becomes of that when users and keys change.

use std::{fmt, sync::Arc};

use tanda_engine::{ApiKey, Millis, User};
use tanda_session::login::Identity;

use super::{Authenticator, Principals, key_identity::KeyIdentity};

/// Who was let in, and by what.
#[derive(Clone)]
pub(crate) struct Admitted {
    pub(crate) identity: Arc<dyn Identity>,
    pub(super) by: By,
}

/// What somebody was let in by.
#[derive(Clone, Debug)]
pub(super) enum By {
    Password(Arc<User>),
    Certificate(Arc<User>),
    Key(Arc<ApiKey>),
}

/// What a change of users and keys means for somebody who was let in.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// Nothing.
    Same,
    /// It may do other things.
    Changed(Admitted),
    /// It has to go, for this reason.
    Gone(String),
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.identity.name();
        f.debug_struct("Admitted").field("name", &name).finish()
    }
}

impl Admitted {
    pub(super) fn by_key(key: &Arc<ApiKey>) -> Self {
        Self {
            identity: Arc::new(KeyIdentity::new(key)),
            by: By::Key(Arc::clone(key)),
        }
    }

    /// The user, when it is one.
    pub(crate) const fn user(&self) -> Option<&Arc<User>> {
        match &self.by {
            By::Password(user) | By::Certificate(user) => Some(user),
            By::Key(_) => None,
        }
    }

    /// From when on it is no good.
    pub(crate) fn expires_at(&self) -> Option<Millis> {
        match &self.by {
            By::Password(_) | By::Certificate(_) => None,
            By::Key(key) => key.expires_at,
        }
    }

    /// Why it has to go at its end.
    pub(crate) fn expiry(&self) -> String {
        format!("the API key {} has expired", self.identity.name())
    }

    /// Looks who it is now.
    pub(crate) fn renew(&self, authenticator: &Authenticator, newest: &Principals) -> Renewal {
        match &self.by {
            By::Key(key) => match newest.keys.find(key.id) {
                Some(now) if Arc::ptr_eq(now, key) => Renewal::Same,
                Some(now) => Renewal::Changed(Self::by_key(now)),
                None => Renewal::Gone(format!("the API key {} was revoked", key.id)),
            },
            By::Password(user) | By::Certificate(user) => {
                let name = &user.name;
                let now = newest.users.find(name).filter(|now| now.id == user.id);
                let Some(now) = now else {
                    return Renewal::Gone(format!("user '{name}' was deleted"));
                };
                let is_by_password = matches!(self.by, By::Password(_));
                if is_by_password && now.password_version != user.password_version {
                    return Renewal::Gone(format!("the password of user '{name}' was changed"));
                }
                if Arc::ptr_eq(now, user) {
                    return Renewal::Same;
                }
                let by = match self.by {
                    By::Certificate(_) => By::Certificate(Arc::clone(now)),
                    By::Password(_) | By::Key(_) => By::Password(Arc::clone(now)),
                };
                let identity = authenticator.identity_of(now);
                Renewal::Changed(Self { identity, by })
            }
        }
    }
}
