//! Runs seeds of the simulator and names those that found something.
//!
//! `tanda-sim [--seeds A..B | --seed N] [--steps N] [--log] [--canary NAME]`

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::process::ExitCode;

use tanda_sim::{Canary, Options, run};

const USAGE: &str = "\
usage: tanda-sim [--seeds A..B | --seed N] [--steps N] [--log]
                 [--canary sync-lies|lost-writes|forgotten-acks|forgotten-messages|
                           repeated-delivery|unsynced-pages|unsynced-snapshots|reused-slot|
                           drained-early|no-timers|forgotten-purges|
                           backup-gaps|sorted-deliveries|turned-bits|kept-files|
                           ignored-scripts|forgotten-decisions|forgotten-throttles|
                           freed-segment|stale-keys|forgotten-revocations|
                           forgotten-bindings|lost-dead-letters|early-confirms|
                           double-requeues|forgotten-alternates|
                           transient-fire|fresh-fire|immortal-queues|
                           forgotten-additions|double-items]

  --seeds A..B  runs the seeds from A up to B, B left out (default 0..100)
  --seed N      runs one seed
  --steps N     steps of the phase with faults (default 6000)
  --log         prints every event of a seed that fails
  --canary      builds a bug in, to see it found";

struct Arguments {
    from: u64,
    to: u64,
    options: Options,
}

fn main() -> ExitCode {
    #[expect(
        clippy::disallowed_methods,
        reason = "the program's own arguments; the library takes values"
    )]
    let arguments = std::env::args().skip(1);
    let Some(arguments) = parse(arguments) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut failures = 0_u64;
    for seed in arguments.from..arguments.to {
        match run(seed, &arguments.options) {
            Ok(report) if arguments.to - arguments.from == 1 => println!("{report:#?}"),
            Ok(_) => {}
            Err(failure) => {
                failures += 1;
                for line in &failure.log {
                    println!("{line}");
                }
                println!("{failure}");
            }
        }
        let done = seed + 1 - arguments.from;
        if done.is_multiple_of(500) {
            println!("{done} seeds done, {failures} failed");
        }
    }
    println!(
        "seeds {}..{}: {failures} failed",
        arguments.from, arguments.to
    );
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut parsed = Arguments {
        from: 0,
        to: 100,
        options: Options::default(),
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => {
                let range = arguments.next()?;
                let (from, to) = range.split_once("..")?;
                (parsed.from, parsed.to) = (from.parse().ok()?, to.parse().ok()?);
            }
            "--seed" => {
                parsed.from = arguments.next()?.parse().ok()?;
                parsed.to = parsed.from + 1;
            }
            "--steps" => parsed.options.steps = arguments.next()?.parse().ok()?,
            "--log" => parsed.options.keeps_log = true,
            "--canary" => {
                parsed.options.canary = match arguments.next()?.as_str() {
                    "sync-lies" => Canary::SyncLies,
                    "lost-writes" => Canary::LostWrites,
                    "forgotten-acks" => Canary::ForgottenAcks,
                    "forgotten-messages" => Canary::ForgottenMessages,
                    "repeated-delivery" => Canary::RepeatedDelivery,
                    "unsynced-pages" => Canary::UnsyncedPages,
                    "unsynced-snapshots" => Canary::UnsyncedSnapshots,
                    "reused-slot" => Canary::ReusedSlot,
                    "drained-early" => Canary::DrainedEarly,
                    "forgotten-purges" => Canary::ForgottenPurges,
                    "backup-gaps" => Canary::BackupGaps,
                    "sorted-deliveries" => Canary::SortedDeliveries,
                    "turned-bits" => Canary::TurnedBits,
                    "kept-files" => Canary::KeptFiles,
                    "ignored-scripts" => Canary::IgnoredScripts,
                    "forgotten-decisions" => Canary::ForgottenDecisions,
                    "forgotten-throttles" => Canary::ForgottenThrottles,
                    "stale-keys" => Canary::StaleKeys,
                    "forgotten-revocations" => Canary::ForgottenRevocations,
                    "no-timers" => Canary::NoTimers,
                    "freed-segment" => Canary::FreedSegment,
                    "forgotten-bindings" => Canary::ForgottenBindings,
                    "lost-dead-letters" => Canary::LostDeadLetters,
                    "early-confirms" => Canary::EarlyConfirms,
                    "double-requeues" => Canary::DoubleRequeues,
                    "forgotten-alternates" => Canary::ForgottenAlternates,
                    "transient-fire" => Canary::TransientFire,
                    "fresh-fire" => Canary::FreshFire,
                    "immortal-queues" => Canary::ImmortalQueues,
                    "forgotten-additions" => Canary::ForgottenAdditions,
                    "double-items" => Canary::DoubleItems,
                    _ => return None,
                };
            }
            _ => return None,
        }
    }
    Some(parsed)
}
