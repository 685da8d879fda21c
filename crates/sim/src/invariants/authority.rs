//! Keys decide who does what: nothing is taken from whom a key does not allow it, nothing is
//! delivered to whose key is gone, and keys are there after a restart as they were confirmed.
//!
//! Source: connection, "a missing, unknown, expired or revoked key gets `Error` Unauthorized and a
//! close", "it takes effect at once on this node"; permissions, "a batch is checked per item:
//! Forbidden for that item, the rest goes on".
//!
//! What matters is when the answer to a change came to who asked for it. What is used after that
//! is refused, what was allowed before and was not changed since is allowed. A frame that began
//! before that moment may come to its end.

use tanda_engine::{ApiKey, ApiKeyId, KeyTable, Millis};

use crate::failure::{Check, ensure};
use crate::history::{History, Holder, KeyFacts, Keys, Right};

pub(crate) const NAME: &str = "keys decide who does what";

/// The broker did what was asked of it.
pub(crate) fn on_allowed(keys: &Keys, right: &Right, what: &str) -> Check {
    ensure(!keys.must_be_refused(right), NAME, || {
        format!("{what}: it was allowed to {right:?}")
    })
}

/// The broker refused what was asked of it.
pub(crate) fn on_forbidden(keys: &Keys, right: &Right, now: Millis) -> Check {
    let is_right = keys.are_asked_for && !keys.must_be_allowed(right, now);
    ensure(is_right, NAME, || {
        format!("it was forbidden at {now:?}, although nothing took it from {right:?}")
    })
}

/// The broker says that the key of a connection is no good.
pub(crate) fn on_unauthorized(keys: &Keys, holder: Holder, now: Millis) -> Check {
    let is_good = match holder {
        Holder::Anyone => true,
        Holder::Nobody => false,
        Holder::Key(number) => {
            let key = keys.known.get(number);
            key.is_some_and(|key| key.is_unrevoked() && !key.is_expired(now))
        }
    };
    ensure(!is_good, NAME, || {
        format!("{holder:?} is unauthorized at {now:?}, and was never revoked")
    })
}

/// The moment from which on a subscription gets nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deaf {
    /// Bytes that had been sent to its connection then.
    pub(crate) from: u64,
    /// That it has no right then.
    pub(crate) right: Right,
}

/// Something was delivered, in a frame that begins at this byte of its connection.
pub(crate) fn on_delivery(keys: &Keys, deaf: Option<Deaf>, begins_at: u64) -> Check {
    let Some(deaf) = deaf else {
        return Ok(());
    };
    let is_late = begins_at >= deaf.from && keys.must_be_refused(&deaf.right);
    ensure(!is_late, NAME, || {
        format!("a delivery began at byte {begins_at}, and this was answered before: {deaf:?}")
    })
}

/// A message is one that somebody was allowed to send.
pub(crate) fn on_message(history: &History, tag: usize) -> Check {
    let rights = &history.sent(tag)?.rights;
    let keys = &history.keys;
    let is_refused = rights.iter().all(|right| keys.must_be_refused(right));
    ensure(!is_refused, NAME, || {
        format!("message {tag} is there, and was sent only with {rights:?}")
    })
}

/// A broker that has just started knows what was confirmed, and what may have come.
pub(crate) fn when_started(keys: &Keys, table: &KeyTable) -> Check {
    for key in &keys.known {
        let found = ApiKeyId::parse(&key.id).and_then(|id| table.find(id));
        match found {
            Some(found) => is_same(key, found)?,
            None => ensure(!key.is_unrevoked(), NAME, || {
                format!("nobody revoked {key:?}, and it is gone")
            })?,
        }
    }
    let others = table.iter().filter(|key| !key.is_bootstrap);
    for key in others {
        let id = key.id.to_string();
        let is_known = keys.known.iter().any(|known| known.id == id);
        let may_be = keys.unanswered.contains(&*key.name);
        ensure(is_known || may_be, NAME, || {
            format!("nobody made {key:?}, and it is there")
        })?;
    }
    let is_ready = !keys.are_asked_for || table.was_bootstrapped();
    ensure(is_ready, NAME, || "the configured key is gone".to_owned())
}

fn is_same(key: &KeyFacts, found: &ApiKey) -> Check {
    ensure(!key.is_revoked(), NAME, || {
        format!("{key:?} was revoked, and is there again")
    })?;
    let grants = found.grants.iter();
    let grants: Vec<_> = grants
        .map(|grant| (grant.permission, &*grant.pattern))
        .collect();
    let is_possible = key.possible_acls().any(|acl| *acl == grants);
    let is_it = *found.name == key.name && found.expires_at == key.expires_at;
    ensure(is_it && is_possible && !found.is_superadmin, NAME, || {
        format!("{key:?} became {found:?}")
    })
}
