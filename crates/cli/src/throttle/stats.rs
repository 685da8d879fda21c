//! `tanda throttle stats`.

use clap::Args;
use serde_json::{Value, json};
use tanda_client::admin::{BucketStats, ThrottleStats};

use super::{bucket_json, bucket_name, counts, limits, room, summary_json};
use crate::{
    durations,
    failure::Failure,
    key_parts, moments,
    output::{Output, printable},
    table::{Table, grouped},
    target::TargetArgs,
};

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// The throttle, by the name under which consumers declare it
    name: String,
    /// Buckets to show, those with most waiting messages first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: u32,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: StatsArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let stats = admin
        .throttle_stats(&name, args.top)
        .await
        .map_err(|error| Failure::request(format!("read throttle {name:?}"), &error))?;
    let mut out = Output::new();
    if target.json {
        out.document(&as_json(&stats))?;
        return out.flush();
    }
    for (label, value) in facts(&stats) {
        out.line(format_args!("{label:<22}{value}"))?;
    }
    if !stats.buckets.is_empty() {
        out.line("")?;
        out.line(buckets(&stats, moments::now_ms()))?;
    }
    out.flush()
}

fn as_json(stats: &ThrottleStats) -> Value {
    let mut answer = summary_json(&stats.summary);
    let more = json!({
        "queues": stats.queues,
        "active_buckets": stats.active_buckets,
        "buckets_at_limit": stats.buckets_at_limit,
        "waiting": stats.waiting,
        "buckets": stats.buckets.iter().map(bucket_json).collect::<Value>(),
    });
    if let (Some(answer), Value::Object(more)) = (answer.as_object_mut(), more) {
        answer.extend(more);
    }
    answer
}

fn facts(stats: &ThrottleStats) -> Vec<(&'static str, String)> {
    let summary = &stats.summary;
    let mut facts = vec![
        ("throttle", printable(summary.name.as_bytes())),
        ("at most", limits(summary)),
    ];
    if summary.key.parts.is_empty() {
        facts.push(("key", "(none: one bucket for all messages)".to_owned()));
    } else {
        let missing = if summary.unthrottled_without_key {
            "not limited"
        } else {
            "share one bucket"
        };
        facts.push(("key", key_parts::shown(&summary.key)));
        facts.push(("messages without it", missing.to_owned()));
    }
    let queues = stats.queues.iter().map(|queue| printable(queue.as_bytes()));
    facts.extend([
        ("declared by", consumers(summary.declaring_subscribers)),
        ("queues", queues.collect::<Vec<_>>().join(", ")),
        ("buckets in use", grouped(stats.active_buckets)),
        ("buckets without room", grouped(stats.buckets_at_limit)),
        ("messages waiting", grouped(stats.waiting)),
    ]);
    facts
}

fn consumers(count: u32) -> String {
    crate::table::counted(u64::from(count), "consumer")
}

fn buckets(stats: &ThrottleStats, now_ms: u64) -> Table {
    let windows = stats.summary.limits.iter().map(|limit| {
        let window = durations::exact(limit.window_ms);
        format!("IN {window}")
    });
    let windows: Vec<String> = windows.collect();
    let mut numbers = vec!["WAITING"];
    numbers.extend(windows.iter().map(String::as_str));
    let mut table = Table::new(&["BUCKET", "ROOM"], &numbers);
    for bucket in &stats.buckets {
        table.row(row(bucket, stats, now_ms));
    }
    table
}

fn row(bucket: &BucketStats, stats: &ThrottleStats, now_ms: u64) -> Vec<String> {
    let mut row = vec![
        bucket_name(&bucket.id),
        room(bucket, now_ms),
        grouped(bucket.waiting),
    ];
    row.extend(counts(bucket, &stats.summary));
    row
}

#[cfg(test)]
mod tests {
    use tanda_client::{
        KeyPart, PropertyKey,
        admin::{BucketId, ThrottleLimit, ThrottleSummary},
    };

    use super::*;

    fn stats() -> ThrottleStats {
        let limit = |max_deliveries, window_ms| ThrottleLimit {
            max_deliveries,
            window_ms,
        };
        let bucket = |id, waiting, next_room_at_ms| BucketStats {
            id,
            counted: vec![100, 400],
            waiting,
            next_room_at_ms,
        };
        ThrottleStats {
            summary: ThrottleSummary {
                name: "api".to_owned(),
                limits: vec![limit(100, 1_000), limit(1_000, 60_000)],
                key: PropertyKey::of([KeyPart::header("x-tenant"), KeyPart::FairnessKey]),
                unthrottled_without_key: false,
                declaring_subscribers: 2,
            },
            queues: vec!["a".to_owned(), "b".to_owned()],
            active_buckets: 3,
            buckets_at_limit: 1,
            waiting: 1_234,
            buckets: vec![
                bucket(
                    BucketId::Values(vec!["acme".to_owned(), String::new()]),
                    1_230,
                    1_350,
                ),
                bucket(BucketId::Shared, 4, 0),
            ],
        }
    }

    #[test]
    fn a_throttle_is_shown_with_its_fullest_buckets() {
        let stats = stats();
        let facts = facts(&stats);
        assert!(facts.contains(&("at most", "100 in 1s, 1,000 in 1m".to_owned())));
        assert!(facts.contains(&("key", "header:x-tenant,fairness-key".to_owned())));
        assert!(facts.contains(&("messages without it", "share one bucket".to_owned())));
        assert_eq!(
            buckets(&stats, 1_000).to_string(),
            "BUCKET                      ROOM       WAITING    IN 1s     IN 1m\n\
             acme \"\"                     in 350 ms    1,230  100/100  400/1,000\n\
             (messages without the key)  now              4  100/100  400/1,000"
                .replace("    IN 1s     IN 1m", "    IN 1s      IN 1m")
        );
    }

    #[test]
    fn programs_get_all_of_it() {
        let answer = as_json(&stats());
        assert_eq!(answer["limits"][1]["window_ms"], 60_000);
        assert_eq!(
            answer["key"],
            json!([
                {"kind": "header", "name": "x-tenant"},
                {"kind": "fairness_key", "name": ""},
            ])
        );
        assert_eq!(answer["missing"], "shared");
        assert_eq!(answer["buckets"][0]["values"], json!(["acme", ""]));
        assert_eq!(answer["buckets"][1]["kind"], "shared");
    }
}
