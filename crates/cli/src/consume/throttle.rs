//! Throttles as they are typed: `api=100/1s,1000/1m;key=header:x-tenant;missing=unthrottled`.

use std::time::Duration;

use tanda_client::{Throttle, WhenThrottleKeyMissing};

use crate::{durations, key_parts};

const FORM: &str = "write it like api=100/1s, or with all its parts \
                    'api=100/1s,1000/1m;key=header:x-tenant;missing=unthrottled'";

/// Reads a throttle.
///
/// # Errors
/// Says what is wrong, or what no broker takes.
pub(super) fn parse(text: &str) -> Result<Throttle, String> {
    let mut parts = text.split(';');
    let first = parts.next().unwrap_or_default();
    let (name, limits) = first
        .split_once('=')
        .ok_or_else(|| format!("there is no limit in {first:?}; {FORM}"))?;
    let mut throttle = Throttle::new(name);
    for limit in limits.split(',') {
        let (deliveries, window) = parse_limit(limit)?;
        throttle = throttle.at_most(deliveries).per(window);
    }
    let mut seen = Vec::new();
    for part in parts {
        let (option, value) = part.split_once('=').unwrap_or((part, ""));
        if seen.contains(&option) {
            return Err(format!("{option:?} stands there twice; {FORM}"));
        }
        seen.push(option);
        throttle = match option {
            "key" => throttle.keyed_by(key_parts::parse_throttle(value)?.parts),
            "missing" => throttle.when_missing(parse_missing(value)?),
            _ => return Err(format!("{part:?} is no part of a throttle; {FORM}")),
        };
    }
    throttle.check().map_err(|error| error.to_string())?;
    Ok(throttle)
}

/// `100/1s`; `100/s` is the same.
fn parse_limit(text: &str) -> Result<(u64, Duration), String> {
    let wrong = |what: &str| format!("{what} in the limit {text:?}; {FORM}");
    let (deliveries, window) = text.split_once('/').ok_or_else(|| wrong("there is no /"))?;
    let deliveries = deliveries
        .parse()
        .map_err(|_error| wrong("there is no whole number before the /"))?;
    let is_unit = window.starts_with(|c: char| c.is_ascii_alphabetic());
    let one = if is_unit { "1" } else { "" };
    let window = durations::parse(&format!("{one}{window}"))
        .map_err(|error| wrong(&format!("the window cannot be read ({error})")))?;
    Ok((deliveries, window))
}

fn parse_missing(text: &str) -> Result<WhenThrottleKeyMissing, String> {
    match text {
        "shared" => Ok(WhenThrottleKeyMissing::SharedBucket),
        "unthrottled" => Ok(WhenThrottleKeyMissing::Unthrottled),
        _ => Err(format!(
            "{text:?} says nothing about messages that lack the key: missing=shared lets them \
             share one bucket, missing=unthrottled does not limit them"
        )),
    }
}

#[cfg(test)]
mod tests {
    use tanda_client::KeyPart;

    use super::*;

    #[test]
    fn all_parts_are_read() {
        let seconds = Duration::from_secs;
        assert_eq!(
            parse("api=100/1s"),
            Ok(Throttle::new("api").at_most(100).per(seconds(1)))
        );
        assert_eq!(
            parse("a b=100/s,1000/1m30s;missing=unthrottled;key=header:x-tenant,fairness-key"),
            Ok(Throttle::new("a b")
                .at_most(100)
                .per(seconds(1))
                .at_most(1_000)
                .per(seconds(90))
                .keyed_by([KeyPart::header("x-tenant"), KeyPart::FairnessKey])
                .when_missing(WhenThrottleKeyMissing::Unthrottled))
        );
        assert_eq!(
            parse("a=1/1ms;key=attribute:plan;missing=shared"),
            Ok(Throttle::new("a")
                .at_most(1)
                .per(Duration::from_millis(1))
                .keyed_by([KeyPart::attribute("plan")]))
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("api", "no limit in \"api\""),
            ("api=", "no / in the limit \"\""),
            ("api=100", "no / in the limit \"100\""),
            ("api=x/1s", "no whole number"),
            ("api=1/1", "the unit is missing"),
            ("api=1/1s,", "no / in the limit \"\""),
            ("api=1/1s;", "\"\" is no part"),
            (
                "api=1/1s;keys=fairness-key",
                "\"keys=fairness-key\" is no part",
            ),
            ("api=1/1s;key=payload", "\"payload\" is no part"),
            (
                "api=1/1s;key=header:a;key=header:b",
                "\"key\" stands there twice",
            ),
            ("api=1/1s;missing=no", "\"no\" says nothing"),
            ("=1/1s", "it needs a name"),
            ("api=0/1s", "at least one delivery"),
            ("api=1/0s", "at least a millisecond"),
            ("api=100/1s,60/1m", "never reached"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
