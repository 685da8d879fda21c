//! Throttles in the log: what was charged, what came back, what has left; and their state in
//! snapshots (docs/formats/records.md, kind 18).
//!
//! A charge is recorded in the same write as the lease, before the delivery leaves. When it left
//! is recorded later, as a bound for all charges up to a record. So a restart counts a charge as
//! delivered when the bound says, or, where the log ends before that, when it starts.

use super::buckets::BucketKey;
use super::permits::Released;
use super::rules::Rules;
use super::{ThrottleLimit, values};
use crate::engine::{Cx, Engine};
use crate::queue_record::{decode_key, encode_key};
use crate::record::{Header, Kind, Reader, begin, put_len, put_long, put_short, put_varint};
use crate::replay::Recovery;
use crate::{KeyPart, Lsn, Millis, QueueId, ReplayError};

/// What a record of throttles says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Says {
    Charged = 0,
    CameBack = 1,
    Released = 2,
    State = 3,
}

/// Where the distance of a state from its record's position stands.
const DISTANCE: core::ops::Range<usize> = 27..35;

/// Most buckets in one record of a snapshot.
const STATE_BUCKETS: u32 = 256;

/// Charges that replay does not yet know to have left, in log order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    at: Lsn,
    bucket: u32,
    count: u64,
}

impl Engine {
    /// Writes what a turn charged. `charged` names each bucket as often as it was; it is emptied.
    pub(crate) fn write_charges(&mut self, cx: &mut Cx<'_>, charged: &mut Vec<u32>, permits: u32) {
        if charged.is_empty() {
            return;
        }
        let at = cx.journal.end();
        let mut first = None;
        let released = self.throttles.permits.released();
        self.write_buckets(
            cx,
            charged,
            |record, rules| {
                record.push(Says::Charged as u8);
                put_released(record, released);
                if let Some(rules) = rules {
                    put_limits(record, rules);
                }
            },
            &mut first,
        );
        charged.clear();
        let permits_out = &mut self.throttles.permits;
        permits_out.on_noted(released);
        permits_out.end_turn(first.unwrap_or(at), cx.journal.end(), permits);
    }

    /// Writes that charges came back, because their deliveries never left. `buckets` names each as
    /// often as it was charged; they are still there.
    pub(crate) fn write_came_back(&mut self, cx: &mut Cx<'_>, buckets: &mut [u32]) {
        if buckets.is_empty() {
            return;
        }
        let head = |record: &mut Vec<u8>, _: Option<&Rules>| record.push(Says::CameBack as u8);
        self.write_buckets(cx, buckets, head, &mut None);
        self.throttles.permits.on_written(cx.journal.end());
    }

    /// One record per throttle: `head`, the throttle, and its buckets with their numbers.
    fn write_buckets(
        &mut self,
        cx: &mut Cx<'_>,
        buckets: &mut [u32],
        head: impl Fn(&mut Vec<u8>, Option<&Rules>),
        first: &mut Option<Lsn>,
    ) {
        let all = &self.throttles.buckets;
        buckets.sort_unstable_by_key(|it| (all.at(*it).throttle, *it));
        for of_throttle in buckets.chunk_by(|a, b| all.at(*a).throttle == all.at(*b).throttle) {
            let Some(throttle) = of_throttle.first().map(|it| all.at(*it).throttle) else {
                continue;
            };
            let Some(it) = self.throttles.at(throttle) else {
                continue;
            };
            let record = &mut self.record;
            begin(record, Kind::Throttle, QueueId(0), cx.now);
            head(record, Some(&it.rules));
            put_short(record, it.name.as_bytes());
            encode_key(record, &it.key);
            put_len(record, of_throttle.chunk_by(|a, b| a == b).count());
            for same in of_throttle.chunk_by(|a, b| a == b) {
                let Some(bucket) = same.first() else { continue };
                put_bucket(record, all.at(*bucket).key());
                put_varint(record, same.len() as u64);
            }
            let at = cx.journal.append(record);
            first.get_or_insert(at);
        }
    }

    /// Writes what has left since the newest record of charges, when it is time for that.
    pub(crate) fn note_released(&mut self, cx: &mut Cx<'_>) {
        let permits = &mut self.throttles.permits;
        if permits.note_at().is_none_or(|at| at > cx.now) {
            return;
        }
        let released = permits.released();
        permits.on_noted(released);
        begin(&mut self.record, Kind::Throttle, QueueId(0), cx.now);
        self.record.push(Says::Released as u8);
        put_released(&mut self.record, released);
        cx.journal.append(&self.record);
    }

