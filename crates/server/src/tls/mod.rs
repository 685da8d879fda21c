//! TLS of the doors: files, certificates in use, their replacement while the broker runs.
//!
//! Owns what is read from the files of `tls.*` and refuses to know what flows through a connection.
//!
//! ```text
//!  files ──load──► Certificates ──current()──► handshake of each new connection
//!    ▲                  ▲
//!    └── stamps, every tls.reload_interval; SIGHUP
//! ```

mod certificates;
mod error;
mod files;
mod subject;
mod validity;

pub(crate) use certificates::Certificates;
pub use error::{TlsFileError, TlsFileProblem};
pub(crate) use files::TlsFiles;
pub(crate) use subject::name_of;

use crate::config::Config;

/// Reads and checks the files that the `tls.*` options name, as a start would, and says what is
/// suspicious about them. Nothing to say when no files are named.
///
/// # Errors
/// The first file that cannot be used, and why.
pub fn check_tls_files(config: &Config) -> Result<Vec<String>, TlsFileError> {
    let Some(files) = TlsFiles::of(config) else {
        return Ok(Vec::new());
    };
    files.load().map(|loaded| loaded.warnings)
}
