//! One thread of the host: takes work, gives each script a bounded turn, hands results over.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tanda_script::{Host, Limits, thread_cpu_time};

use super::{
    Done,
    board::{Board, Lane, Next},
    pace::Spent,
    work::{Ran, Work},
};

/// Time of one turn; a call under way then is finished.
const TURN: Duration = Duration::from_millis(1);
/// How many times as long as it worked the slow thread rests.
const REST_TIMES: u32 = 3;
/// Recursion in a script and in its compiler takes some of the stack; only what is used is taken
/// from the system.
const STACK_BYTES: usize = 8 << 20;

pub(super) fn start(
    board: Arc<Board>,
    lane: Lane,
    limits: Limits,
    done: Done,
) -> io::Result<JoinHandle<()>> {
    let name = match lane {
        Lane::Quick => "tanda-scripts",
        Lane::Slow => "tanda-slow-scr",
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || run(&board, lane, limits, &done))
}

fn run(board: &Arc<Board>, lane: Lane, limits: Limits, done: &Done) {
    let mut host = Host::new(limits);
    let (mut rest_until, mut bytes) = (None, 0);
    loop {
        let mut work = match board.take(lane, rest_until) {
            Next::Work(work) => work,
            Next::Help => {
                help(board, limits, done);
                continue;
            }
            Next::End => break,
        };
        let (version, started) = (work.version(), thread_cpu_time());
        let ran = turn(&mut work, &mut host, limits);
        let time = thread_cpu_time().saturating_sub(started);
        let before = std::mem::replace(&mut bytes, host.used_bytes());
        board.note_memory(before, bytes);
        if lane == Lane::Slow {
            rest_until = Some(Instant::now() + time * REST_TIMES);
        }
        let unfinished = if work.is_done() {
            let (job, outcome) = work.finish();
            done(job, outcome);
            None
        } else {
            Some(work)
        };
        let spent = Spent {
            time,
            calls: u32::try_from(ran.calls).unwrap_or(u32::MAX),
            timed_out: ran.timed_out,
        };
        if board.give_back(version, unfinished, spent) {
            break;
        }
    }
    drop(host);
    board.note_memory(bytes, 0);
}

/// Starts another quick thread. Nobody waits for its end.
fn help(board: &Arc<Board>, limits: Limits, done: &Done) {
    tracing::warn!("a script is in one statement for longer than 100 ms; others go on beside it");
    let started = start(Arc::clone(board), Lane::Quick, limits, Arc::clone(done));
    if let Err(error) = started {
        board.lost_helper();
        tracing::error!("no thread for scripts can be started: {error}");
    }
}

/// A panic costs the job and the states, and nothing else: what a script does must not end the
/// broker, whatever is found in the library that runs it.
fn turn(work: &mut Work, host: &mut Host, limits: Limits) -> Ran {
    let ran = catch_unwind(AssertUnwindSafe(|| work.run(host, TURN)));
    ran.unwrap_or_else(|_| {
        tracing::error!("a bug: running a script panicked; its job is given up");
        work.give_up("a bug of the broker: running the script panicked");
        *host = Host::new(limits);
        Ran {
            calls: 1,
            timed_out: true,
        }
    })
}
