//! The broker under a fake clock, disk and network: one seed draws everything.
//!
//! Owns: clients that speak Fila bytes, a network that cuts them anywhere, a process that dies at
//! any step, the choice of what happens next, and the promises that are checked. Refuses to know
//! the broker's inside: node and sessions are driven as `server` drives them, and judged by what
//! clients see.
//!
//! ```text
//!  clients ──bytes──► network ──► sessions ──requests──► channel ──► node ──► disk
//!     │                  ▲           ▲                                │ effects, once durable
//!     ▼                  └───────────┴────────────── mail ◄───────────┘
//!  history ──► invariants
//! ```
//!
//! A run has a phase of faults, then it heals: no more faults, everything is drained and counted.
//! `docs/simulator.md` says what is promised under which faults, and how to replay a seed.

mod clients;
mod disk;
mod failure;
mod faults;
mod history;
mod host;
mod invariants;
mod random;
mod trace;
mod world;

pub use failure::Failure;
pub use history::Counts;
pub use history::amaquet::AmaquetCounts;
pub use history::amqp::AmqpCounts;
pub use world::{Report, run};

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Steps of the phase with faults.
    pub steps: u64,
    /// The bug to build in.
    pub canary: Canary,
    /// Keeps a line per event, for [`Failure::log`].
    pub keeps_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            steps: 6_000,
            canary: Canary::None,
            keeps_log: false,
        }
    }
}

/// A bug in the simulator's own glue, to see that it would be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Canary {
    /// None: the broker as it is.
    #[default]
    None,
    /// Syncs do nothing, so effects are released before their records are on disk.
    SyncLies,
    /// One write in sixteen is dropped.
    LostWrites,
    /// One batch of acks in twenty is answered and forgotten.
    ForgottenAcks,
    /// One batch of messages in twenty is confirmed and forgotten.
    ForgottenMessages,
    /// One delivery in fifty reaches its session twice.
    RepeatedDelivery,
    /// Syncs of the page file do nothing: snapshots name pages that are not on disk.
    UnsyncedPages,
    /// Syncs of snapshot files do nothing: one counts before it is on disk.
    UnsyncedSnapshots,
    /// A page is written over the page in the slot before, as if that were free already.
    ReusedSlot,
    /// Deliveries are reported as having left when they have only come.
    DrainedEarly,
    /// Purges are answered and forgotten.
    ForgottenPurges,
    /// Backups leave records out.
    BackupGaps,
    /// Deliveries of one turn come sorted by key.
    SortedDeliveries,
    /// A bit of what is read from the disk has turned, and nobody looks.
    TurnedBits,
    /// Files are removed by name only: they stay.
    KeptFiles,
    /// What `on_enqueue` returned is ignored.
    IgnoredScripts,
    /// What `on_failure` decided becomes another try at once.
    ForgottenDecisions,
    /// Throttles are declared and forgotten.
    ForgottenThrottles,
    /// Live connections never hear that keys have changed.
    StaleKeys,
    /// Revocations are answered and forgotten.
    ForgottenRevocations,
    /// Timers of connections never ring.
    NoTimers,
    /// The oldest segment is gone after a crash, as if nothing in it were needed any more.
    FreedSegment,
    /// One binding in three is answered and forgotten.
    ForgottenBindings,
    /// Rejected messages leave their queue, and arrive nowhere.
    LostDeadLetters,
    /// AMQP messages are confirmed before they are on disk.
    EarlyConfirms,
    /// One in five messages that come again come twice.
    DoubleRequeues,
    /// Alternate exchanges are declared and forgotten.
    ForgottenAlternates,
    /// Messages of FireMQ are kept as if they were transient.
    TransientFire,
    /// Messages of FireMQ always come as if for the first time.
    FreshFire,
    /// Exclusive queues and those that are deleted with their last consumer are declared as others.
    ImmortalQueues,
    /// One addition to a counter in five is answered and forgotten.
    ForgottenAdditions,
    /// One in five items of lists goes back to its list when its client gets it.
    DoubleItems,
}
