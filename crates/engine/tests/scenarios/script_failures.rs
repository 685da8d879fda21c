//! `on_failure`: fila-semantics 'Message life' and 'Lua hooks', fila.md 'Nack'.

use tanda_engine::{
    AdminReply, AdminRequest, Backoff, Content, DeliveryDurability, FailureReason, Form, MessageId,
    MessagePlace, QueueChanges, QueueSpec, ScriptJob, ScriptTask, Settlement, VhostId,
};

use crate::scripted::{Scripted, msg};

/// A queue whose failures a script decides on, and whose policy allows one delivery.
fn decided(script: &str) -> QueueSpec {
    QueueSpec {
        name: "jobs".to_owned(),
        on_failure: Some(script.to_owned()),
        max_attempts: 1,
        lease_ms: 10_000,
        backoff: Some(Backoff::Fixed),
        backoff_initial_ms: 700,
        ..QueueSpec::default()
    }
}

/// A broker with one message out.
fn one_out(spec: QueueSpec) -> (Scripted, MessageId) {
    let mut s = Scripted::with(spec);
    s.publish(&[msg("a").key("k").header("h", "v")]);
    let ids = s.take("jobs");
    (s, ids[0])
}

fn call(job: &ScriptJob) -> tanda_engine::FailureCall {
    match &job.task {
        ScriptTask::Failure(calls) if calls.len() == 1 => calls[0].clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_nacks_answer_waits_for_the_decision() {
    let (mut s, id) = one_out(decided("retry 500"));
    assert_eq!(s.nack(id, None), [""; 0]);
    assert_eq!(s.figures_now(), [0, 1]);
    let job = s.h.script_job();
    let it = call(&job);
    assert_eq!((it.id, it.attempts, it.redrives), (id, 1, 0));
    assert_eq!(it.reason, FailureReason::Nack);
    assert_eq!(&it.error[..], b"the words of a consumer");
    let content = Content::new(Form::Fila, it.content.bytes());
    assert_eq!(content.header(b"h").as_deref(), Some(&b"v"[..]));
    let out = s.h.finish(job);
    assert_eq!(s.lines(&out), ["#2 ok"]);
    assert_eq!(out[0].after, s.h.journal.end);
    // The retry policy, with its one attempt, does not limit it.
    assert_eq!(s.after(499), [""; 0]);
    assert_eq!(s.after(1), ["jobs: a(k*1)#2"]);
}

#[test]
fn a_script_decides_and_the_consumer_says_only_when() {
    for (script, retry_after_ms, due_ms) in [
        ("retry 500", Some(90), 90),
        ("retry", Some(90), 90),
        ("retry", None, 700),
        ("retry 0", None, 0),
    ] {
        let (mut s, id) = one_out(decided(script));
        s.nack(id, retry_after_ms);
        let lines = s.run();
        assert_eq!(lines[0], "#2 ok");
        let mut later = lines[1..].to_vec();
        if due_ms > 0 {
            assert_eq!(s.after(due_ms - 1), [""; 0], "{script}");
            later = s.after(1);
        }
        assert_eq!(later, ["jobs: a(k*1)#2"], "{script} {retry_after_ms:?}");
    }
    let (mut s, id) = one_out(decided("dlq"));
    s.nack(id, Some(90));
    assert_eq!(s.run(), ["#2 ok"]);
    assert_eq!(s.consume("jobs.dlq"), ["jobs.dlq: a(k*1)#2"]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs.dlq"), [0, 1, 0, 0]);
}

#[test]
fn without_a_decision_the_retry_policy_decides() {
    for script in ["nil", "error", "hang"] {
        let (mut s, id) = one_out(QueueSpec {
            max_attempts: 2,
            ..decided(script)
        });
        s.nack(id, None);
        assert_eq!(s.run(), ["#2 ok"]);
        assert_eq!(s.after(700), ["jobs: a(k*1)#2"], "{script}");
        s.nack(id, None);
        assert_eq!(s.run(), ["#3 ok"]);
        assert_eq!(s.figures("jobs"), [0, 0, 0, 0], "{script}");
        assert_eq!(s.figures("jobs.dlq"), [1, 0, 0, 0], "{script}");
    }
}

#[test]
fn an_expired_lease_asks_too_and_a_late_ack_finds_nothing() {
    let (mut s, id) = one_out(decided("retry 500"));
    s.h.now = s.h.now.after_ms(10_000);
    let out = s.h.run();
    assert_eq!(s.lines(&out), [""; 0]);
    let job = s.h.script_job();
    let it = call(&job);
    assert_eq!((it.reason, it.attempts), (FailureReason::LeaseExpired, 1));
    assert!(it.error.is_empty());
    let late = [(id, Settlement::Ack), (id, Settlement::Extend { by_ms: 9 })];
    let lines = s.settle("jobs", &late);
    assert_eq!(lines, ["#2 MessageNotFound MessageNotFound"]);
    assert_eq!(s.figures_now(), [0, 1]);
    let name = "jobs".to_owned();
    let message = Some(id);
    let request = AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name,
        message,
    };
    let mut out = s.ask(request);
    out.extend(s.h.run());
    let place = format!("{:?}", MessagePlace::Deciding { attempts: 1 });
    assert!(s.lines(&out).concat().contains(&place), "{out:?}");
    s.finish(job);
    assert_eq!(s.after(500), ["jobs: a(k*1)#2"]);
}

#[test]
fn a_crash_before_the_decision_leaves_the_lease() {
    for snapshot in [false, true] {
        for durability in [DeliveryDurability::Committed, DeliveryDurability::Fast] {
            let (mut s, id) = one_out(QueueSpec {
                durability,
                ..decided("retry 500")
            });
            s.nack(id, None);
            if snapshot {
                s.h.take_snapshot();
            }
            s.h.restart(0);
            // A fast queue holds it back for the reclaim grace, then it has not failed.
            let is_fast = durability == DeliveryDurability::Fast;
            assert_eq!(s.figures("jobs"), [0, 1, 0, 0]);
            s.consume("jobs");
            let lines = s.after(10_000);
            let again = ["jobs: a(k*1)"];
            if is_fast {
                assert_eq!(lines, again);
            } else {
                assert_eq!(lines, [""; 0]);
                assert_eq!(s.after(500), ["jobs: a(k*1)#2"]);
            }
        }
    }
}

#[test]
fn failures_gather_while_a_job_is_out() {
    let mut s = Scripted::with(decided("retry 500"));
    s.publish(&[msg("a"), msg("b"), msg("c")]);
    let ids = s.take("jobs");
    s.nack(ids[0], None);
    let first = s.h.script_job();
    let error = tanda_engine::Span::default();
    let fail = Settlement::Fail {
        error,
        retry_after_ms: None,
    };
    // One answer for what is decided at once and what is not.
    let items = [
        (ids[1], fail),
        (ids[2], Settlement::Ack),
        (ids[0], fail),
        (ids[1], fail),
    ];
    assert_eq!(s.settle("jobs", &items), [""; 0]);
    assert!(s.h.script_jobs().is_empty());
    assert_eq!(s.finish(first), ["#2 ok"]);
    let second = s.h.script_job();
    let twice = "#3 ok ok MessageNotFound MessageNotFound";
    assert_eq!(s.finish(second), [twice]);
    assert_eq!(s.after(500), ["jobs: a(*1)#2", "jobs: b(*1)#2"]);
}

#[test]
fn a_removed_script_leaves_failures_to_the_policy() {
    let mut s = Scripted::with(decided("retry 500"));
    s.publish(&[msg("a"), msg("b")]);
    let ids = s.take("jobs");
    s.nack(ids[0], None);
    let job = s.h.script_job();
    s.nack(ids[1], None);
    let request = AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(QueueChanges {
            on_failure: Some(None),
            ..QueueChanges::default()
        }),
    };
    s.ask(request);
    // The one under way is decided by its script, the other by the policy: one attempt.
    assert_eq!(s.finish(job), ["#2 ok", "#3 ok"]);
    assert_eq!(s.figures("jobs.dlq"), [1, 0, 0, 0]);
    assert_eq!(s.after(500), ["jobs: a(*1)#2"]);
}

#[test]
fn a_deleted_queue_answers_its_nacks() {
    let mut s = Scripted::with(decided("retry 500"));
    s.publish(&[msg("a"), msg("b")]);
    let ids = s.take("jobs");
    s.nack(ids[0], None);
    let job = s.h.script_job();
    s.nack(ids[1], None);
    let name = "jobs".to_owned();
    let request = AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    };
    let out = s.ask(request);
    let settled: Vec<_> = out
        .iter()
        .filter(|it| matches!(it.event, tanda_engine::Event::Settled { .. }))
        .cloned()
        .collect();
    let mut lines = s.lines(&settled);
    lines.sort();
    assert_eq!(lines, ["#2 MessageNotFound", "#3 MessageNotFound"]);
    assert_eq!(s.finish(job), [""; 0]);
}

#[test]
fn dead_letters_and_refused_messages_are_nobodys_question() {
    let (mut s, id) = one_out(decided("dlq"));
    let lines = s.settle("jobs", &[(id, Settlement::Reject)]);
    assert_eq!(lines, ["#2 ok"]);
    let ids = s.take("jobs.dlq");
    let error = tanda_engine::Span::default();
    let fail = Settlement::Fail {
        error,
        retry_after_ms: Some(0),
    };
    assert_eq!(s.settle("jobs.dlq", &[(ids[0], fail)]), ["#3 ok"]);
    assert!(s.h.script_jobs().is_empty());
    assert!(matches!(
        s.h.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name: "jobs.dlq".to_owned()
        }),
        AdminReply::Inspected(Ok(_))
    ));
}
