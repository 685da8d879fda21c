//! API keys: what is known of each, and so of what its holders may do.
//!
//! A change that was sent and not answered may have come, or may come yet: until it is settled, all
//! that may be in force counts.

use std::collections::BTreeSet;

use tanda_engine::{Millis, Permission};

use crate::random::Random;

/// Permissions with patterns of queue names.
pub(crate) type Acl = Vec<(Permission, &'static str)>;

/// Who a connection says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// It may do everything: nobody is asked for a key, or it shows the configured one.
    Anyone,
    /// It shows the key of this number.
    Key(usize),
    /// It shows what is nobody's key.
    Nobody,
}

/// What was known, when it was used, of whether something is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Right {
    holder: Holder,
    /// Of the key, then.
    version: u64,
    is_sure: bool,
    is_possible: bool,
}

impl Right {
    /// It may be allowed.
    pub(crate) const fn is_possible(&self) -> bool {
        self.is_possible
    }
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Acl(Acl),
    Revocation,
}

/// A key whose creation was answered.
#[derive(Clone, Debug)]
pub(crate) struct KeyFacts {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) expires_at: Option<Millis>,
    /// Changes of it that were sent so far.
    version: u64,
    /// Revocations that may have come.
    revocations: u32,
    is_revoked: bool,
    /// One of these is in force, unless one of `coming` is.
    acls: Vec<Acl>,
    /// Sent, without an answer.
    coming: Vec<Acl>,
    /// Somebody waits for the answer to a change.
    pub(crate) is_busy: bool,
}

impl KeyFacts {
    /// Its revocation was answered.
    pub(crate) const fn is_revoked(&self) -> bool {
        self.is_revoked
    }

    /// Nobody has ever sent a revocation of it that was not refused.
    pub(crate) const fn is_unrevoked(&self) -> bool {
        !self.is_revoked && self.revocations == 0
    }

    /// Revocations of it that were sent and not refused.
    pub(crate) const fn revocations(&self) -> u32 {
        self.revocations
    }

    /// It was never given permissions.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.version == 0
    }

    pub(crate) fn is_expired(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// What may be in force.
    pub(crate) fn possible_acls(&self) -> impl Iterator<Item = &Acl> {
        self.acls.iter().chain(&self.coming)
    }

    fn right(&self, now: Millis, need: Need<'_>) -> (bool, bool) {
        let is_good = self.is_unrevoked() && !self.is_expired(now);
        let may_be_good = !self.is_revoked && !self.is_expired(now);
        let Need::Queue(permission, queue) = need else {
            return (is_good, may_be_good);
        };
        let allows = |acl: &Acl| allows(acl, permission, queue);
        (
            is_good && self.possible_acls().all(allows),
            may_be_good && self.possible_acls().any(allows),
        )
    }
}

/// What a right is of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<'a> {
    Connect,
    Queue(Permission, &'a str),
}

/// All that is known of keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Clients must show a key.
    pub(crate) are_asked_for: bool,
    pub(crate) known: Vec<KeyFacts>,
    /// Names of keys that may be there and that nobody has the secret of.
    pub(crate) unanswered: BTreeSet<String>,
    /// Keys whose change was answered, and whose connections are to be told apart from then on.
    pub(crate) changed: Vec<usize>,
    names: u64,
}

impl Keys {
    pub(crate) fn new(are_asked_for: bool) -> Self {
        Self {
            are_asked_for,
            ..Self::default()
        }
    }

    /// Whether this holder may do that, as far as is known now.
    pub(crate) fn right(&self, holder: Holder, now: Millis, need: Need<'_>) -> Right {
        let key = match holder {
            Holder::Key(key) => self.known.get(key),
            Holder::Anyone | Holder::Nobody => None,
        };
        let is_anyone = holder == Holder::Anyone;
        let (is_sure, is_possible) = key.map_or((is_anyone, is_anyone), |key| key.right(now, need));
        Right {
            holder,
            version: key.map_or(0, |key| key.version),
            is_sure,
            is_possible,
        }
    }

    /// It was allowed when it was used, and still is: nothing has changed since.
    pub(crate) fn must_be_allowed(&self, right: &Right, now: Millis) -> bool {
        let expired = match right.holder {
            Holder::Key(key) => self.known.get(key).is_some_and(|key| key.is_expired(now)),
            Holder::Anyone | Holder::Nobody => false,
        };
        right.is_sure && self.is_unchanged(right) && !expired
    }

