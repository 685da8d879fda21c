//! Hashes of passwords that take the place of older ones.

use tanda_engine::{AdminRequest, UserRequest};
use tokio::sync::mpsc;

use crate::ask::Asker;

/// Those that wait to be written; others are made at another login.
pub(crate) const REHASHES_MAX: usize = 64;

/// Writes them down, for as long as the process lives.
pub(crate) async fn write_hashes(mut hashes: mpsc::Receiver<UserRequest>, asker: Asker) {
    while let Some(request) = hashes.recv().await {
        if let Err(error) = asker.ask(AdminRequest::User(request)).await {
            tracing::debug!(?error, "the hash of a password stays the old one");
        }
    }
}
