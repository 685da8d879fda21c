//! The faults, and how often each strikes in a run.
//!
//! A fault belongs here only when the broker promises to survive it; `docs/simulator.md` lists them
//! with their sources.

use std::io::ErrorKind;

use tanda_wal::DiskCall;
use tanda_wal::mem_disk::Fault;

use crate::host::{Host, Pace};
use crate::random::Random;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    /// The machine loses power now.
    PowerLoss,
    /// The process is killed now.
    Kill,
    /// The machine loses power after some more disk operations.
    PowerLossSoon,
    /// A disk call fails soon.
    DiskError,
    /// A read or write is cut short soon.
    ShortCall,
    /// The disk is full, but for a little.
    Full,
    /// The disk has room again.
    Room,
    /// A connection breaks.
    Cut,
    /// A client ends its sending side and reads on.
    HalfClose,
    /// One direction of a connection stops for a while: a slow network, or a slow reader.
    Stall,
    /// A client is gone, and nothing tells the broker.
    Vanish,
    /// The disk becomes slow, at flushes, reads and background jobs.
    Slow,
    /// The disk is as quick as before.
    Quick,
    /// A bit of a file turns while the broker runs.
    Rot,
    /// Whatever turned bits is mended.
    Mend,
}

impl Strike {
    /// A call of the disk may fail, or the process end.
    const fn is_of_disk(self) -> bool {
        match self {
            Self::PowerLoss
            | Self::Kill
            | Self::PowerLossSoon
            | Self::DiskError
            | Self::ShortCall
            | Self::Full
            | Self::Rot => true,
            Self::Room
            | Self::Cut
            | Self::HalfClose
            | Self::Stall
            | Self::Vanish
            | Self::Slow
            | Self::Quick
            | Self::Mend => false,
        }
    }
}

/// How often each fault strikes: once in so many steps, `None` never.
pub(crate) struct Plan {
    rates: Vec<(Strike, u64)>,
    random: Random,
}

/// Each fault with the range its rate is drawn from.
const RATES: &[(Strike, u64, u64)] = &[
    (Strike::PowerLoss, 300, 4_000),
    (Strike::Kill, 300, 4_000),
    (Strike::PowerLossSoon, 200, 3_000),
    (Strike::DiskError, 400, 4_000),
    (Strike::ShortCall, 50, 1_000),
    (Strike::Full, 500, 3_000),
    (Strike::Room, 100, 600),
    (Strike::Cut, 60, 1_500),
    (Strike::HalfClose, 200, 3_000),
    (Strike::Stall, 30, 1_000),
    (Strike::Vanish, 300, 3_000),
    (Strike::Slow, 300, 3_000),
    (Strike::Quick, 50, 500),
    (Strike::Rot, 100, 2_000),
    (Strike::Mend, 100, 1_000),
];

impl Plan {
    /// Every seed has a mixture of its own; one in ten has none.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut random = Random::stream(seed, "faults");
        let share = random.below(10);
        let mut rates = Vec::new();
        for (strike, low, high) in RATES {
            let is_in = random.below(10) < share;
            let rate = random.between(*low, *high);
            // What goes wrong for a while always ends.
            if is_in || matches!(strike, Strike::Room | Strike::Quick | Strike::Mend) {
                rates.push((*strike, rate));
            }
        }
        Self { rates, random }
    }

    /// The disk may fail calls in this run.
    pub(crate) fn has_disk_faults(&self) -> bool {
        self.rates.iter().any(|(strike, _)| strike.is_of_disk())
    }

    /// What strikes in this step.
    pub(crate) fn next(&mut self) -> Option<Strike> {
        let mut struck = None;
        for (strike, rate) in &self.rates {
            if self.random.one_in(*rate) {
                struck = Some(*strike);
            }
        }
        struck
    }

    /// Sets up a fault of the disk.
    pub(crate) fn prepare(&mut self, strike: Strike, host: &mut Host) {
        let random = &mut self.random;
        let disk = &host.disk;
        match strike {
            Strike::PowerLossSoon => disk.crash_after(random.below(60)),
            Strike::DiskError => {
                let call = random.pick(CALLS).copied().unwrap_or(DiskCall::Sync);
                let kind = random.pick(KINDS).copied().unwrap_or(ErrorKind::Other);
                disk.inject(call, 1 + random.below(5), Fault::Fail(kind));
            }
            Strike::ShortCall => {
                let nth = 1 + random.below(5);
                if random.one_in(2) {
                    disk.inject(DiskCall::Read, nth, Fault::Short(random.length(8192)));
                } else {
                    // The rest may be lost alone, and no disk writes a part of a sector.
                    let bytes = 512 * random.length(16);
                    disk.inject(DiskCall::Write, nth, Fault::Short(bytes));
                }
            }
            Strike::Full => disk.set_capacity(Some(disk.used_bytes() + random.below(40_000))),
            Strike::Room => disk.set_capacity(None),
            Strike::Slow => {
                host.pace = Pace {
                    flush_ms: random.below(1_500),
                    read_ms: random.below(20),
                    background_ms: random.below(3_000),
                };
            }
            Strike::Quick => host.pace = Pace::default(),
            Strike::Rot => rot(random, host),
            Strike::Mend => host.disk.mend(),
            Strike::PowerLoss
            | Strike::Kill
            | Strike::Cut
            | Strike::HalfClose
            | Strike::Stall
            | Strike::Vanish => {}
        }
    }
}

/// One bit of any file, or a few of one.
fn rot(random: &mut Random, host: &Host) {
    let names = host.disk.names();
    let Some(name) = random.pick(&names) else {
        return;
    };
    let len = host.disk.content(name).map_or(0, |content| content.len());
    for _ in 0..random.length(8) {
        host.disk.rot(name, random.index(len));
    }
}

const CALLS: &[DiskCall] = &[
    DiskCall::Lock,
    DiskCall::List,
    DiskCall::Create,
    DiskCall::Open,
    DiskCall::Remove,
    DiskCall::Rename,
    DiskCall::SyncDir,
    DiskCall::Read,
    DiskCall::Read,
    DiskCall::Write,
    DiskCall::Write,
    DiskCall::Sync,
    DiskCall::Sync,
    DiskCall::Len,
    DiskCall::Allocate,
    DiskCall::SetLen,
];

const KINDS: &[ErrorKind] = &[
    ErrorKind::Other,
    ErrorKind::StorageFull,
    ErrorKind::Interrupted,
];
