//! What a queue may be called and which policies it may have.

use crate::on_admin::DEAD_LETTER_SUFFIX;
use crate::{
    CreateQueueError, EngineConfig, KeyKind, KeyPart, Limits, Ordering, QueueChanges, QueueSpec,
    UpdateQueueError,
};

/// Longest queue name in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest duration that a policy may have: about 317 years, far from overflowing a time.
const DURATION_MS_MAX: u64 = 10_000_000_000_000;

/// Checks everything about a new queue that does not depend on the other queues.
pub(crate) fn check_spec(spec: &QueueSpec, engine: &EngineConfig) -> Result<(), CreateQueueError> {
    let limits = &engine.limits;
    check_name(&spec.name)?;
    for (setting, script) in [
        ("on_enqueue_script", &spec.on_enqueue),
        ("on_failure_script", &spec.on_failure),
    ] {
        let Some(script) = script else { continue };
        if !engine.has_script_host {
            return Err(CreateQueueError::ScriptsUnsupported);
        }
        check_script(script, limits).map_err(|problem| invalid(setting, problem))?;
    }
    if let Ordering::Key { key, .. } = &spec.ordering {
        check_key("ordering_key", key, limits, Deduplication::No)?;
    }
    if let Some(key) = &spec.dedup_key {
        check_key("dedup_key", key, limits, Deduplication::Yes)?;
    }
    for (setting, ms) in [
        ("visibility_timeout_ms", spec.lease_ms),
        ("dedup_window_ms", spec.dedup_window_ms),
        ("backoff_initial_ms", spec.backoff_initial_ms),
        ("backoff_max_ms", spec.backoff_max_ms),
        ("reclaim_grace_ms", spec.reclaim_grace_ms),
    ] {
        check_duration(setting, ms).map_err(|problem| invalid(setting, problem))?;
    }
    Ok(())
}

/// Checks changes to a live queue.
pub(crate) fn check_changes(
    changes: &QueueChanges,
    engine: &EngineConfig,
) -> Result<(), UpdateQueueError> {
    for (setting, script) in [
        ("on_enqueue_script", &changes.on_enqueue),
        ("on_failure_script", &changes.on_failure),
    ] {
        let Some(Some(script)) = script else { continue };
        if !engine.has_script_host {
            return Err(UpdateQueueError::ScriptsUnsupported);
        }
        check_script(script, &engine.limits)
            .map_err(|problem| UpdateQueueError::InvalidSetting { setting, problem })?;
    }
    for (setting, ms) in [
        ("visibility_timeout_ms", changes.lease_ms),
        ("dedup_window_ms", changes.dedup_window_ms),
        ("backoff_initial_ms", changes.backoff_initial_ms),
        ("backoff_max_ms", changes.backoff_max_ms),
        ("reclaim_grace_ms", changes.reclaim_grace_ms),
    ] {
        check_duration(setting, ms.unwrap_or(0))
            .map_err(|problem| UpdateQueueError::InvalidSetting { setting, problem })?;
    }
    Ok(())
}

/// Changes to a queue that AMQP or FireMQ declared: nothing fails there, so what follows a failure
/// cannot be said, and scripts are for Fila's queues.
pub(crate) fn check_declared_changes(changes: &QueueChanges) -> Result<(), UpdateQueueError> {
    let unfit = [
        ("on_enqueue", changes.on_enqueue.is_some()),
        ("on_failure", changes.on_failure.is_some()),
        ("max_attempts", changes.max_attempts.is_some()),
        ("backoff", changes.backoff.is_some()),
        ("backoff_initial_ms", changes.backoff_initial_ms.is_some()),
        ("backoff_max_ms", changes.backoff_max_ms.is_some()),
        ("durability", changes.durability.is_some()),
        ("reclaim_grace_ms", changes.reclaim_grace_ms.is_some()),
        (
            "park_dead_letter_after",
            changes.park_dead_letter_after.is_some(),
        ),
    ];
    let Some((setting, _)) = unfit.into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    let problem = format!("{setting} is not for a queue that was declared by AMQP or FireMQ");
    Err(UpdateQueueError::InvalidSetting { setting, problem })
}

fn check_script(script: &str, limits: &Limits) -> Result<(), String> {
    let (len, max) = (script.len(), limits.script_bytes_max);
    if len > max {
        return Err(format!(
            "a script has at most {max} bytes, this one has {len}"
        ));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), CreateQueueError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let len = name.len();
        let problem = format!("a queue name has 1 to {NAME_BYTES_MAX} bytes, this one has {len}");
        return Err(invalid("name", problem));
    }
    if let Some(bad) = name.chars().find(|c| c.is_control()) {
        let problem = format!("a queue name has no control characters, this one has {bad:?}");
        return Err(invalid("name", problem));
    }
    if name.ends_with(DEAD_LETTER_SUFFIX) {
        return Err(CreateQueueError::ReservedName);
    }
    Ok(())
}

/// Whether a key is for deduplication, which may use more kinds of parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deduplication {
    Yes,
    No,
}

fn check_key(
    setting: &'static str,
    parts: &[KeyPart],
    limits: &Limits,
    deduplication: Deduplication,
) -> Result<(), CreateQueueError> {
    let (count, max) = (parts.len(), limits.key_parts_max);
    if count == 0 || count > max {
        return Err(invalid(
            setting,
            format!("a key has 1 to {max} parts, this one has {count}"),
        ));
    }
    for part in parts {
        let named = matches!(part.kind, KeyKind::Header | KeyKind::Attribute);
        let dedup_only = matches!(
            part.kind,
            KeyKind::IdempotencyKey | KeyKind::Payload | KeyKind::AllHeaders
        );
        let (kind, name) = (part.kind, &part.name);
        if dedup_only && deduplication == Deduplication::No {
            let problem = format!("a part of kind {kind:?} is for deduplication keys only");
            return Err(invalid(setting, problem));
        }
        if named == name.is_empty() {
            let need = if named { "needs a name" } else { "has no name" };
            let problem = format!("a part of kind {kind:?} {need}, given was \"{name}\"");
            return Err(invalid(setting, problem));
        }
    }
    Ok(())
}

fn check_duration(setting: &str, ms: u64) -> Result<(), String> {
    if ms > DURATION_MS_MAX {
        return Err(format!(
            "{setting} is at most {DURATION_MS_MAX} ms, given were {ms}"
        ));
    }
    Ok(())
}

const fn invalid(setting: &'static str, problem: String) -> CreateQueueError {
    CreateQueueError::InvalidSetting { setting, problem }
}
