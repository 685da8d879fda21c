//! Finds out who peers are.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use tanda_engine::{PasswordHash, User, UserId, UserRequest};
use tanda_session::login::{Identity, Login, LoginError, Proof};
use tokio::sync::{Semaphore, mpsc, watch};

use super::{
    Admitted, GUEST, Principals,
    admitted::By,
    identity::UserIdentity,
    password::{self, Verdict},
    seen::Seen,
};
use crate::clock::Clock;

/// Logins that wait for their check; more are told to come again.
const WAITING_MAX: usize = 4_096;
/// Users whose permissions are kept compiled; they are made again when there are more.
const IDENTITIES_MAX: usize = 1_024;

/// What is allowed beside the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Whether the password that everybody knows lets guest in.
    pub(crate) default_password: bool,
    /// Users who may not come over the network.
    pub(crate) loopback_users: Vec<String>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Authenticator {
    principals: watch::Receiver<Principals>,
    clock: Clock,
    rules: Rules,
    /// Checks that may run at a time.
    running: Semaphore,
    /// Logins that may wait for one.
    waiting: Semaphore,
    seen: Seen,
    identities: Mutex<HashMap<UserId, Arc<UserIdentity>>>,
    /// Where hashes go that take the place of older ones.
    rehash: mpsc::Sender<UserRequest>,
}

