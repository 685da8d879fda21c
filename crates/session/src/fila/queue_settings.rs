//! The settings of a queue, from wire numbers to the engine's types.
//!
//! Checks what only the wire knows: numbers outside their table and combinations the frame's
//! layout allows but its comments forbid. All of them are `InvalidConfigValue`; names, lengths and
//! limits are checked by the engine.

use tanda_engine::{
    Backoff, DeliveryDurability, KeyKind, KeyPart, MissingOrderingKey, Ordering, QueueChanges,
    QueueSpec, ScriptFailure, VhostId,
};
use tanda_wire::fila::property_key::{self, KeyPartKind, PropertyKey};
use tanda_wire::fila::queue_admin::{
    self as wire, CreateQueue, QueueOrdering, ScriptChange, UpdateQueue, WhenOrderingKeyMissing,
};

/// A setting has a value it cannot have. Reaches: the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidSetting;

type Checked<T> = Result<T, InvalidSetting>;

/// What a `CreateQueue` asks for.
pub(super) fn spec(frame: &CreateQueue<'_>) -> Checked<QueueSpec> {
    Ok(QueueSpec {
        vhost: VhostId::DEFAULT,
        name: frame.name.to_owned(),
        on_enqueue: frame.on_enqueue_script.map(str::to_owned),
        on_failure: frame.on_failure_script.map(str::to_owned),
        lease_ms: frame.visibility_timeout_ms,
        ordering: ordering(frame)?,
        dedup_key: match frame.dedup_key.is_none() {
            true => None,
            false => Some(key(&frame.dedup_key, true)?),
        },
        dedup_window_ms: frame.dedup_window_ms,
        script_failure: script_failure(frame.script_failure)?,
        park_dead_letter_after: frame.park_dead_letter_after,
        max_attempts: frame.max_attempts,
        backoff: backoff(frame.backoff)?,
        backoff_initial_ms: frame.backoff_initial_ms,
        backoff_max_ms: frame.backoff_max_ms,
        durability: durability(frame.delivery_durability)?,
        reclaim_grace_ms: frame.reclaim_grace_ms,
        max_length: None,
    })
}

/// What an `UpdateQueue` asks for.
pub(super) fn changes(frame: &UpdateQueue<'_>) -> Checked<QueueChanges> {
    Ok(QueueChanges {
        on_enqueue: script_change(frame.on_enqueue_change, frame.on_enqueue_script)?,
        on_failure: script_change(frame.on_failure_change, frame.on_failure_script)?,
        lease_ms: frame.visibility_timeout_ms,
        dedup_window_ms: frame.dedup_window_ms,
        max_attempts: frame.max_attempts,
        backoff: frame.backoff.map(backoff).transpose()?,
        backoff_initial_ms: frame.backoff_initial_ms,
        backoff_max_ms: frame.backoff_max_ms,
        durability: frame.delivery_durability.map(durability).transpose()?,
        reclaim_grace_ms: frame.reclaim_grace_ms,
        park_dead_letter_after: frame.park_dead_letter_after,
    })
}

fn ordering(frame: &CreateQueue<'_>) -> Checked<Ordering> {
    let ordering = QueueOrdering::from_wire(frame.ordering).ok_or(InvalidSetting)?;
    // Out of range is refused also where the field does not count.
    let missing = match WhenOrderingKeyMissing::from_wire(frame.when_ordering_key_missing) {
        Some(WhenOrderingKeyMissing::Reject) => MissingOrderingKey::Reject,
        Some(WhenOrderingKeyMissing::Unordered) => MissingOrderingKey::Unordered,
        None => return Err(InvalidSetting),
    };
    match (ordering, frame.ordering_key.is_none()) {
        (QueueOrdering::None, true) => Ok(Ordering::None),
        (QueueOrdering::WholeQueue, true) => Ok(Ordering::Queue),
        (QueueOrdering::ByKey, false) => Ok(Ordering::Key {
            key: key(&frame.ordering_key, false)?,
            missing,
        }),
        (QueueOrdering::None | QueueOrdering::WholeQueue, false) | (QueueOrdering::ByKey, true) => {
            Err(InvalidSetting)
        }
    }
}

pub(super) fn key(key: &PropertyKey<'_>, for_dedup: bool) -> Checked<Vec<KeyPart>> {
    key.parts
        .iter()
        .map(|part| key_part(part, for_dedup))
        .collect()
}

fn key_part(part: &property_key::KeyPart<'_>, for_dedup: bool) -> Checked<KeyPart> {
    let (kind, is_named, dedup_only) = match KeyPartKind::from_wire(part.kind) {
        Some(KeyPartKind::Header) => (KeyKind::Header, true, false),
        Some(KeyPartKind::FairnessKey) => (KeyKind::FairnessKey, false, false),
        Some(KeyPartKind::Attribute) => (KeyKind::Attribute, true, false),
        Some(KeyPartKind::IdempotencyKey) => (KeyKind::IdempotencyKey, false, true),
        Some(KeyPartKind::PayloadHash) => (KeyKind::Payload, false, true),
        Some(KeyPartKind::HeadersHash) => (KeyKind::AllHeaders, false, true),
        None => return Err(InvalidSetting),
    };
    let has_name = !part.name.is_empty();
    if has_name != is_named || (dedup_only && !for_dedup) {
        return Err(InvalidSetting);
    }
    Ok(KeyPart {
        kind,
        name: part.name.to_owned(),
    })
}

fn script_failure(value: u8) -> Checked<ScriptFailure> {
    match wire::ScriptFailure::from_wire(value) {
        Some(wire::ScriptFailure::Reject) => Ok(ScriptFailure::Reject),
        Some(wire::ScriptFailure::Park) => Ok(ScriptFailure::Park),
        None => Err(InvalidSetting),
    }
}

fn backoff(value: u8) -> Checked<Option<Backoff>> {
    match wire::Backoff::from_wire(value) {
        Some(wire::Backoff::ServerDefault) => Ok(None),
        Some(wire::Backoff::None) => Ok(Some(Backoff::None)),
        Some(wire::Backoff::Fixed) => Ok(Some(Backoff::Fixed)),
        Some(wire::Backoff::Exponential) => Ok(Some(Backoff::Exponential)),
        None => Err(InvalidSetting),
    }
}

fn durability(value: u8) -> Checked<DeliveryDurability> {
    match wire::DeliveryDurability::from_wire(value) {
        Some(wire::DeliveryDurability::Committed) => Ok(DeliveryDurability::Committed),
        Some(wire::DeliveryDurability::Fast) => Ok(DeliveryDurability::Fast),
        None => Err(InvalidSetting),
    }
}

/// A script that comes with "unchanged" or "remove" is a contradiction.
fn script_change(change: u8, script: &str) -> Checked<Option<Option<String>>> {
    match (ScriptChange::from_wire(change), script.is_empty()) {
        (Some(ScriptChange::Unchanged), true) => Ok(None),
        (Some(ScriptChange::Set), _) => Ok(Some(Some(script.to_owned()))),
        (Some(ScriptChange::Remove), true) => Ok(Some(None)),
        (Some(ScriptChange::Unchanged | ScriptChange::Remove), false) | (None, _) => {
            Err(InvalidSetting)
        }
    }
}
