//! When to stop taking messages: enough came, none came for long, or a signal says so.

use std::time::Duration;

use tanda_client::{Delivery, Subscription};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::{failure::Failure, signals::StopSignals};

/// Messages of a subscription until there is a reason to stop.
#[derive(Debug)]
pub(super) struct Take {
    subscription: Subscription,
    signals: StopSignals,
    /// How many may still come.
    left: u64,
    wait: Option<Duration>,
    /// When the last message came, or work on one ended.
    quiet_since: Instant,
    /// While there is work the time is not quiet.
    is_working: bool,
    is_over: bool,
}

impl Take {
    pub(super) fn new(
        subscription: Subscription,
        signals: StopSignals,
        count: Option<u64>,
        wait: Option<Duration>,
    ) -> Self {
        Self {
            subscription,
            signals,
            left: count.unwrap_or(u64::MAX),
            wait,
            quiet_since: Instant::now(),
            is_working: false,
            is_over: false,
        }
    }

    /// What has arrived, at most `max` messages. Empty: stop. Nothing is lost when the future is
    /// dropped.
    pub(super) async fn next(&mut self, max: usize) -> Result<Vec<Delivery>, Failure> {
        let max = usize::try_from(self.left).map_or(max, |left| left.min(max));
        if self.is_over || max == 0 {
            return Ok(self.stop());
        }
        let wait = self.wait.filter(|_| !self.is_working);
        let quiet_end = wait.map(|wait| self.quiet_since + wait);
        let batch = tokio::select! {
            biased;
            () = self.signals.arrived() => return Ok(self.stop()),
            batch = self.subscription.next_batch(max) => batch,
            () = sleep_until(quiet_end.unwrap_or_else(Instant::now)), if quiet_end.is_some() => {
                return Ok(self.stop());
            }
        };
        let batch = batch.map_err(|error| Failure::subscription(&error))?;
        self.left = self.left.saturating_sub(batch.len() as u64);
        self.quiet_since = Instant::now();
        Ok(batch)
    }

    /// Resolves when a signal asks to stop, also after the end of taking.
    pub(super) async fn asked_to_stop(&mut self) {
        self.signals.arrived().await;
    }

    /// Tells how many of the messages are being worked on.
    pub(super) fn set_working(&mut self, messages: usize) {
        self.is_working = messages > 0;
        self.quiet_since = Instant::now();
    }

    /// Takes no more.
    fn stop(&mut self) -> Vec<Delivery> {
        if !self.is_over {
            self.is_over = true;
            self.subscription.cancel();
        }
        Vec::new()
    }

    /// What arrived and was not taken.
    pub(super) async fn rest(&mut self) -> Vec<Delivery> {
        self.stop();
        let mut rest = Vec::new();
        while let Ok(batch) = self.subscription.next_batch(1_000).await {
            if batch.is_empty() {
                break;
            }
            rest.extend(batch);
        }
        rest
    }
}

/// Gives messages back, to be delivered again at once, and says how many it could. One whose lease
/// has ended is back already.
pub(super) async fn give_back(deliveries: Vec<Delivery>, reason: &'static str) -> u64 {
    let give = |delivery: Delivery| async move {
        let given = delivery.retry_after(Duration::ZERO, reason).await;
        given.is_ok()
    };
    let under_way: JoinSet<bool> = deliveries.into_iter().map(give).collect();
    let given = under_way.join_all().await;
    given.into_iter().filter(|is_given| *is_given).count() as u64
}
