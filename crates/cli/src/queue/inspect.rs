//! `tanda queue inspect`.

use clap::Args;
use serde_json::{Value, json};
use tanda_client::admin::{FairnessKeyStats, ThrottleSummary};

use super::vhost::VhostArgs;
use crate::{
    durations,
    failure::Failure,
    health,
    http_door::queue_path,
    key_parts, moments,
    output::{Output, printable},
    table::{Table, counted, grouped},
    target::{Target, TargetArgs},
    throttle::{limits, summary_json},
};

/// Fairness keys shown to people; `--json` has all.
const KEYS_SHOWN: usize = 20;

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// The queue; a dead-letter queue too
    name: String,
    /// Print the text of its scripts, too
    #[arg(long)]
    show_scripts: bool,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: InspectArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    let path = queue_path(args.vhost.name(), &name);
    let mut details = target.http()?.read(&path).await?;
    let (mut keys, throttles) = if args.vhost.is_root() {
        of_fila(&target, &name).await?
    } else {
        let stats = target.http()?.read(&format!("{path}/stats")).await?;
        (keys(&stats), Vec::new())
    };
    keys.sort_by(|a, b| b.pending.cmp(&a.pending).then_with(|| a.key.cmp(&b.key)));
    let mut out = Output::new();
    if target.json {
        if let Some(fields) = details.as_object_mut() {
            let keys = keys.iter().map(key_json).collect();
            fields.insert("fairness_keys".to_owned(), keys);
            let throttles = throttles.iter().map(summary_json).collect();
            fields.insert("throttles".to_owned(), throttles);
        }
        out.document(&details)?;
        return out.flush();
    }
    for (label, value) in facts(&details) {
        out.line(format_args!("{label:<22}{value}"))?;
    }
    if !throttles.is_empty() {
        out.line("")?;
        out.line(throttles_table(&throttles))?;
    }
    if !keys.is_empty() {
        out.line("")?;
        out.line(keys_table(&keys))?;
    }
    if let Some(more) = keys.len().checked_sub(KEYS_SHOWN).filter(|more| *more > 0) {
        let more = counted(more as u64, "more fairness key");
        out.line(format_args!("and {more}; --json has all"))?;
    }
    if args.show_scripts {
        for hook in HOOKS {
            if let Some(text) = script_text(&details, hook) {
                out.line(format_args!("\n--- {hook}"))?;
                out.bytes_line(text.trim_end_matches('\n').as_bytes())?;
            }
        }
    }
    out.flush()
}

/// What Fila tells of a queue of its virtual host.
async fn of_fila(
    target: &Target,
    name: &str,
) -> Result<(Vec<FairnessKeyStats>, Vec<ThrottleSummary>), Failure> {
    let admin = target.connect().await?.admin();
    let stats = admin
        .queue_stats(name)
        .await
        .map_err(|error| Failure::request(format!("read the counts of queue {name:?}"), &error))?;
    Ok((stats.fairness_keys, stats.throttles))
}

/// The fairness keys that the HTTP door tells of.
fn keys(stats: &Value) -> Vec<FairnessKeyStats> {
    let all = stats.get("fairness_keys").and_then(Value::as_array);
    let key = |it: &Value| {
        Some(FairnessKeyStats {
            key: it.get("key")?.as_str()?.to_owned(),
            pending: it.get("pending")?.as_u64()?,
            deficit: it.get("deficit")?.as_i64()?,
            weight: u32::try_from(it.get("weight")?.as_u64()?).ok()?,
        })
    };
    all.into_iter().flatten().filter_map(key).collect()
}

/// The scripts that a queue can have.
const HOOKS: [&str; 2] = ["on_enqueue", "on_failure"];

fn script_text<'a>(details: &'a Value, hook: &str) -> Option<&'a str> {
    let script = details.pointer(&format!("/config/{hook}/text"));
    script.and_then(Value::as_str)
}

