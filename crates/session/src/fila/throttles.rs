//! Throttle declarations from the wire to the engine.

use tanda_engine::{MissingThrottleKey, ThrottleLimit, ThrottleSpec};
use tanda_wire::fila::consume::{ThrottleDeclaration, WhenThrottleKeyMissing};

use super::queue_settings;

/// A declaration holds numbers that mean nothing.
pub(super) struct InvalidThrottle<'a> {
    pub(super) name: &'a str,
    pub(super) problem: &'static str,
}

/// What a `Consume` declares. What the values must be to each other the engine checks.
pub(super) fn specs<'a>(
    declarations: &[ThrottleDeclaration<'a>],
) -> Result<Vec<ThrottleSpec>, InvalidThrottle<'a>> {
    declarations.iter().map(spec).collect()
}

fn spec<'a>(declaration: &ThrottleDeclaration<'a>) -> Result<ThrottleSpec, InvalidThrottle<'a>> {
    let name = declaration.name;
    let invalid = |problem| InvalidThrottle { name, problem };
    let missing = match WhenThrottleKeyMissing::from_wire(declaration.when_key_missing) {
        Some(WhenThrottleKeyMissing::SharedBucket) => MissingThrottleKey::SharedBucket,
        Some(WhenThrottleKeyMissing::Unthrottled) => MissingThrottleKey::Unthrottled,
        None => {
            return Err(invalid(
                "what to do without a key is 0 (shared) or 1 (unthrottled)",
            ));
        }
    };
    let key = queue_settings::key(&declaration.key, false).map_err(
        |queue_settings::InvalidSetting| {
            invalid("its key has a part that only deduplication keys can have, or a wrong name")
        },
    )?;
    let limits = declaration.limits.iter().map(|limit| ThrottleLimit {
        window_ms: limit.window_ms,
        max_deliveries: limit.max_deliveries,
    });
    Ok(ThrottleSpec {
        name: name.to_owned(),
        limits: limits.collect(),
        key,
        missing,
    })
}
