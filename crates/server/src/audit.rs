//! Writes down what happened to keys and who was turned away: lines that begin with `audit:`, with
//! the target `audit`, whatever `log.level` says. Secrets are in none of them.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tanda_session::audit::{AuditEvent, AuditOutcome};
use tokio::time::Instant;

/// The target of these lines.
pub(crate) const TARGET: &str = "audit";

/// Denials that are written down in one second; peers can cause as many as they like.
const DENIALS_PER_SECOND: u32 = 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    denials: Mutex<Denials>,
}

/// How many denials were written down of late.
#[derive(Debug, Default)]
struct Denials {
    second: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Audit {
    /// Writes one event of this peer down, unless it is one of too many.
    pub(crate) fn note(&self, peer: Option<SocketAddr>, event: &AuditEvent) {
        let untold = if event.is_denial() {
            let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(untold) = denials.note(Instant::now()) else {
                return;
            };
            untold
        } else {
            0
        };
        write(peer, event);
        if untold > 0 {
            tracing::info!(target: TARGET, untold, "audit: denials that were not written down");
        }
    }
}

fn write(peer: Option<SocketAddr>, event: &AuditEvent) {
    let AuditEvent {
        by,
        user,
        action,
        object,
        outcome,
    } = event;
    let peer = peer.map_or_else(|| "-".to_owned(), |peer| peer.to_string());
    let key = by
        .as_ref()
        .map_or_else(|| "-".to_owned(), |key| key.id.to_string());
    // Names and objects are said by peers: escaped.
    let name = by.as_ref().map_or("", |key| &*key.name);
    let user = user.as_deref().unwrap_or_default();
    let (outcome, reason) = match outcome {
        AuditOutcome::Done => ("done", ""),
        AuditOutcome::Refused(reason) => ("refused", *reason),
        AuditOutcome::Forbidden => ("forbidden", ""),
        AuditOutcome::Denied(error) => ("denied", error.reason()),
    };
    tracing::info!(
        target: TARGET,
        peer,
        key,
        name = ?name,
        user = ?user,
        object = ?object,
        outcome,
        reason,
        "audit: {action}"
    );
}

impl Denials {
    /// Counts one. When it is to be written down: how many were not since the last that was.
    fn note(&mut self, now: Instant) -> Option<u64> {
        let recent = |at: Instant| now.duration_since(at) < Duration::from_secs(1);
        if !self.second.is_some_and(recent) {
            self.second = Some(now);
            self.told = 0;
        }
        if self.told >= DENIALS_PER_SECOND {
            self.untold += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_told_of_a_few_times_a_second_and_counted() {
        let mut denials = Denials::default();
        let start = Instant::now();
        for _ in 0..DENIALS_PER_SECOND {
            assert_eq!(denials.note(start), Some(0));
        }
        for ms in 0..1000 {
            assert_eq!(denials.note(start + Duration::from_millis(ms)), None);
        }
        let next = start + Duration::from_secs(1);
        assert_eq!(denials.note(next), Some(1000));
        assert_eq!(denials.note(next), Some(0));
    }
}