impl Authenticator {
    pub(crate) fn new(
        principals: watch::Receiver<Principals>,
        clock: Clock,
        rules: Rules,
        rehash: mpsc::Sender<UserRequest>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            principals,
            clock,
            rules,
            // Messages go on while many log in.
            running: Semaphore::new((cores / 2).max(1)),
            waiting: Semaphore::new(WAITING_MAX),
            seen: Seen::new(Instant::now()),
            identities: Mutex::default(),
            rehash,
        }
    }

    /// The newest users and keys.
    pub(crate) fn newest(&self) -> Principals {
        self.principals.borrow().clone()
    }

    /// Lets somebody in, or not. Takes long on purpose: do not wait for it where others wait.
    pub(crate) async fn admit(
        &self,
        login: &Login,
        peer: Option<SocketAddr>,
    ) -> Result<Admitted, LoginError> {
        let admitted = match &login.proof {
            Proof::Password { user, password } => self.by_password(user, password.reveal()).await?,
            Proof::Certificate { name } => {
                let newest = self.newest();
                let user = newest.users.find(name).ok_or(LoginError::Refused)?;
                Admitted {
                    identity: self.identity_of(user),
                    by: By::Certificate(Arc::clone(user)),
                }
            }
            Proof::Token(token) => self.by_key(token.reveal()).ok_or(LoginError::Refused)?,
        };
        if let Some(user) = admitted.user() {
            self.check_place(user, peer)?;
        }
        Ok(admitted)
    }

    fn check_place(&self, user: &User, peer: Option<SocketAddr>) -> Result<(), LoginError> {
        let is_here = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
        let mut bound = self.rules.loopback_users.iter();
        if !is_here && bound.any(|name| **name == *user.name) {
            return Err(LoginError::LoopbackOnly);
        }
        Ok(())
    }

    fn by_key(&self, secret: &[u8]) -> Option<Admitted> {
        let newest = self.newest();
        let found = newest.keys.authenticate(Some(secret), self.clock.now());
        found.ok().map(Admitted::by_key)
    }

    async fn by_password(&self, name: &str, secret: &[u8]) -> Result<Admitted, LoginError> {
        // Keys are random, so that no guess finds one, and are checked in no time.
        if let Some(admitted) = self.by_key(secret) {
            return Ok(admitted);
        }
        let user = self.check(name, secret).await?;
        let is_default = name == GUEST && secret == GUEST.as_bytes();
        if is_default && !self.rules.default_password {
            return Err(LoginError::Refused);
        }
        Ok(Admitted {
            identity: self.identity_of(&user),
            by: By::Password(user),
        })
    }

    /// The user whose password it is.
    async fn check(&self, name: &str, secret: &[u8]) -> Result<Arc<User>, LoginError> {
        if let Some(user) = self.known(name, secret) {
            return Ok(user);
        }
        let overloaded = |_closed| LoginError::Overloaded;
        let waiting = self
            .waiting
            .try_acquire()
            .map_err(|_full| LoginError::Overloaded)?;
        let running = self.running.acquire().await.map_err(overloaded)?;
        drop(waiting);
        // Somebody of the same name may have been first.
        if let Some(user) = self.known(name, secret) {
            return Ok(user);
        }
        let user = self.newest().users.find(name).cloned();
        let stored = user.as_ref().and_then(|user| user.password.clone());
        let (against, password) = (stored.clone(), secret.to_vec());
        let checked = tokio::task::spawn_blocking(move || {
            let against = against.as_ref().map(PasswordHash::reveal);
            let verdict = password::verify(against, &password);
            let anew = (verdict == Verdict::RightByOldHash).then(|| {
                let old = against.unwrap_or_default();
                password::hash_anew(&password, old)
            });
            (verdict, anew.flatten())
        });
        let (verdict, anew) = checked.await.map_err(|_panic| LoginError::Overloaded)?;
        drop(running);
        let (Some(stored), Some(_)) = (stored, user) else {
            return Err(LoginError::Refused);
        };
        // Meanwhile the user may have another password, or be gone.
        let user = self.newest().users.find(name).cloned();
        let user = user.filter(|user| user.password.as_ref() == Some(&stored));
        let user = user.filter(|_| verdict != Verdict::Wrong);
        let user = user.ok_or(LoginError::Refused)?;
        self.seen.add(&user, secret, Instant::now());
        if let Some(anew) = anew {
            self.rehash(&user, stored, &anew);
        }
        Ok(user)
    }

    /// The user whose password it was found to be a moment ago.
    fn known(&self, name: &str, secret: &[u8]) -> Option<Arc<User>> {
        let user = self.newest().users.find(name).cloned()?;
        let is_known = self.seen.has(&user, secret, Instant::now());
        is_known.then_some(user)
    }

    /// Whoever logs in brings the password, of which the hash can be made as it is made now.
    fn rehash(&self, user: &User, from: PasswordHash, to: &str) {
        let request = UserRequest::Rehash {
            user: user.name.to_string(),
            from,
            to: PasswordHash::new(to),
        };
        if self.rehash.try_send(request).is_err() {
            tracing::debug!(user = %user.name, "the hash of a password stays the old one");
        }
    }

    /// Whether a password is a user's.
    pub(crate) async fn is_right(&self, name: &str, secret: &[u8]) -> bool {
        self.check(name, secret).await.is_ok()
    }

    /// Whether the password of a user is the one that a hash was made of, as far as hashes tell.
    pub(crate) fn was_made_of(user: &User, hash: &PasswordHash) -> bool {
        let stored = user.password.as_ref();
        stored.is_some_and(|stored| password::was_made_of(stored.reveal(), hash.reveal()))
    }

    /// Hashes a password for a user who is made or changed. `None` when it is too long, or too much
    /// waits.
    pub(crate) async fn hash(&self, secret: Vec<u8>) -> Option<PasswordHash> {
        let waiting = self.waiting.try_acquire().ok()?;
        let running = self.running.acquire().await.ok()?;
        drop(waiting);
        let hashed = tokio::task::spawn_blocking(move || password::hash(&secret));
        let hash = hashed.await.ok()??;
        drop(running);
        Some(PasswordHash::new(&hash))
    }

    /// What a user may do, shared by all its connections.
    pub(super) fn identity_of(&self, user: &Arc<User>) -> Arc<dyn Identity> {
        let mut identities = self
            .identities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = identities.get(&user.id)
            && Arc::ptr_eq(known.user(), user)
        {
            return Arc::clone(known) as Arc<dyn Identity>;
        }
        if identities.len() >= IDENTITIES_MAX {
            identities.clear();
        }
        let made = Arc::new(UserIdentity::new(user));
        identities.insert(user.id, Arc::clone(&made));
        made
    }
}

#[cfg(test)]
mod tests;
