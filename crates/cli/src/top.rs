//! `tanda top`.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    durations,
    failure::Failure,
    moments,
    output::{Output, printable},
    signals::StopSignals,
    table::{Table, grouped},
    target::TargetArgs,
};

/// Puts the cursor to the top left, and clears from there on (ECMA-48: CUP, ED).
const HOME_AND_CLEAR: &str = "\x1b[H\x1b[J";

#[derive(Args, Debug)]
#[command(after_help = "\
CHANGE is by how much the number of waiting messages grows or shrinks each second. A signal ends it.
When standard output is no terminal, one table follows the other.")]
pub(crate) struct TopArgs {
    /// How often the queues are looked at
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = durations::parse)]
    interval: Duration,
    /// Queues to show, those with most messages first
    #[arg(long, value_name = "N", default_value_t = 20)]
    queues: usize,
    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: TopArgs, before: TargetArgs) -> Result<(), Failure> {
    if args.interval.is_zero() {
        return Err(Failure::Usage(
            "--interval must be longer than nothing".to_owned(),
        ));
    }
    let target = args.target.or(before);
    let door = target.http()?;
    let mut signals = StopSignals::listen()?;
    let is_terminal = io::stdout().is_terminal();
    let mut last: Option<Look> = None;
    let mut looks = 0;
    loop {
        let answer = tokio::select! {
            answer = door.read("/api/tanda/queues") => answer?,
            () = signals.arrived() => return Ok(()),
        };
        let look = Look::new(&answer, Instant::now());
        let mut out = Output::new();
        if target.json {
            out.line(look.as_json(last.as_ref()))?;
        } else {
            if is_terminal {
                out.bytes(HOME_AND_CLEAR.as_bytes())?;
            } else if looks > 0 {
                out.line("")?;
            }
            out.line(moments::utc(moments::now_ms()))?;
            out.line(look.table(last.as_ref(), args.queues))?;
            if let Some(more) = look
                .queues
                .len()
                .checked_sub(args.queues)
                .filter(|it| *it > 0)
            {
                out.line(format_args!("and {} more", grouped(more as u64)))?;
            }
        }
        out.flush()?;
        looks += 1;
        if args.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        last = Some(look);
        tokio::select! {
            () = sleep(args.interval) => {}
            () = signals.arrived() => return Ok(()),
        }
    }
}

/// The counts of all queues at one moment.
#[derive(Debug)]
struct Look {
    at: Instant,
    queues: BTreeMap<String, Counts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    waiting: u64,
    leased: u64,
    ready: u64,
    delayed: u64,
    throttled: u64,
    behind: u64,
    parked: u64,
    consumers: u64,
}

impl Counts {
    fn of(counts: &Value) -> Self {
        let number = |name: &str| counts.get(name).and_then(Value::as_u64).unwrap_or(0);
        Self {
            waiting: number("depth"),
            leased: number("in_flight"),
            ready: number("ready"),
            delayed: number("delayed"),
            throttled: number("throttled"),
            behind: number("behind"),
            parked: number("unclassified") + number("stopped"),
            consumers: number("active_consumers"),
        }
    }

    /// Numbers in the order of the headings.
    fn columns(self) -> [u64; 8] {
        [
            self.waiting,
            self.ready,
            self.delayed,
            self.throttled,
            self.behind,
            self.parked,
            self.leased,
            self.consumers,
        ]
    }
}

const HEADINGS: [&str; 9] = [
    "WAITING",
    "READY",
    "DELAYED",
    "THROTTLED",
    "BEHIND",
    "PARKED",
    "LEASED",
    "CONSUMERS",
    "CHANGE",
];

impl Look {
    fn new(answer: &Value, at: Instant) -> Self {
        let queues = answer.get("queues").and_then(Value::as_array);
        let entry = |queue: &Value| {
            let name = queue.get("name")?.as_str()?;
            Some((name.to_owned(), Counts::of(queue.get("counts")?)))
        };
        let queues = queues.into_iter().flatten().filter_map(entry);
        Self {
            at,
            queues: queues.collect(),
        }
    }

    /// Waiting messages more or less each second, since the look before.
    fn change(&self, name: &str, last: Option<&Self>) -> Option<i64> {
        let last = last?;
        let seconds = self.at.duration_since(last.at).as_secs_f64();
        let (now, then) = (self.queues.get(name)?, last.queues.get(name)?);
        let grown = i128::from(now.waiting) - i128::from(then.waiting);
        if seconds <= 0.0 {
            return None;
        }
        per_second(grown, seconds)
    }

    fn table(&self, last: Option<&Self>, rows: usize) -> Table {
        let mut queues: Vec<(&String, &Counts)> = self.queues.iter().collect();
        // Names are in order already, and the sort keeps that.
        queues.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.waiting + counts.leased));
        let mut table = Table::new(&["QUEUE"], &HEADINGS);
        for (name, counts) in queues.into_iter().take(rows) {
            let change = self.change(name, last);
            let mut row = vec![printable(name.as_bytes())];
            row.extend(counts.columns().map(grouped));
            row.push(change.map_or_else(String::new, signed));
            table.row(row);
        }
        table
    }

    fn as_json(&self, last: Option<&Self>) -> Value {
        let queue = |(name, counts): (&String, &Counts)| {
            json!({
                "name": name,
                "depth": counts.waiting,
                "ready": counts.ready,
                "delayed": counts.delayed,
                "throttled": counts.throttled,
                "behind": counts.behind,
                "parked": counts.parked,
                "in_flight": counts.leased,
                "active_consumers": counts.consumers,
                "change_per_second": self.change(name, last),
            })
        };
        let queues: Value = self.queues.iter().map(queue).collect();
        json!({"at_ms": moments::now_ms(), "queues": queues})
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a rate for people, of numbers far below 2^53"
)]
fn per_second(grown: i128, seconds: f64) -> Option<i64> {
    let rate = (grown as f64 / seconds).round();
    rate.is_finite().then_some(rate as i64)
}

/// "+1,200/s".
fn signed(change: i64) -> String {
    let sign = match change {
        0 => return "0/s".to_owned(),
        ..0 => "-",
        1.. => "+",
    };
    format!("{sign}{}/s", grouped(change.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: Instant, depths: &[(&str, u64)]) -> Look {
        let queue = |(name, depth): &(&str, u64)| {
            let counts = json!({ "depth": depth, "in_flight": 1, "active_consumers": 2 });
            json!({ "name": name, "counts": counts })
        };
        let queues: Value = depths.iter().map(queue).collect();
        Look::new(&json!({ "queues": queues }), at)
    }

    #[test]
    fn the_fullest_queues_come_first_with_their_change() {
        let begun = Instant::now();
        let first = look(begun, &[("a", 100), ("b", 10)]);
        let then = begun + Duration::from_secs(2);
        let second = look(then, &[("a", 50), ("b", 2_410), ("c", 5)]);
        let text = second.table(Some(&first), 2).to_string();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert!(
            rows[1].starts_with("b") && rows[1].ends_with("+1,200/s"),
            "{text}"
        );
        assert!(
            rows[2].starts_with("a") && rows[2].ends_with("-25/s"),
            "{text}"
        );
        assert_eq!(second.change("c", Some(&first)), None);
        let json = second.as_json(Some(&first));
        assert_eq!(json["queues"][0]["change_per_second"], -25);
        assert_eq!(json["queues"][2]["change_per_second"], Value::Null);
    }
}
