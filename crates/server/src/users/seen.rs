//! Passwords that were found right a moment ago, so that a thousand clients of one user that come
//! back at once do not take a thousand slow checks.
//!
//! A password is not kept: what is kept is a hash of it, of its user and of the hash it was checked
//! against, salted anew in each process. With another hash of the user it is not found again.

use std::{
    collections::HashSet,
    mem,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use tanda_engine::User;

use crate::random;

/// How long one is known at least; at most twice as long after it was last used.
const KNOWN: Duration = Duration::from_secs(60);
/// How many are known, twice.
const KNOWN_MAX: usize = 5_000;

type Print = [u8; 32];

/// See the module.
#[derive(Debug)]
pub(super) struct Seen {
    salt: [u128; 2],
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    young: HashSet<Print>,
    old: HashSet<Print>,
    turned_at: Instant,
}

impl Seen {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            salt: [random::u128(), random::u128()],
            state: Mutex::new(State {
                young: HashSet::new(),
                old: HashSet::new(),
                turned_at: now,
            }),
        }
    }

    fn print(&self, user: &User, password: &[u8]) -> Option<Print> {
        let hash = user.password.as_ref()?.reveal().as_bytes();
        let mut digest = Sha256::new();
        for part in self.salt {
            digest.update(part.to_be_bytes());
        }
        for part in [user.name.as_bytes(), hash, password] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Some(digest.finalize().into())
    }

    /// Whether this is a user's password for sure.
    pub(super) fn has(&self, user: &User, password: &[u8], now: Instant) -> bool {
        let Some(print) = self.print(user, password) else {
            return false;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn(now);
        let is_old = state.old.remove(&print);
        if is_old {
            state.add(print, now);
        }
        is_old || state.young.contains(&print)
    }

    /// This is the user's password.
    pub(super) fn add(&self, user: &User, password: &[u8], now: Instant) {
        if let Some(print) = self.print(user, password) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.turn(now);
            state.add(print, now);
        }
    }
}

impl State {
    fn turn(&mut self, now: Instant) {
        let since = now.duration_since(self.turned_at);
        if since >= KNOWN {
            self.old = mem::take(&mut self.young);
            if since >= KNOWN * 2 {
                self.old.clear();
            }
            self.turned_at = now;
        }
    }

    fn add(&mut self, print: Print, now: Instant) {
        if self.young.len() >= KNOWN_MAX {
            self.old = mem::take(&mut self.young);
            self.turned_at = now;
        }
        self.young.insert(print);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tanda_engine::{PasswordHash, UserId};

    use super::*;

    fn user(hash: &str) -> User {
        User {
            id: UserId(1),
            name: "anna".into(),
            password: Some(PasswordHash::new(hash)),
            password_version: 1,
            tags: [].into(),
            permissions: BTreeMap::new(),
            topics: BTreeMap::new(),
        }
    }

    #[test]
    fn a_password_is_known_for_a_while_and_by_its_hash() {
        let start = Instant::now();
        let seen = Seen::new(start);
        let anna = user("$1");
        assert!(!seen.has(&anna, b"pw", start));
        seen.add(&anna, b"pw", start);
        assert!(seen.has(&anna, b"pw", start));
        assert!(!seen.has(&anna, b"pw2", start));
        assert!(!seen.has(&user("$2"), b"pw", start));
        let nobody = User {
            password: None,
            ..user("")
        };
        seen.add(&nobody, b"pw", start);
        assert!(!seen.has(&nobody, b"pw", start));
        // Used, it stays; unused, it goes.
        let later = start + KNOWN + KNOWN / 2;
        assert!(seen.has(&anna, b"pw", later));
        assert!(seen.has(&anna, b"pw", later + KNOWN));
        assert!(!seen.has(&anna, b"pw", later + KNOWN * 4));
    }

    #[test]
    fn not_more_are_known_than_may_be() {
        let start = Instant::now();
        let seen = Seen::new(start);
        for n in 0..KNOWN_MAX * 3 {
            seen.add(&user("$1"), n.to_string().as_bytes(), start);
        }
        let state = seen.state.lock().unwrap();
        assert!(state.young.len() + state.old.len() <= KNOWN_MAX * 2);
    }
}
