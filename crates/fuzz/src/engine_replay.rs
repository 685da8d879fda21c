//! Records, damaged or made up, are replayed: the engine refuses them, or it starts and serves.
//!
//! The input is a script: settings, then records (`Source`) until its end. The promises:
//!
//! - always: no panic, no memory or time out of proportion, at replay, start and work;
//! - records of a sound log, from its first to any: they are taken, and the engine's invariants
//!   hold from then on.
//!
//! A log hands its engine only records whose checksums are right, so all but the last is about a
//! build that wrote nonsense. What such records say of a message cannot all be checked without
//! keeping every message ever seen, so their state may be nonsense too, but nothing worse.

mod base;
pub(crate) mod journal;
mod keys;
mod serve;

use tanda_engine::{Engine, EngineConfig, Lsn, Millis};

use crate::script::Script;
use journal::MemJournal;
use serve::{Checks, Driver};

/// Where a record comes from; its byte modulo their number is its place in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The next records of a sound log: how many.
    Next,
    /// The next one is left out.
    Skip,
    /// A record of that log, again or too early: which.
    Any,
    /// The next one with a byte changed: offset, value.
    Change,
    /// The next one with a number set: offset, 8 bytes.
    Number,
    /// The next one cut: length.
    Cut,
    /// The next one with bytes behind it, a length and they.
    Longer,
    /// Bytes as they are: a length and they.
    Raw,
    /// Bytes behind a header: kind, queue, a length and they.
    Made,
    /// The position jumps ahead: `u32`.
    Jump,
}

impl Source {
    pub(crate) const ALL: [Self; 10] = [
        Self::Next,
        Self::Skip,
        Self::Any,
        Self::Change,
        Self::Number,
        Self::Cut,
        Self::Longer,
        Self::Raw,
        Self::Made,
        Self::Jump,
    ];
}

/// Steps of one input.
const STEPS_MAX: usize = 200;

/// Settings under which pages are made of few messages.
fn config(bits: u8) -> EngineConfig {
    EngineConfig {
        segment_shift: 12,
        page_messages: 1 + u32::from(bits % 4) * 2,
        lane_hot: u32::from(bits >> 2 & 3) * 4 + 2,
        ..EngineConfig::default()
    }
}

/// Runs one input.
///
/// # Panics
/// When the engine breaks a promise.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let config = config(script.byte());
    let mut engine = Engine::new(config);
    let mut log = Log {
        base: base::records(),
        next: 0,
        at: Lsn(4096),
        is_sound: true,
    };
    for _ in 0..STEPS_MAX {
        if script.is_empty() {
            break;
        }
        if let Err(error) = log.step(&mut script, &mut engine) {
            assert!(!log.is_sound, "a sound log is refused: {}", error.problem);
            return;
        }
    }
    let mut journal = MemJournal::new(log.at);
    let now = base::END.max(engine.newest_time().min(FAR));
    match engine.start(now, &mut journal) {
        Ok(()) => {
            let checks = if log.is_sound {
                Checks::All
            } else {
                Checks::None
            };
            serve::serve(Driver::new((engine, checks), journal, now));
        }
        Err(error) => assert!(!log.is_sound, "a sound log is refused: {}", error.problem),
    }
}

/// A clock never starts beyond this: a record that claims a later time must not break it.
const FAR: Millis = Millis(1 << 47);

/// What is replayed.
struct Log<'a> {
    base: &'a [Vec<u8>],
    next: usize,
    at: Lsn,
    /// So far the records are those of the base, in order.
    is_sound: bool,
}

impl Log<'_> {
    fn step(
        &mut self,
        script: &mut Script<'_>,
        engine: &mut Engine,
    ) -> Result<(), tanda_engine::ReplayError> {
        let at = script.pick(Source::ALL.len());
        let source = Source::ALL.get(at).copied().unwrap_or(Source::Next);
        let record = match source {
            Source::Next => {
                for _ in 0..=script.byte() % 64 {
                    let record = self.take();
                    self.replay(engine, &record)?;
                }
                return Ok(());
            }
            Source::Skip => {
                self.is_sound &= self.take().is_empty();
                return Ok(());
            }
            Source::Jump => {
                self.at.0 += u64::from(script.u32());
                return Ok(());
            }
            Source::Any => {
                let which = script.pick(self.base.len().min(256));
                self.base.get(which).cloned().unwrap_or_default()
            }
            Source::Raw => script.short().to_vec(),
            Source::Made => made(script),
            Source::Change | Source::Number | Source::Cut | Source::Longer => {
                changed(source, self.take(), script)
            }
        };
        self.is_sound = false;
        self.replay(engine, &record)
    }

    fn take(&mut self) -> Vec<u8> {
        let record = self.base.get(self.next).cloned();
        self.next += usize::from(record.is_some());
        record.unwrap_or_default()
    }

    fn replay(
        &mut self,
        engine: &mut Engine,
        record: &[u8],
    ) -> Result<(), tanda_engine::ReplayError> {
        if record.is_empty() {
            return Ok(());
        }
        let at = Lsn(self.at.0 + 4);
        self.at.0 = at.0 + record.len() as u64;
        engine.replay(at, record)
    }
}

/// A header of version 1 and any bytes behind it.
fn made(script: &mut Script<'_>) -> Vec<u8> {
    let kind = script.byte() % 24;
    let mut record = vec![kind, 1];
    record.extend_from_slice(&u32::from(script.byte() % 8).to_be_bytes());
    record.extend_from_slice(&[0; 12]);
    record.extend_from_slice(&base::START.0.to_be_bytes());
    record.extend_from_slice(script.short());
    record
}

fn changed(how: Source, mut record: Vec<u8>, script: &mut Script<'_>) -> Vec<u8> {
    let at = script.pick(record.len().min(256));
    match how {
        Source::Number => {
            for (byte, new) in record.iter_mut().skip(at).zip(script.bytes(8)) {
                *byte = *new;
            }
        }
        Source::Cut => record.truncate(at),
        Source::Longer => record.extend_from_slice(script.short()),
        Source::Next
        | Source::Skip
        | Source::Any
        | Source::Change
        | Source::Raw
        | Source::Made
        | Source::Jump => {
            let value = script.byte();
            if let Some(byte) = record.get_mut(at) {
                *byte = value;
            }
        }
    }
    record
}
