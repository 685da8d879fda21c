//! The faults, and how often each strikes in a run.
//!
//! A fault belongs here only when the broker promises to survive it; `docs/simulator.md` lists them
//! with their sources.

use std::io::ErrorKind;

use tanda_wal::DiskCall;
use tanda_wal::mem_disk::Fault;

use crate::host::Host;
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
            // A disk that fills up always gets room again.
            if is_in || *strike == Strike::Room {
                rates.push((*strike, rate));
            }
        }
        Self { rates, random }
    }

    /// The disk may fail calls in this run.
    pub(crate) fn has_disk_faults(&self) -> bool {
        self.rates
            .iter()
            .any(|(strike, _)| !matches!(strike, Strike::Room | Strike::Cut))
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
    pub(crate) fn prepare(&mut self, strike: Strike, host: &Host) {
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
            Strike::PowerLoss | Strike::Kill | Strike::Cut => {}
        }
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
