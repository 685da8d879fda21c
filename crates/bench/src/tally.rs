//! What the connections of one measurement have done together.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::BenchError;

/// Longest time a histogram tells apart.
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// Latencies in nanoseconds, to three significant digits.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub(crate) fn new() -> Result<Self, BenchError> {
        Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
            .map(Self)
            .map_err(|e| BenchError::Stuck(format!("no histogram: {e}")))
    }

    /// Adds one.
    pub(crate) fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_NS_MAX);
        self.0.saturating_record(ns);
    }

    /// Adds all of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so nothing can be out of range.
        self.0.add(&other.0).ok();
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency, in microseconds, that `percent` of all do not exceed.
    pub(crate) fn micros(&self, percent: f64) -> f64 {
        micros(self.0.value_at_percentile(percent))
    }

    /// The longest, in microseconds.
    pub(crate) fn micros_max(&self) -> f64 {
        micros(self.0.max())
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }
}

fn micros(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e6
}

/// How far the connections may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Messages sent in all.
    pub(crate) sent_max: u64,
    /// Messages sent and not yet acked.
    pub(crate) lag_max: u64,
    /// Deliveries that will come; after the last, consumers ack what they hold.
    pub(crate) delivered_expected: u64,
}

impl Limits {
    /// None.
    pub(crate) const NONE: Self = Self {
        sent_max: u64::MAX,
        lag_max: u64::MAX,
        delivered_expected: u64::MAX,
    };
}

/// Counts in messages, except where said otherwise.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Zero of the times in payloads.
    pub(crate) epoch: Instant,
    /// Handed to a socket.
    pub(crate) sent: u64,
    /// Answered Ok.
    pub(crate) confirmed: u64,
    /// Received by consumers.
    pub(crate) delivered: u64,
    /// Acks answered Ok.
    pub(crate) acked: u64,
    /// Refused as ChannelFull, to be sent again.
    pub(crate) refused: u64,
    /// Refused for any other reason.
    pub(crate) failures: u64,
    /// The first of them.
    pub(crate) first_failure: Option<String>,
    /// Requests without an answer yet.
    pub(crate) requests_open: u64,
    /// From sending (or when it should have been sent) to the confirm.
    pub(crate) confirms: Latencies,
    /// From when it should have been sent to the delivery.
    pub(crate) end_to_end: Latencies,
    /// Producers that wait for others should look again.
    pub(crate) wake_all: bool,
    /// When refused requests may be sent again.
    pub(crate) retry_at: Option<Instant>,
    /// What stops producers.
    pub(crate) limits: Limits,
}

impl Tally {
    /// Nothing done.
    pub(crate) fn new(limits: Limits) -> Result<Self, BenchError> {
        Ok(Self {
            epoch: Instant::now(),
            sent: 0,
            confirmed: 0,
            delivered: 0,
            acked: 0,
            refused: 0,
            failures: 0,
            first_failure: None,
            requests_open: 0,
            confirms: Latencies::new()?,
            end_to_end: Latencies::new()?,
            wake_all: false,
            retry_at: None,
            limits,
        })
    }

    /// Whether a producer may send so many more.
    pub(crate) const fn may_send(&self, messages: u64) -> bool {
        self.sent.saturating_add(messages) <= self.limits.sent_max
            && self.sent.saturating_sub(self.acked) < self.limits.lag_max
    }

    /// Counts what the server refused for good.
    pub(crate) fn fail(&mut self, messages: u64, why: impl FnOnce() -> String) {
        if messages > 0 {
            self.failures += messages;
            self.first_failure.get_or_insert_with(why);
        }
    }

    /// The time since the epoch, for a payload.
    pub(crate) fn stamp(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.epoch);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}
