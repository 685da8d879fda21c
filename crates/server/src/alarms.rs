//! What runs short: memory, the disk. While anything does, those who publish are asked to wait;
//! consumers go on.
//!
//! Owns what is short and the look at the free space of the disk. The shard says what it knows of
//! memory and of its log; connections tell their peers.

use std::time::Duration;

use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// How often the free space is looked at.
pub(crate) const DISK_EVERY: Duration = Duration::from_millis(500);

/// What runs short now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alarms {
    /// `memory.limit` is near.
    pub(crate) memory: bool,
    /// Less is free on the disk than `disk.alarm`.
    pub(crate) disk_low: bool,
    /// The log has no room for more messages.
    pub(crate) disk_full: bool,
}

impl Alarms {
    /// What is short, in words for peers.
    pub(crate) const fn reason(self) -> Option<&'static str> {
        match (self.memory, self.disk_low || self.disk_full) {
            (true, true) => Some("memory & disk"),
            (true, false) => Some("memory"),
            (false, true) => Some("disk"),
            (false, false) => None,
        }
    }

    /// What is short, as a list.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let all = [
            (self.memory, "memory"),
            (self.disk_low || self.disk_full, "disk"),
        ];
        let set = all.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, name)| name).collect()
    }
}

/// Raises the alarm while `free`, which is asked at each `every`, says less than `least` bytes;
/// ends it when there is a tenth more. Never returns.
pub(crate) async fn watch_disk(
    free: impl Fn() -> Option<u64> + Clone + Send + 'static,
    (least, every): (u64, Duration),
    alarms: watch::Sender<Alarms>,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A file system over the network may hang.
        let Ok(Some(bytes)) = spawn_blocking(free.clone()).await else {
            continue;
        };
        note_free(bytes, least, &alarms);
    }
}

fn note_free(free: u64, least: u64, alarms: &watch::Sender<Alarms>) {
    let was_low = alarms.borrow().disk_low;
    let enough = if was_low {
        least.saturating_add(least / 10)
    } else {
        least
    };
    let is_low = free < enough;
    if is_low == was_low {
        return;
    }
    if is_low {
        tracing::warn!(
            free_bytes = free,
            least_bytes = least,
            "the disk has less free space than disk.alarm: publishers of AMQP and FireMQ are asked \
             to wait, consumers go on"
        );
    } else {
        tracing::info!(free_bytes = free, "the disk has enough free space again");
    }
    alarms.send_modify(|alarms| alarms.disk_low = is_low);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_all_that_is_short() {
        let reasons = [
            (false, false, false),
            (true, false, false),
            (false, true, false),
            (false, true, true),
            (true, false, true),
        ]
        .map(|(memory, disk_low, disk_full)| {
            let alarms = Alarms {
                memory,
                disk_low,
                disk_full,
            };
            (alarms.reason(), alarms.names().join(" & "))
        });
        let expected = [
            None,
            Some("memory"),
            Some("disk"),
            Some("disk"),
            Some("memory & disk"),
        ];
        assert_eq!(
            reasons,
            expected.map(|reason| (reason, reason.unwrap_or_default().to_owned()))
        );
    }

    #[test]
    fn a_disk_is_low_until_it_has_a_tenth_more_than_the_least() {
        let (alarms, _) = watch::channel(Alarms::default());
        let low = [1001, 1000, 999, 1000, 1099, 1100, 1000, 999].map(|free| {
            note_free(free, 1000, &alarms);
            alarms.borrow().disk_low
        });
        let expected = [false, false, true, true, true, false, false, true];
        assert_eq!(low, expected);
    }

    #[tokio::test]
    async fn the_disk_is_looked_at_again_and_again_and_an_unknown_changes_nothing() {
        use std::sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        };
        let free = Arc::new(AtomicU64::new(0));
        let (looked, mut looks) = tokio::sync::mpsc::unbounded_channel();
        let look = {
            let free = Arc::clone(&free);
            move || {
                let bytes = free.load(Ordering::Relaxed);
                looked.send(bytes).unwrap();
                Some(bytes).filter(|bytes| *bytes != 7)
            }
        };
        let (sender, mut alarms) = watch::channel(Alarms::default());
        let every = Duration::from_millis(1);
        let watching = tokio::spawn(watch_disk(look, (1000, every), sender));
        alarms.wait_for(|alarms| alarms.disk_low).await.unwrap();
        free.store(2000, Ordering::Relaxed);
        alarms.wait_for(|alarms| !alarms.disk_low).await.unwrap();
        free.store(7, Ordering::Relaxed);
        let mut unknown = 0;
        while unknown < 3 {
            unknown += u32::from(looks.recv().await == Some(7));
        }
        assert_eq!(*alarms.borrow(), Alarms::default());
        watching.abort();
    }
}
