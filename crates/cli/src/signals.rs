//! The wish to stop: SIGINT and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// From here on the signals do not end the process; whoever made this must listen.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|source| Failure::io("listen for signals", source));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    /// Resolves when one comes. Nothing is lost when the future is dropped.
    pub(crate) async fn arrived(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
