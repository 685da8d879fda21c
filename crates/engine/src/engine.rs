//! The engine: one shard's queues, driven by requests and time.

use crate::{ConnId, DeliveryBatch, EngineConfig, Journal, Lsn, Millis, Output, Request};

/// Why a record of the log cannot be applied: it is damaged, or of a newer version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayError {
    /// What is wrong with it.
    pub problem: String,
}

/// One shard of the broker.
pub struct Engine {
    _config: EngineConfig,
}

impl Engine {
    /// An engine without queues. Next: [`Engine::replay`] for every record, then
    /// [`Engine::start`].
    #[must_use]
    pub const fn new(config: EngineConfig) -> Self {
        Self { _config: config }
    }

    /// Applies one record of the log, in log order. `at` is the position of its first byte.
    ///
    /// # Errors
    /// `ReplayError` when the record makes no sense: do not serve from this state.
    pub fn replay(&mut self, at: Lsn, record: &[u8]) -> Result<(), ReplayError> {
        let _ = (at, record);
        Ok(())
    }

    /// The newest time a replayed record carries: the clock must not start before it.
    #[must_use]
    pub const fn newest_time(&self) -> Millis {
        Millis(0)
    }

    /// Ends recovery: arms timers and makes the engine ready for requests.
    pub fn start(&mut self, now: Millis, journal: &mut dyn Journal) {
        let _ = (now, journal);
    }

    /// Takes one request. Answers go to `out`, each with the log position it waits for.
    pub fn handle(
        &mut self,
        now: Millis,
        journal: &mut dyn Journal,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        let _ = (now, journal, request, out);
    }

    /// One bounded pass: due timers, slices of long work, then deliveries. True when more could
    /// be done at once.
    #[must_use]
    pub fn run(&mut self, now: Millis, journal: &mut dyn Journal, out: &mut Vec<Output>) -> bool {
        let _ = (now, journal, out);
        false
    }

    /// When `run` has something to do although no request comes.
    #[must_use]
    pub const fn next_deadline(&self) -> Option<Millis> {
        None
    }

    /// Takes back a delivery that was not released before its subscription ended: its messages
    /// return to their places and the attempt is not counted. Call it before the `Disconnect` or
    /// `Unsubscribe` is handled.
    pub fn undelivered(
        &mut self,
        now: Millis,
        journal: &mut dyn Journal,
        conn: ConnId,
        batch: &DeliveryBatch,
    ) {
        let _ = (now, journal, conn, batch);
    }

    /// While set, publishes and new queues are refused with `Storage`; settling goes on.
    pub const fn set_storage_full(&mut self, full: bool) {
        let _ = full;
    }

    /// Writes what is still needed from the log's oldest segments again, and returns the position
    /// below which nothing is needed once the log is durable up to its present end. `oldest` is
    /// the log's first position. Cheap when nothing can be released.
    #[must_use]
    pub fn release_log(&mut self, now: Millis, journal: &mut dyn Journal, oldest: Lsn) -> Lsn {
        let _ = (now, journal);
        oldest
    }

    /// Panics when the state contradicts itself. For tests and the simulator.
    pub const fn assert_invariants(&self) {}
}
