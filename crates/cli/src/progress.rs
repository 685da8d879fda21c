//! A line on standard error that tells how far long work has come, if a terminal shows it.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use crate::table::counted;

/// Between two looks; also how long work may take without any.
const INTERVAL: Duration = Duration::from_millis(250);

/// See the module. Leaves no trace when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    shown_at: Instant,
    is_shown: bool,
    is_terminal: bool,
}

impl Progress {
    /// `verb` says what is done with messages, like "sent".
    pub(crate) fn new(verb: &'static str) -> Self {
        Self {
            verb,
            shown_at: Instant::now(),
            is_shown: false,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows the count now and then; `total` if it is known.
    pub(crate) fn at(&mut self, done: u64, total: Option<u64>) {
        if !self.is_terminal || self.shown_at.elapsed() < INTERVAL {
            return;
        }
        self.shown_at = Instant::now();
        self.is_shown = true;
        let of = total.map_or_else(String::new, |total| {
            format!(" of {}", counted(total, "message"))
        });
        let count = if total.is_some() {
            crate::table::grouped(done)
        } else {
            counted(done, "message")
        };
        write_over(&format!("{} {count}{of}", self.verb));
    }
}

/// Replaces the line. Carriage return and spaces do without terminal codes.
fn write_over(text: &str) {
    let mut err = io::stderr().lock();
    drop(write!(err, "\r{text:<60}").and_then(|()| err.flush()));
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            write_over("");
            drop(write!(io::stderr(), "\r"));
        }
    }
}
