//! When all messages are gone, with their deduplication windows, nothing of them remains on disk:
//! a few segments, settings, and files that are kept for what comes next.
//!
//! Source: `docs/formats/records.md`, "What a log without its beginning means";
//! `docs/formats/pages.md`, the page file "grows and shrinks by 64 slots";
//! `docs/formats/deliveries.md`; `docs/recovery.md`.

use tanda_node::NodeStats;

use crate::failure::{Check, ensure};

pub(crate) const NAME: &str = "a dead log shrinks";

/// The open segment, the one before it, and one that the move of the last records has begun.
const SEGMENTS_MAX: usize = 3;
/// The page file keeps at most the slots of one step of its growth, and of the one under way.
const PAGE_FILE_BYTES_MAX: u64 = 2 * 64 * 4096;
/// Two areas.
const NOTES_FILE_BYTES_MAX: u64 = 512 << 10;
/// A snapshot's file is preallocated.
const SNAPSHOT_FILE_BYTES_MAX: u64 = 1 << 20;
/// Of a snapshot: its frame, and the settings of a queue with its dead-letter queue.
const SNAPSHOT_BYTES_MAX: u64 = 1024;
const QUEUE_BYTES_MAX: u64 = 1024;
/// A key with its permissions.
const KEY_BYTES_MAX: u64 = 256;

/// What does not depend on messages.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<'a> {
    pub(crate) log: &'a tanda_wal::Config,
    pub(crate) queues: u64,
    pub(crate) keys: u64,
}

pub(crate) fn when_empty(fixed: Fixed<'_>, stats: &NodeStats, files: &[(String, u64)]) -> Check {
    let segments = stats.log.segments;
    ensure(segments <= SEGMENTS_MAX, NAME, || {
        format!("{segments} segments hold nothing but settings, {SEGMENTS_MAX} at most: {stats:?}")
    })?;
    ensure(stats.pages == 0, NAME, || {
        format!("{} pages hold nothing", stats.pages)
    })?;
    let bytes = stats.snapshot.map_or(0, |snapshot| snapshot.bytes);
    let bytes_max =
        SNAPSHOT_BYTES_MAX + QUEUE_BYTES_MAX * fixed.queues + KEY_BYTES_MAX * fixed.keys;
    ensure(bytes <= bytes_max, NAME, || {
        format!("a snapshot of settings has {bytes} bytes, {bytes_max} at most")
    })?;
    let is_segment = |(name, _): &&(String, u64)| name.ends_with(".seg");
    let count = files.iter().filter(is_segment).count();
    let count_max = SEGMENTS_MAX + fixed.log.spare_segments_max;
    ensure(count <= count_max, NAME, || {
        format!("{count} segment files, {count_max} at most: {files:?}")
    })?;
    for (name, bytes) in files {
        let most = match name.as_str() {
            "index.pages" => PAGE_FILE_BYTES_MAX,
            "deliveries.notes" => NOTES_FILE_BYTES_MAX,
            "snapshot-a" | "snapshot-b" => SNAPSHOT_FILE_BYTES_MAX,
            name if name.ends_with(".seg") => fixed.log.segment_bytes,
            _ => 0,
        };
        ensure(*bytes <= most, NAME, || {
            format!("{name} has {bytes} bytes, {most} at most: {files:?}")
        })?;
    }
    Ok(())
}
