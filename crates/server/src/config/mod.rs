//! Configuration: what can be set, where from, and what it resolves to.
//!
//! Owns the declaration of every option and the rules by which layers override each other. It
//! refuses to know the process: arguments, environment and file come in as [`Sources`].

mod check;
mod document;
mod load;
mod nearest;
mod options;
mod setting;
mod users;

pub use document::markdown;
pub use load::{Loaded, Mistake, Mistakes, Source, Sources, load};
pub use options::{Config, OPTIONS, OptionSpec};
pub use setting::{
    Authenticate, BackoffShape, ByteSize, CertificateName, ClientAuth, ConfiguredSecret, Kind,
    LogLevel,
};
pub use users::{ConfiguredPassword, ConfiguredUser};
