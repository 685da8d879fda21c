//! Which jobs finish, and before which others. Nothing here looks at a clock.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use tanda_engine::{
    CallContent, Decision, EnqueueCall, FailureCall, FailureReason, Form, MessageId, QueueId,
    QueueScripts, ScriptFault, ScriptJob, ScriptOutcome, ScriptTask,
};
use tanda_script::Limits;

use super::{Done, ScriptHost};

const ENDLESS: &str = "function on_enqueue() while true do pcall(error) end end";
const TENANT: &str = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end";

struct Bench {
    host: ScriptHost,
    threads: [JoinHandle<()>; 2],
    finished: Receiver<(u64, ScriptOutcome)>,
}

impl Bench {
    fn start() -> Self {
        Self::start_with(Limits::default())
    }

    fn start_with(limits: Limits) -> Self {
        let (sender, finished) = channel();
        let done: Done = Arc::new(move |job: ScriptJob, outcome| {
            drop(sender.send((job.ticket, outcome)));
        });
        let (host, threads) = ScriptHost::start(limits, &done).unwrap();
        Self {
            host,
            threads,
            finished,
        }
    }

    fn submit(&self, job: ScriptJob) {
        self.host.submit(&mut vec![job]);
    }

    fn next(&self) -> (u64, ScriptOutcome) {
        self.finished.recv().unwrap()
    }

    /// Ends both threads, and says what they finished meanwhile.
    fn stop(self) -> Vec<u64> {
        drop(self.host);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.finished.try_iter().map(|(ticket, _)| ticket).collect()
    }
}

fn job(ticket: u64, version: u64, scripts: [Option<&str>; 2], task: ScriptTask) -> ScriptJob {
    let [on_enqueue, on_failure] = scripts.map(|source| source.map(Arc::from));
    ScriptJob {
        ticket,
        queue_id: QueueId(1),
        queue: Arc::from("orders"),
        scripts: Arc::new(QueueScripts {
            version,
            on_enqueue,
            on_failure,
        }),
        runtime: Arc::new(BTreeMap::new()),
        task,
    }
}

