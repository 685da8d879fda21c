//! Who a peer is and what it may do, asked of the world outside the session.
//!
//! Checking a password takes long on purpose, so a session only puts the question; the driver
//! finds the answer elsewhere. What comes back answers questions of permission from then on.

use core::fmt;

/// Whether peers of a door without users must show an API key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authentication {
    /// No: everybody may do everything.
    #[default]
    Off,
    /// Yes, one that is good.
    On,
}

/// Somebody asks to be let in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name of the mechanism, as the protocol spells it.
    pub mechanism: &'static str,
    /// What it shows.
    pub proof: Proof,
}

impl Login {
    /// Who wants to be let in, and how: for those who look into refusals.
    #[must_use]
    pub fn account(&self) -> String {
        let mechanism = self.mechanism;
        match &self.proof {
            Proof::Password { user, .. } => format!("{user} ({mechanism})"),
            Proof::Certificate { name } => format!("{name} ({mechanism})"),
            Proof::Token(_) => mechanism.to_owned(),
        }
    }
}

/// What somebody shows to be let in.
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// A user's name and password.
    Password {
        /// The name; at most 255 bytes.
        user: String,
        /// The password. It shows itself only where it is asked to.
        password: Password,
    },
    /// The name in the certificate that the peer showed in its TLS handshake.
    Certificate {
        /// As the driver told the session when the connection was made.
        name: String,
    },
    /// An opaque token.
    Token(Password),
}

/// A secret on its way to be checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Vec<u8>);

impl Password {
    /// Wraps a secret.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, for whoever checks them and for nobody else.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({} {:?})", self.mechanism, self.proof)
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => write!(f, "Password({user:?}, ..)"),
            Self::Certificate { name } => write!(f, "Certificate({name:?})"),
            Self::Token(_) => f.write_str("Token(..)"),
        }
    }
}

/// Why somebody was not let in. Peers are told no difference between the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginError {
    /// No such user, or the wrong password.
    Refused,
    /// This user may not come over the network (`guest`).
    LoopbackOnly,
    /// Too many checks are waiting: try again later.
    Overloaded,
}

/// What can be done to an exchange or a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Make it, delete it.
    Configure,
    /// Put messages into it.
    Write,
    /// Take messages out of it.
    Read,
}

impl Permission {
    /// Its name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// A publish or binding with a routing key, whose words may be restricted.
#[derive(Clone, Copy, Debug)]
pub struct TopicAccess<'a> {
    /// The virtual host's name.
    pub vhost: &'a str,
    /// The topic exchange's name.
    pub exchange: &'a str,
    /// The routing key.
    pub key: &'a str,
    /// [`Permission::Write`] to publish, [`Permission::Read`] to bind.
    pub permission: Permission,
}

/// Who a peer is, once it was let in.
pub trait Identity: fmt::Debug + Send + Sync {
    /// The user's name, at most 255 bytes.
    fn name(&self) -> &str;

    /// Whether every question below is answered with yes; saves asking.
    fn is_unrestricted(&self) -> bool {
        false
    }

    /// Whether messages may carry another `user_id` than the name.
    fn may_impersonate(&self) -> bool {
        false
    }

    /// Whether it may open a virtual host at all.
    fn may_open(&self, vhost: &str) -> bool;

    /// Whether it may do something to the exchange or queue of this name in a virtual host.
    fn may(&self, permission: Permission, vhost: &str, name: &str) -> bool;

    /// Whether [`Identity::may_use_key`] can say no for this exchange; saves asking per message.
    fn restricts_keys(&self, _vhost: &str, _exchange: &str) -> bool {
        false
    }

    /// Whether it may use a routing key with a topic exchange.
    fn may_use_key(&self, _access: TopicAccess<'_>) -> bool {
        true
    }
}

/// Somebody who may do everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrestricted {
    name: String,
}

impl Unrestricted {
    /// With this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl Identity for Unrestricted {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_unrestricted(&self) -> bool {
        true
    }

    fn may_open(&self, _vhost: &str) -> bool {
        true
    }

    fn may(&self, _permission: Permission, _vhost: &str, _name: &str) -> bool {
        true
    }
}

/// Whoever has not logged in.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Identity for Nobody {
    fn name(&self) -> &'static str {
        ""
    }

    fn may_open(&self, _vhost: &str) -> bool {
        false
    }

    fn may(&self, _permission: Permission, _vhost: &str, _name: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_themselves() {
        let login = Login {
            mechanism: "PLAIN",
            proof: Proof::Password {
                user: "anna".to_owned(),
                password: Password::new(b"hush".to_vec()),
            },
        };
        assert_eq!(format!("{login:?}"), "Login(PLAIN Password(\"anna\", ..))");
        assert_eq!(login.account(), "anna (PLAIN)");
        let token = Proof::Token(Password::new(b"hush".to_vec()));
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(format!("{:?}", Password::new(vec![1])), "Password(..)");
    }
}