    /// It was forbidden when it was used, and nothing was sent since that would allow it.
    pub(crate) fn must_be_refused(&self, right: &Right) -> bool {
        !right.is_possible && self.is_unchanged(right)
    }

    fn is_unchanged(&self, right: &Right) -> bool {
        match right.holder {
            Holder::Key(key) => {
                let version = self.known.get(key).map(|key| key.version);
                version == Some(right.version)
            }
            Holder::Anyone | Holder::Nobody => true,
        }
    }

    /// The creation of a key is on its way; returns its name.
    pub(crate) fn on_creation_sent(&mut self) -> String {
        self.names += 1;
        let name = format!("worker {}", self.names);
        self.unanswered.insert(name.clone());
        name
    }

    pub(crate) fn on_created(&mut self, name: String, id: &str, secret: &str, end: Option<Millis>) {
        self.unanswered.remove(&name);
        self.known.push(KeyFacts {
            id: id.to_owned(),
            name,
            secret: secret.to_owned(),
            expires_at: end,
            version: 0,
            revocations: 0,
            is_revoked: false,
            acls: vec![Acl::new()],
            coming: Vec::new(),
            is_busy: false,
        });
    }

    pub(crate) fn on_change_sent(&mut self, number: usize, change: &Change) {
        let Some(key) = self.known.get_mut(number) else {
            return;
        };
        key.version += 1;
        key.is_busy = true;
        match change {
            Change::Acl(acl) => key.coming.push(acl.clone()),
            Change::Revocation => key.revocations += 1,
        }
    }

    /// A change was answered with Ok: it is in force.
    pub(crate) fn on_changed(&mut self, number: usize, change: &Change) {
        let Some(key) = self.known.get_mut(number) else {
            return;
        };
        key.is_busy = false;
        match change {
            Change::Acl(acl) => {
                key.forget(acl);
                key.acls = vec![acl.clone()];
            }
            Change::Revocation => key.is_revoked = true,
        }
        self.changed.push(number);
    }

    /// A change has surely not come, and will not.
    pub(crate) fn on_change_refused(&mut self, number: usize, change: &Change) {
        let Some(key) = self.known.get_mut(number) else {
            return;
        };
        key.is_busy = false;
        match change {
            Change::Acl(acl) => key.forget(acl),
            Change::Revocation => key.revocations -= 1,
        }
    }

    /// The answer to a change will not come.
    pub(crate) fn on_change_unknown(&mut self, number: usize) {
        if let Some(key) = self.known.get_mut(number) {
            key.is_busy = false;
        }
    }

    /// Nothing that was sent before will come any more, but it may have come.
    pub(super) fn on_crash(&mut self) {
        for key in &mut self.known {
            key.acls.append(&mut key.coming);
        }
    }
}

impl KeyFacts {
    fn forget(&mut self, acl: &Acl) {
        if let Some(index) = self.coming.iter().position(|coming| coming == acl) {
            self.coming.swap_remove(index);
        }
    }
}

/// Mostly all that a worker needs, sometimes a part of it or nothing.
pub(crate) fn draw_acl(random: &mut Random) -> Acl {
    match random.below(10) {
        0..=6 => vec![(Permission::Produce, "*"), (Permission::Consume, "*")],
        7 => Acl::new(),
        _ => {
            let grants = (0..random.length(4)).map(|_| {
                let permission = random.pick(&Permission::ALL).copied();
                let pattern = random.pick(PATTERNS).copied();
                (
                    permission.unwrap_or(Permission::Admin),
                    pattern.unwrap_or("*"),
                )
            });
            grants.collect()
        }
    }
}

const PATTERNS: &[&str] = &[
    "*", "queue-*", "queue-?", "queue-0", "queue-1*", "*.dlq", "scratch", "s*h",
];

fn allows(acl: &Acl, permission: Permission, queue: &str) -> bool {
    let grants = acl.iter().filter(|(granted, _)| *granted == permission);
    grants
        .into_iter()
        .any(|(_, pattern)| covers(pattern.as_bytes(), queue.as_bytes()))
}

/// `*` stands for any characters, `?` for one.
fn covers(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), tail) => {
            covers(rest, name) || tail.is_some_and(|(_, tail)| covers(pattern, tail))
        }
        (Some((b'?', rest)), Some((_, tail))) => covers(rest, tail),
        (Some((one, rest)), Some((other, tail))) => one == other && covers(rest, tail),
        (Some(_), None) | (None, Some(_)) => false,
    }
}
