//! Opening a log: what is there, what of it counts, and a safe place to go on.
//!
//! The order matters, because a crash may come at any point of it and the next attempt must
//! find the same records. Nothing is overwritten that the old log may still need until the new
//! segment's header, which takes over, has been synced. See `docs/formats/log.md`, "Recovery".

mod carry;
mod chain;
mod inventory;
mod reader;
mod tail_scan;

use std::io::ErrorKind;
use std::sync::Arc;

use crate::config::Config;
use crate::disk::{Disk, DiskCall, DiskError, DiskFile, write_all_at};
use crate::error::{OpenError, ReplayError};
use crate::format::{Claims, SlotState};
use crate::log::{Recovered, Replay};
use crate::lsn::{Geometry, Lsn, SegmentIndex};
use crate::segments::{Segment, Segments};
use crate::slots::{Inventory, NoSlot, Slot, Slots, sync};
use crate::tail::{Place, Window};
use chain::Live;
use inventory::Found;
use tail_scan::TailScan;

/// Opens the log. See the module head.
pub(crate) fn open<D: Disk>(
    disk: Arc<D>,
    config: &Config,
    from: Lsn,
    replay: &mut Replay<'_>,
) -> Result<Recovered<D>, OpenError> {
    let lock = Arc::new(take_lock(&*disk)?);
    let found = inventory::read(&*disk, config)?;
    let (live, spares) = chain::sort_files(found.files)?;
    let next = Inventory {
        lock,
        spares,
        next_number: found.next_number,
        epoch: found.epoch_max,
    };
    let mut recovered = match live.last() {
        None if !found.cold.is_empty() || from > Lsn(0) => {
            return Err(OpenError::EndsEarly {
                end: Lsn(0),
                needed: from,
            });
        }
        None => begin_log(disk, config, next)?,
        Some(_) => {
            let old = OldLog::read(config, live, from, replay)?;
            go_on(disk, config, next, old, replay)?
        }
    };
    hold_cold(config, &mut recovered, found.cold);
    Ok(recovered)
}

/// Adds the cold segments to what was recovered.
fn hold_cold<D: Disk>(config: &Config, recovered: &mut Recovered<D>, cold: Vec<Found<D::File>>) {
    let geometry = Geometry::new(config.segment_bytes);
    for found in cold {
        if let Ok(live) = as_live(found, geometry) {
            let end = live.window.numbers().end & !geometry.cold_bit();
            recovered.next_cold = recovered.next_cold.max(end);
            recovered.segments.insert_cold(live.into_unread(geometry));
        }
    }
}

fn take_lock<D: Disk>(disk: &D) -> Result<D::Lock, OpenError> {
    disk.lock().map_err(|e| {
        if e.kind() == ErrorKind::WouldBlock {
            OpenError::Locked
        } else {
            OpenError::Disk(DiskError::new(DiskCall::Lock, "", e))
        }
    })
}

/// Starts a log in a directory without segments.
fn begin_log<D: Disk>(
    disk: Arc<D>,
    config: &Config,
    found: Inventory<D>,
) -> Result<Recovered<D>, OpenError> {
    let geometry = Geometry::new(config.segment_bytes);
    if found.epoch > 0 {
        // A spare that was made while a log was in use: its segments are gone.
        return Err(OpenError::MissingSegment {
            before: Lsn(0),
            named_by: found
                .spares
                .first()
                .map_or_else(String::new, |slot| slot.name.clone()),
        });
    }
    let mut slots = Slots::new(disk, config, found);
    let place = Place::for_batch(geometry, SegmentIndex(1), 0);
    let claims = Claims {
        synced: place.position,
        start: geometry.base(SegmentIndex(1)),
    };
    let slot = slots
        .take_slot(place.segment, geometry.segment_bytes())
        .map_err(no_slot)?;
    slots.set_epoch(FIRST_EPOCH);
    slots.begin(slot.clone(), place.segment, (0, claims.start))?;
    slots.make_spares()?;
    let mut segments = Segments::new(geometry);
    segments.push(Segment::new(geometry, place.segment, FIRST_EPOCH, slot));
    Ok(Recovered {
        slots,
        segments,
        epoch: FIRST_EPOCH,
        place,
        claims,
        records_end: place.position,
        next_cold: 1,
    })
}

/// What was found of an existing log. Its proven records have been replayed.
struct OldLog<F> {
    newest: Live<F>,
    scan: TailScan,
    /// Those before the start of the log, unread, and then those with proven records, oldest first.
    segments: Segments<F>,
    passed_over: Vec<Live<F>>,
    /// Proven end of the log.
    proven_end: u64,
    /// Where the log starts: where it said so before or, when all of it is replayed, the base of
    /// the oldest segment, if one has proven records.
    start: Option<u64>,
}

