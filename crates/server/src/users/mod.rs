//! Who peers are, and what they may do.
//!
//! Owns the check of passwords, certificates' names and API keys, and the answers to every question
//! about permissions. The catalog itself is the engine's: here is its newest table.
//!
//! ```text
//!  session ─► Login ─► Authenticator ─► (argon2, on another thread) ─► Admitted ─► session
//!                          ▲                                              │
//!  shard ─► Principals ────┴──────────────── renew ◄──────────────────────┘
//! ```

mod admitted;
mod authenticator;
mod identity;
mod key_identity;
pub(crate) mod password;
mod pattern;
mod rehash;
mod seed;
mod seen;

pub(crate) use admitted::{Admitted, Renewal};
pub(crate) use authenticator::{Authenticator, Rules};
pub(crate) use pattern::Pattern;
pub(crate) use rehash::{REHASHES_MAX, write_hashes};
pub(crate) use seed::{GUEST, seed};

use std::sync::Arc;

use tanda_engine::{KeyTable, UserTable};

/// All who may come in, as of one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Principals {
    pub(crate) keys: Arc<KeyTable>,
    pub(crate) users: Arc<UserTable>,
}