fn content(tenant: &str) -> CallContent {
    let mut bytes = vec![0, 1, 0, 6];
    bytes.extend_from_slice(b"tenant");
    bytes.extend_from_slice(&u16::try_from(tenant.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(tenant.as_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    CallContent::Here(Bytes::from(bytes))
}

fn enqueue(count: usize) -> ScriptTask {
    ScriptTask::Enqueue(
        (0..count)
            .map(|n| call(content(&format!("t{n}"))))
            .collect(),
    )
}

fn call(content: CallContent) -> EnqueueCall {
    EnqueueCall {
        content,
        form: Form::Fila,
        fairness_key: "".into(),
        weight: 1,
    }
}

fn keys(outcome: &ScriptOutcome) -> Vec<Result<&str, &ScriptFault>> {
    let ScriptOutcome::Enqueue(results) = outcome else {
        panic!("{outcome:?}")
    };
    results
        .iter()
        .map(|result| match result {
            Ok(classified) => Ok(classified.fairness_key.as_deref().unwrap()),
            Err(fault) => Err(fault),
        })
        .collect()
}

#[test]
fn every_call_gets_its_result_in_order() {
    let bench = Bench::start();
    bench.submit(job(1, 1, [Some(TENANT), None], enqueue(5000)));
    let (ticket, outcome) = bench.next();
    let keys = keys(&outcome);
    assert_eq!((ticket, keys.len()), (1, 5000));
    for (n, key) in keys.into_iter().enumerate() {
        assert_eq!(key, Ok(format!("t{n}").as_str()));
    }
    assert_eq!(bench.stop(), [0_u64; 0]);
}

#[test]
fn what_cannot_be_read_is_said_in_its_place() {
    let bench = Bench::start();
    let contents = [
        CallContent::Unreadable,
        content("a"),
        CallContent::Unreadable,
        CallContent::Unreadable,
        content("b"),
    ];
    let calls = contents.into_iter().map(call).collect();
    bench.submit(job(1, 1, [Some(TENANT), None], ScriptTask::Enqueue(calls)));
    let (_, outcome) = bench.next();
    let unreadable = Err(&ScriptFault::Unreadable);
    assert_eq!(
        keys(&outcome),
        [unreadable, Ok("a"), unreadable, unreadable, Ok("b")]
    );
}

#[test]
fn decisions_on_failures_come_back() {
    let bench = Bench::start();
    let source = "function on_failure(msg)
        if msg.error == 'later' then return { action = 'retry', delay_ms = msg.attempts } end
        if msg.reason == 'lease_expired' then return { action = 'dlq' } end
    end";
    let call = |reason, error: &'static str| FailureCall {
        content: content("a"),
        form: Form::Fila,
        id: MessageId(7),
        attempts: 2,
        redrives: 0,
        reason,
        error: Bytes::from_static(error.as_bytes()),
    };
    let calls = vec![
        call(FailureReason::Nack, "later"),
        call(FailureReason::LeaseExpired, ""),
        call(FailureReason::Nack, ""),
    ];
    bench.submit(job(9, 1, [None, Some(source)], ScriptTask::Failure(calls)));
    let retry = Decision::Retry { delay_ms: Some(2) };
    let results = vec![Ok(Some(retry)), Ok(Some(Decision::DeadLetter)), Ok(None)];
    assert_eq!(bench.next(), (9, ScriptOutcome::Failure(results)));
}

#[test]
fn checks_name_the_script_and_the_line() {
    let bench = Bench::start();
    let check = |scripts| {
        bench.submit(job(1, 1, scripts, ScriptTask::Check));
        let ScriptOutcome::Checked(result) = bench.next().1 else {
            panic!("not a check")
        };
        result
    };
    assert_eq!(check([Some(TENANT), None]), Ok(()));
    assert_eq!(check([None, None]), Ok(()));
    assert_eq!(
        check([Some(TENANT), Some("function on_failure() end")]),
        Ok(())
    );
    let text = check([Some(TENANT), Some("\nfunction on_failure( end")]).unwrap_err();
    assert!(text.starts_with("on_failure:2:"), "{text}");
    assert!(check([Some(ENDLESS), None]).is_ok(), "it is not called");
    assert!(check([Some("while true do end"), None]).is_err());
}

#[test]
fn a_script_without_end_delays_no_other_queue() {
    let bench = Bench::start();
    bench.submit(job(1, 1, [Some(ENDLESS), None], enqueue(100_000)));
    for ticket in 2..102 {
        let version = ticket % 5 + 2;
        bench.submit(job(ticket, version, [Some(TENANT), None], enqueue(100)));
    }
    // Checks go the slow way, in turn with the script that has no end.
    bench.submit(job(200, 200, [Some(TENANT), None], ScriptTask::Check));
    let mut finished: Vec<u64> = (0..101).map(|_| bench.next().0).collect();
    finished.sort_unstable();
    let expected: Vec<u64> = (2..102).chain([200]).collect();
    assert_eq!(
        finished, expected,
        "all others, and not the one without end"
    );
    assert!(!bench.stop().contains(&1));
}

#[test]
fn others_go_on_beside_a_call_that_holds_its_thread() {
    // Longer than the others may have to wait for a processor.
    let bench = Bench::start_with(Limits {
        time: Duration::from_secs(10),
        ..Limits::default()
    });
    bench.submit(job(1, 1, [Some(ENDLESS), None], enqueue(1)));
    for ticket in 2..12 {
        bench.submit(job(ticket, ticket, [Some(TENANT), None], enqueue(10)));
    }
    let finished: Vec<u64> = (0..11).map(|_| bench.next().0).collect();
    assert_eq!(finished.last(), Some(&1), "{finished:?}");
    assert!(bench.host.memory_bytes() > 0, "states count");
    assert_eq!(bench.stop(), [0_u64; 0]);
}

#[test]
fn a_slow_queue_still_gets_its_results() {
    let bench = Bench::start();
    let source = "local n = 0
        function on_enqueue(msg)
            if msg.headers.tenant == 't1' then while true do end end
            return { fairness_key = msg.headers.tenant }
        end";
    bench.submit(job(1, 1, [Some(source), None], enqueue(4)));
    bench.submit(job(2, 1, [Some(source), None], enqueue(2)));
    let (first, outcome) = bench.next();
    let timed_out = Err(&ScriptFault::TimedOut);
    assert_eq!(keys(&outcome), [Ok("t0"), timed_out, Ok("t2"), Ok("t3")]);
    let (second, outcome) = bench.next();
    assert_eq!(keys(&outcome), [Ok("t0"), timed_out]);
    assert_eq!((first, second), (1, 2));
}

#[test]
fn stopping_gives_up_what_waits() {
    let bench = Bench::start();
    for version in 1..20 {
        bench.submit(job(
            version,
            version,
            [Some(ENDLESS), None],
            enqueue(100_000),
        ));
    }
    assert_eq!(bench.stop(), [0_u64; 0]);
}
