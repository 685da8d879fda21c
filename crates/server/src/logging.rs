//! Log lines on standard error.

use std::io;

use tracing::Level;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt};

use crate::{audit, config::LogLevel};

/// Starts logging. Does nothing when the process logs already.
pub(crate) fn init(level: LogLevel) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        // A line that cannot be written is lost. Reporting that on standard error too would panic.
        .log_internal_errors(false)
        .finish()
        .with(
            Targets::new()
                .with_default(level)
                .with_target(audit::TARGET, Level::INFO),
        );
    // A second one is refused, which is what should happen.
    drop(tracing::subscriber::set_global_default(subscriber));
}
