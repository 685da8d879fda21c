//! How much may be under way.
//!
//! Owns: the bound on the bytes of requests between a handle and their answers, so that a caller
//! which produces faster than the broker accepts waits, and memory does not grow.
//! Refuses to know: what a request means.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a permit stands for; a request of any size takes at least one.
const BYTES_PER_PERMIT: usize = 1024;
/// What all requests under way may take: 64 Ki small requests, or 64 MiB of larger ones.
const PERMITS: usize = 64 * 1024;

/// The room that all handles of a client share.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(PERMITS)),
        }
    }
}

impl Budget {
    /// Waits until a request of this size fits. One that is larger than the budget takes all of it
    /// and goes alone. `None`: never, which does not happen while the client lives.
    pub(crate) async fn permit(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = bytes.div_ceil(BYTES_PER_PERMIT).clamp(1, PERMITS);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.permits).acquire_many_owned(wanted).await;
        permit.ok()
    }
}