/// How long a script is, and the beginning of its SHA-256, by which `sha256sum` finds its file.
fn script(details: &Value, hook: &str) -> Option<String> {
    let field = |name: &str| details.pointer(&format!("/config/{hook}/{name}"));
    let bytes = field("bytes")?.as_u64()?;
    let hash = field("sha256")?.as_str()?;
    let hash = hash.get(..HASH_SHOWN).unwrap_or(hash);
    Some(format!("{}, sha256 {hash}", counted(bytes, "byte")))
}

/// Digits of a script's hash that are shown.
const HASH_SHOWN: usize = 12;

/// What becomes of messages on which the script fails, where there is one.
fn script_failure(details: &Value) -> Option<String> {
    script(details, "on_enqueue")?;
    let policy = details.pointer("/config/script_failure")?.as_str()?;
    let after = details.pointer("/config/park_dead_letter_after");
    match (policy, after.and_then(Value::as_u64)) {
        ("park", Some(1)) => Some("park, dead letter after a failed try".to_owned()),
        ("park", Some(tries @ 2..)) => {
            let tries = grouped(tries);
            Some(format!("park, dead letter after {tries} failed tries"))
        }
        (policy, _) => Some(policy.to_owned()),
    }
}

fn throttles_table(throttles: &[ThrottleSummary]) -> Table {
    let mut table = Table::new(&["THROTTLE", "AT MOST", "FOR EACH"], &["DECLARED BY"]);
    for throttle in throttles {
        table.row([
            printable(throttle.name.as_bytes()),
            limits(throttle),
            key_parts::shown(&throttle.key),
            grouped(u64::from(throttle.declaring_subscribers)),
        ]);
    }
    table
}

fn key_json(key: &FairnessKeyStats) -> Value {
    json!({
        "key": key.key,
        "pending": key.pending,
        "weight": key.weight,
        "deficit": key.deficit,
    })
}

fn keys_table(keys: &[FairnessKeyStats]) -> Table {
    let mut table = Table::new(&["FAIRNESS KEY"], &["WAITING", "WEIGHT"]);
    for key in keys.iter().take(KEYS_SHOWN) {
        let name = match key.key.as_str() {
            "" => "(none)".to_owned(),
            key => printable(key.as_bytes()),
        };
        table.row([name, grouped(key.pending), grouped(u64::from(key.weight))]);
    }
    table
}