impl<F: DiskFile> OldLog<F> {
    fn read(
        config: &Config,
        live: Vec<Live<F>>,
        from: Lsn,
        replay: &mut Replay<'_>,
    ) -> Result<Self, OpenError> {
        let mut live = live;
        let Some(newest) = live.pop() else {
            return Err(OpenError::MissingSegment {
                before: Lsn(0),
                named_by: String::new(),
            });
        };
        let geometry = Geometry::new(config.segment_bytes);
        let scan = tail_scan::scan(&newest, config)?;
        if from > Lsn(0) && from.0 < scan.start {
            return Err(OpenError::StartsLater {
                start: Lsn(scan.start),
                from,
            });
        }
        let chain = chain::walk(geometry, live, &newest, scan.start.max(from.0))?;
        let has_proven = scan.proven > geometry.first_batch(newest.window.index);
        let proven_end = if has_proven {
            scan.proven
        } else {
            newest.previous_end
        };
        // Nothing lies between the proven end and the first batch of a segment without a proven
        // one.
        if from.0 > scan.proven.max(proven_end) {
            return Err(OpenError::EndsEarly {
                end: Lsn(proven_end),
                needed: from,
            });
        }
        let mut segments = Segments::new(geometry);
        for live in chain.held {
            segments.push(live.into_unread(geometry));
        }
        let mut replay = from_on(from, replay);
        let mut start = None;
        for (link, end) in chain.links {
            start = start.or(Some(link.base));
            segments.push(reader::replay_segment(&link, end, config, &mut replay)?);
        }
        if has_proven {
            let end = scan.proven;
            start = start.or(Some(newest.base));
            segments.push(reader::replay_segment(&newest, end, config, &mut replay)?);
        }
        if from > Lsn(0) {
            // What lets the caller begin here may be lost before the log says so: what lies between
            // stays until then.
            start = Some(scan.start);
        }
        Ok(Self {
            start,
            newest,
            scan,
            segments,
            passed_over: chain.passed_over,
            proven_end,
        })
    }
}

/// Passes on the records from `from` on.
fn from_on(
    from: Lsn,
    replay: &mut Replay<'_>,
) -> impl FnMut(Lsn, &[u8]) -> Result<(), ReplayError> {
    move |at, record| {
        if at < from {
            return Ok(());
        }
        replay(at, record)
    }
}

/// Begins a new epoch after the old log, taking its unproven tail along.
fn go_on<D: Disk>(
    disk: Arc<D>,
    config: &Config,
    mut found: Inventory<D>,
    mut old: OldLog<D::File>,
    replay: &mut Replay<'_>,
) -> Result<Recovered<D>, OpenError> {
    let geometry = Geometry::new(config.segment_bytes);
    let epoch = found.epoch + 1;
    found.epoch = epoch;
    let later = sort_leftovers(config, &mut found, &mut old)?;
    let mut slots = Slots::new(disk, config, found);

    let index = SegmentIndex(old.newest.window.index.0 + u64::from(old.newest.window.span));
    let claims = Claims {
        synced: old.proven_end,
        start: old.start.unwrap_or_else(|| geometry.base(index)),
    };
    let moved = carry::Move {
        geometry,
        index,
        epoch,
        claims,
    };
    let new = carry::carry(&mut slots, config, &old, &moved)?;
    let mut segments = old.segments;
    retire(
        &mut slots,
        &mut segments,
        (old.newest, old.scan.proven),
        geometry,
    );
    slots.take_back(later);
    slots.make_spares()?;

    let place = new.place;
    let records_end = if new.carried {
        place.position
    } else {
        old.proven_end
    };
    segments.push(reader::replay_segment(
        &new.live,
        place.position,
        config,
        replay,
    )?);
    slots.resume_at(place.position);
    Ok(Recovered {
        slots,
        segments,
        epoch,
        place,
        claims,
        records_end,
        next_cold: index.0,
    })
}

/// Adds to the spare files what can be overwritten at once, and returns those files that have to
/// wait until the new segment counts.
fn sort_leftovers<D: Disk>(
    config: &Config,
    found: &mut Inventory<D>,
    old: &mut OldLog<D::File>,
) -> Result<Vec<Slot<D::File>>, OpenError> {
    if !old.passed_over.is_empty() {
        // It is the newest segment's header that leaves them out, and it may be in the page cache
        // only, after a sync that failed. Writing it again as it is makes sure of it.
        let slot = &old.newest.slot;
        write_all_at(&*slot.file, 0, &old.newest.header.encode())
            .map_err(|e| DiskError::new(DiskCall::Write, &slot.name, e))?;
        sync(slot)?;
    }
    let usable = std::mem::take(&mut old.passed_over);
    found
        .spares
        .extend(usable.into_iter().map(|live| live.slot));
    let (spares, odd) = std::mem::take(&mut found.spares)
        .into_iter()
        .partition(|slot| slot.bytes == config.segment_bytes);
    found.spares = spares;
    Ok(odd)
}

/// Gives up what the old newest segment does not need: all of it, or the unused rest.
fn retire<D: Disk>(
    slots: &mut Slots<D>,
    segments: &mut Segments<D::File>,
    (newest, proven): (Live<D::File>, u64),
    geometry: Geometry,
) {
    match segments.last_mut() {
        Some(last) if last.window == newest.window => {
            let needed = proven - geometry.base(newest.window.index);
            // Ignored: a file that stays long only takes space.
            if needed < last.slot.bytes && last.slot.file.set_len(needed).is_ok() {
                last.slot.bytes = needed;
            }
        }
        Some(_) | None => slots.take_back(vec![newest.slot]),
    }
}

fn no_slot(e: NoSlot) -> OpenError {
    match e {
        NoSlot::NoSpace(e) | NoSlot::Failed(e) => OpenError::Disk(e),
    }
}

const FIRST_EPOCH: u64 = 1;

/// A slot file's segment, as its header tells it.
fn as_live<F>(found: Found<F>, geometry: Geometry) -> Result<Live<F>, Slot<F>> {
    match found.header.state {
        SlotState::Spare => Err(found.slot),
        SlotState::Live {
            index,
            span,
            previous_end,
            start,
        } => Ok(Live {
            window: Window { index, span },
            base: geometry.base(index),
            previous_end,
            start,
            header: found.header,
            slot: found.slot,
        }),
    }
}
