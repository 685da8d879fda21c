//! A log is written, its files are damaged, and it is opened: it is refused, or what comes out is
//! what was written.
//!
//! The input is a script of two parts: what is written, with crashes and restarts between
//! (`Write`), and what then happens to the files (`damage::Damage`). The promises, by damage:
//!
//! - always: no panic; what is replayed is a run of the written records, and the log goes on;
//! - one place of one file is damaged: below the proven end nothing is missing, or it is refused
//!   (more damage may hit both a record and all that proves that it was synced);
//! - nothing but names changed: everything that was durable comes back.

mod written;

use tanda_wal::OpenError;

use crate::damage::{self, Harm};
use crate::script::Script;
use written::{Written, open};

/// What a step of the first part does; its byte modulo their number is its place in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Appends a record: `u16` length.
    Append,
    /// Appends one and flushes.
    Commit,
    /// Flushes.
    Flush,
    /// Lets the log write its marker.
    Idle,
    /// The machine stops in the middle of a flush: after how many disk calls.
    Crash,
    /// The process is killed.
    Kill,
    /// The log starts at one of its records from now on: which.
    Start,
    /// The second part begins.
    End,
}

impl Write {
    pub(crate) const ALL: [Self; 8] = [
        Self::Append,
        Self::Commit,
        Self::Flush,
        Self::Idle,
        Self::Crash,
        Self::Kill,
        Self::Start,
        Self::End,
    ];
}

/// Steps that write, of one input.
const WRITES_MAX: usize = 60;

/// Runs one input.
///
/// # Panics
/// When recovery breaks a promise.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let written = write(&mut script);
    let disk = written.files();
    let harm = damage::harm(&disk, &mut script);
    match open(&disk, written.from()) {
        Ok((log, replayed)) => {
            let run = written.run_of(&replayed);
            written.check_complete(&run, harm);
            written.check_going_on(&disk, log, &replayed);
        }
        Err(error) => {
            assert!(harm > Harm::Names, "only names changed: {error}");
            let is_disk = matches!(error, OpenError::Disk(_));
            assert!(!is_disk, "no disk call failed: {error}");
        }
    }
}

/// The first part. The log is closed at its end, as if the process had been killed.
fn write(script: &mut Script<'_>) -> Written {
    let mut written = Written::new(u64::from(script.byte()));
    for _ in 0..WRITES_MAX {
        if script.is_empty() {
            break;
        }
        let at = script.pick(Write::ALL.len());
        match Write::ALL.get(at).copied().unwrap_or(Write::End) {
            Write::Append => written.append(script.u16()),
            Write::Commit => {
                written.append(script.u16());
                written.flush();
            }
            Write::Flush => written.flush(),
            Write::Idle => written.idle(),
            Write::Crash => written.crash(u64::from(script.byte() % 16)),
            Write::Kill => written.kill(),
            Write::Start => written.set_start(script.u16()),
            Write::End => break,
        }
    }
    written
}