/// What is shown of the door's answer, in this order. What the door does not tell is left out.
fn facts(details: &Value) -> Vec<(&'static str, String)> {
    let text = |path: &str| {
        details
            .pointer(path)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let number = |path: &str| details.pointer(path).and_then(Value::as_u64);
    let count = |path: &str| number(path).map(grouped);
    // Most queues have none of these.
    let some = |path: &str| number(path).filter(|count| *count > 0).map(grouped);
    let moment = |path: &str| number(path).map(moments::utc);
    let duration = |path: &str| number(path).map(durations::exact);
    let list = [
        ("queue", text("/name")),
        ("id", text("/id")),
        ("dead letters go to", text("/dead_letter_queue")),
        ("dead letters of", text("/parent")),
        ("waiting", count("/counts/depth")),
        ("  ready", count("/counts/ready")),
        ("  delayed", count("/counts/delayed")),
        ("  throttled", some("/counts/throttled")),
        ("  behind their group", count("/counts/behind")),
        ("  parked", some("/counts/unclassified")),
        ("  behind a parked one", some("/counts/stopped")),
        (
            "  oldest parked",
            moment("/counts/oldest_unclassified_at_ms"),
        ),
        ("leased", count("/counts/in_flight")),
        ("bytes", count("/counts/bytes")),
        ("consumers", count("/counts/active_consumers")),
        ("remembered keys", count("/counts/remembered_keys")),
        (
            "visibility timeout",
            duration("/config/visibility_timeout_ms"),
        ),
        ("ordering", ordering(details)),
        ("dedup key", key(details.pointer("/config/dedup_key"))),
        ("dedup window", duration("/config/dedup_window_ms")),
        ("max attempts", count("/config/retry/max_attempts")),
        ("backoff", backoff(details)),
        ("durability", text("/config/delivery_durability")),
        ("reclaim grace", duration("/config/reclaim_grace_ms")),
        ("on_enqueue", script(details, "on_enqueue")),
        ("on_failure", script(details, "on_failure")),
        ("when on_enqueue fails", script_failure(details)),
        ("broker low on", low_on(details)),
    ];
    let known = |(label, value): (&'static str, Option<String>)| Some((label, value?));
    list.into_iter().filter_map(known).collect()
}

/// What the broker is short of, for which publishers are asked to wait.
fn low_on(details: &Value) -> Option<String> {
    let names = health::alarms(details);
    (!names.is_empty()).then(|| format!("{names}: publishers of AMQP and FireMQ wait"))
}

fn ordering(details: &Value) -> Option<String> {
    let by = details.pointer("/config/ordering/by")?.as_str()?;
    let Some(key) = key(details.pointer("/config/ordering/key")) else {
        return Some(by.to_owned());
    };
    let missing = details.pointer("/config/ordering/missing")?.as_str()?;
    Some(format!("by {key}, messages without it: {missing}"))
}

/// A key in the form in which `queue create` takes it.
fn key(parts: Option<&Value>) -> Option<String> {
    let part = |part: &Value| {
        let kind = match part.get("kind")?.as_str()? {
            "all_headers" => "headers".to_owned(),
            kind => kind.replace('_', "-"),
        };
        let name = part.get("name").and_then(Value::as_str).unwrap_or("");
        let colon = if name.is_empty() { "" } else { ":" };
        Some(format!("{kind}{colon}{}", printable(name.as_bytes())))
    };
    let parts: Vec<String> = parts?.as_array()?.iter().filter_map(part).collect();
    Some(parts.join(","))
}

fn backoff(details: &Value) -> Option<String> {
    let retry = details.pointer("/config/retry")?;
    let shape = retry.get("backoff")?.as_str()?;
    let duration = |name| Some(durations::exact(retry.get(name)?.as_u64()?));
    Some(match shape {
        "fixed" => format!("fixed, {}", duration("initial_ms")?),
        "exponential" => format!(
            "exponential, {} to {}",
            duration("initial_ms")?,
            duration("max_ms")?
        ),
        other => other.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_shown_by_size_and_hash() {
        let details = json!({
            "counts": {"unclassified": 2, "throttled": 0, "oldest_unclassified_at_ms": 1},
            "config": {
                "on_enqueue": {"bytes": 1_234, "sha256": "0123456789abcdef", "text": "x = 1\n"},
                "on_failure": null,
                "script_failure": "park",
                "park_dead_letter_after": 3,
            },
            "alarms": ["memory", "disk"],
        });
        assert_eq!(
            facts(&details),
            [
                ("  parked", "2".to_owned()),
                ("  oldest parked", "1970-01-01 00:00:00.001 UTC".to_owned()),
                ("on_enqueue", "1,234 bytes, sha256 0123456789ab".to_owned()),
                (
                    "when on_enqueue fails",
                    "park, dead letter after 3 failed tries".to_owned()
                ),
                (
                    "broker low on",
                    "memory and disk: publishers of AMQP and FireMQ wait".to_owned()
                ),
            ]
        );
        assert_eq!(script_text(&details, "on_enqueue"), Some("x = 1\n"));
        assert_eq!(script_text(&details, "on_failure"), None);
    }

    #[test]
    fn policies_are_shown_as_they_are_typed() {
        let details = json!({
            "name": "q",
            "config": {
                "visibility_timeout_ms": 90_000,
                "ordering": {
                    "by": "key",
                    "key": [{"kind": "header", "name": "a"}, {"kind": "fairness_key", "name": ""}],
                    "missing": "reject",
                },
                "dedup_key": [{"kind": "all_headers", "name": ""}],
                "retry": {"backoff": "exponential", "initial_ms": 1_000, "max_ms": 60_000},
            },
        });
        assert_eq!(
            facts(&details),
            [
                ("queue", "q".to_owned()),
                ("visibility timeout", "1m30s".to_owned()),
                (
                    "ordering",
                    "by header:a,fairness-key, messages without it: reject".to_owned()
                ),
                ("dedup key", "headers".to_owned()),
                ("backoff", "exponential, 1s to 1m".to_owned()),
            ]
        );
    }
}