    /// The state of buckets from `from` on, as records of a snapshot at `position`. Returns where
    /// to go on, `None` at the end.
    pub(crate) fn capture_buckets(
        &self,
        from: u32,
        (now, position): (Millis, Lsn),
        out: &mut Vec<Vec<u8>>,
    ) -> Option<u32> {
        let end = self.throttles.buckets.end();
        let to = from.saturating_add(STATE_BUCKETS).min(end);
        let live = (from..to).filter(|it| self.throttles.buckets.live(*it).is_some());
        let mut live: Vec<u32> = live.collect();
        let all = &self.throttles.buckets;
        live.sort_unstable_by_key(|it| (all.at(*it).throttle, *it));
        let distance = self.throttles.permits.end().0.saturating_sub(position.0);
        for of_throttle in live.chunk_by(|a, b| all.at(*a).throttle == all.at(*b).throttle) {
            let throttle = of_throttle.first().map(|it| all.at(*it).throttle);
            let Some(it) = throttle.and_then(|at| self.throttles.at(at)) else {
                continue;
            };
            let mut record = Vec::new();
            begin(&mut record, Kind::Throttle, QueueId(0), now);
            record.push(Says::State as u8);
            record.extend_from_slice(&distance.to_be_bytes());
            put_limits(&mut record, &it.rules);
            put_short(&mut record, it.name.as_bytes());
            encode_key(&mut record, &it.key);
            put_len(&mut record, of_throttle.len());
            for bucket in of_throttle {
                self.put_state(&mut record, *bucket);
            }
            out.push(record);
        }
        (to < end).then_some(to)
    }

    fn put_state(&self, record: &mut Vec<u8>, bucket: u32) {
        let it = self.throttles.buckets.at(bucket);
        put_bucket(record, it.key());
        put_varint(record, it.history.reserved());
        let instants = it.history.instants();
        put_varint(record, instants.len() as u64);
        let mut before = 0;
        for at in instants {
            put_varint(record, at.0 - before);
            before = at.0;
        }
        let windows = it.history.slots();
        put_varint(record, windows.len() as u64);
        for (window_ms, slots) in windows {
            put_varint(record, window_ms);
            put_varint(record, slots.len() as u64);
            let mut before = 0;
            for (slot, count) in slots {
                put_varint(record, slot - before);
                put_varint(record, *count);
                before = *slot;
            }
        }
    }

    /// Replicated: applies a record of throttles.
    pub(crate) fn apply_throttle(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        header: Header,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        match reader.u8()? {
            0 => {
                let released = read_released(reader)?;
                self.apply_released(rec, released);
                let limits = read_limits(reader)?;
                let throttle = self.read_throttle(reader)?;
                self.keep_limits(throttle, &limits, header.time);
                for _ in 0..reader.u32()? {
                    let (bucket, count) = self.read_bucket(throttle, reader)?;
                    let known = rec.throttled_until.get(bucket as usize).copied();
                    if known.is_some_and(|until| at < until) {
                        continue;
                    }
                    rec.charges.push(Pending { at, bucket, count });
                }
                Ok(())
            }
            1 => {
                let throttle = self.read_throttle(reader)?;
                for _ in 0..reader.u32()? {
                    let (bucket, count) = self.read_bucket(throttle, reader)?;
                    let known = rec.throttled_until.get(bucket as usize).copied();
                    if known.is_none_or(|until| at >= until) {
                        take_back(&mut rec.charges, bucket, count);
                    }
                }
                Ok(())
            }
            2 => {
                let released = read_released(reader)?;
                self.apply_released(rec, released);
                Ok(())
            }
            3 => self.apply_state(rec, at, header, reader),
            n => Err(reader.problem(&format!("throttle record {n} is unknown"))),
        }
    }

    fn apply_state(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        header: Header,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let until = Lsn(at.0.saturating_add(reader.u64()?));
        let limits = read_limits(reader)?;
        let throttle = self.read_throttle(reader)?;
        self.keep_limits(throttle, &limits, header.time);
        for _ in 0..reader.u32()? {
            let (bucket, reserved) = self.read_bucket(throttle, reader)?;
            let known = &mut rec.throttled_until;
            if known.len() <= bucket as usize {
                known.resize(bucket as usize + 1, Lsn::ZERO);
            }
            if let Some(it) = known.get_mut(bucket as usize) {
                *it = until;
            }
            if reserved > 0 {
                let before = Lsn(until.0.saturating_sub(1));
                let pending = Pending {
                    at: before,
                    bucket,
                    count: reserved,
                };
                rec.charges.push(pending);
            }
            self.read_state(bucket, reader)?;
        }
        Ok(())
    }

    fn read_state(&mut self, bucket: u32, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        let mut at = 0_u64;
        for _ in 0..reader.varint()? {
            at = at.saturating_add(reader.varint()?);
            self.newest_time = self.newest_time.max(Millis(at));
            self.throttles
                .buckets
                .change(bucket, |history| history.load_instant(Millis(at)));
        }
        for _ in 0..reader.varint()? {
            let window_ms = reader.varint()?;
            let mut slot = 0_u64;
            for _ in 0..reader.varint()? {
                slot = slot.saturating_add(reader.varint()?);
                let count = reader.varint()?;
                let load = (slot, count);
                self.throttles
                    .buckets
                    .change(bucket, |history| history.load_slot(window_ms, load));
            }
        }
        let Some(version) = self
            .throttles
            .of_bucket(bucket)
            .map(|it| it.rules.version())
        else {
            return Ok(());
        };
        self.throttles
            .buckets
            .change(bucket, |history| history.loaded(version));
        Ok(())
    }

    /// All charges of records before a position left no later than then.
    fn apply_released(&mut self, rec: &mut Recovery, released: Released) {
        self.newest_time = self.newest_time.max(released.by);
        let mut charges = core::mem::take(&mut rec.charges);
        charges.retain(|it| {
            let left = it.at < released.before;
            if left {
                self.throttles.add(it.bucket, released.by, it.count);
            }
            !left
        });
        rec.charges = charges;
    }

    /// The end of recovery: what is not known to have left has left by now.
    pub(crate) fn start_throttles(&mut self, rec: &mut Recovery, now: Millis, end: Lsn) {
        let noted = rec.charges.is_empty();
        self.throttles.permits.start(now, end, noted);
        for it in rec.charges.drain(..) {
            self.throttles.add(it.bucket, now, it.count);
        }
        for bucket in 0..self.throttles.buckets.end() {
            self.throttles.follow(bucket, now);
        }
        self.throttles.drop_all_idle();
    }

    fn keep_limits(&mut self, throttle: u32, limits: &[ThrottleLimit], now: Millis) {
        if let Some(it) = self.throttles.at_mut(throttle) {
            for limit in limits {
                it.rules.keep(*limit, now);
            }
        }
    }

    fn read_throttle(&mut self, reader: &mut Reader<'_>) -> Result<u32, ReplayError> {
        let name = reader.short()?;
        let key: Vec<KeyPart> = decode_key(reader)?;
        Ok(self.throttles.find_or_add(name, &key))
    }

    /// A bucket and the number behind it.
    fn read_bucket(
        &mut self,
        throttle: u32,
        reader: &mut Reader<'_>,
    ) -> Result<(u32, u64), ReplayError> {
        let shared = match reader.u8()? {
            0 => false,
            1 => true,
            n => return Err(reader.problem(&format!("bucket kind {n} is unknown"))),
        };
        let len = reader.u32()?;
        let values = reader.bytes(len)?;
        if values::iter(values).map(|it| it.len() + 2).sum::<usize>() != values.len() {
            return Err(reader.problem("a bucket's values are cut short"));
        }
        let bucket = self.throttles.bucket(BucketKey {
            throttle,
            shared,
            values,
        });
        Ok((bucket, reader.varint()?))
    }
}

/// In a backup the state is as of its own record: positions of the old log mean nothing there.
pub(crate) fn detach_state(record: &mut [u8]) {
    let is_state = record.get(26) == Some(&(Says::State as u8));
    if is_state && let Some(distance) = record.get_mut(DISTANCE) {
        distance.fill(0);
    }
}

/// Charges of a bucket are taken back, the oldest first: which one it was is not recorded, and what
/// is left then counts as late as any of them left.
fn take_back(charges: &mut [Pending], bucket: u32, count: u64) {
    let mut left = count;
    for it in charges.iter_mut().filter(|it| it.bucket == bucket) {
        let taken = it.count.min(left);
        it.count -= taken;
        left -= taken;
    }
}

fn put_released(record: &mut Vec<u8>, released: Released) {
    record.extend_from_slice(&released.before.0.to_be_bytes());
    record.extend_from_slice(&released.by.0.to_be_bytes());
}

fn read_released(reader: &mut Reader<'_>) -> Result<Released, ReplayError> {
    Ok(Released {
        before: Lsn(reader.u64()?),
        by: reader.millis()?,
    })
}

fn put_limits(record: &mut Vec<u8>, rules: &Rules) {
    let kept = rules.kept();
    put_varint(record, kept.len() as u64);
    for limit in kept {
        put_varint(record, limit.max_deliveries);
        put_varint(record, limit.window_ms);
    }
}

fn read_limits(reader: &mut Reader<'_>) -> Result<Vec<ThrottleLimit>, ReplayError> {
    let mut limits = Vec::new();
    for _ in 0..reader.varint()? {
        let (max_deliveries, window_ms) = (reader.varint()?, reader.varint()?);
        if max_deliveries == 0 || window_ms == 0 {
            return Err(reader.problem("a limit of a throttle is 0"));
        }
        limits.push(ThrottleLimit {
            window_ms,
            max_deliveries,
        });
    }
    Ok(limits)
}

fn put_bucket(record: &mut Vec<u8>, key: BucketKey<'_>) {
    record.push(u8::from(key.shared));
    put_long(record, key.values);
}
