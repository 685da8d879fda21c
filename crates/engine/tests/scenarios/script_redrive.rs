//! Redrive by way of the script: fila.md 'Redrive', fila-semantics 'Dead letters'.

use tanda_engine::{
    AdminReply, AdminRequest, Ordering, QueueChanges, QueueSpec, Reclassify, Redriven,
    ScriptFailure, VhostId,
};

use crate::scripted::{Scripted, classified, msg};

/// A queue that dead-letters what its script fails on, and what fails once.
fn spec(script_failure: ScriptFailure) -> QueueSpec {
    QueueSpec {
        script_failure,
        park_dead_letter_after: 1,
        max_attempts: 1,
        ..classified("jobs", "v1")
    }
}

/// Dead letters: `a` classified by `v1`, `b` and `c` not, `d` classified.
fn dead_letters() -> Scripted {
    let mut s = Scripted::with(spec(ScriptFailure::Park));
    let of = |name: &str| msg(name).key("claimed").header("@by", "x");
    s.publish(&[of("a").header("tenant", "t")]);
    let ids = s.take("jobs");
    s.nack(ids[0], None);
    s.publish(&[
        of("b").header("fails", "v1 v2"),
        of("c").header("fails", "v1"),
    ]);
    s.publish(&[of("d").header("fails", "v2")]);
    assert_eq!(s.figures("jobs"), [0, 1, 0, 0]);
    s
}

fn redrive(s: &mut Scripted, count: u64, reclassify: Reclassify) -> [u64; 3] {
    let name = "jobs.dlq".to_owned();
    let reply = s.h.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count,
        reclassify,
    });
    match reply {
        AdminReply::Redriven(Ok(done)) => [
            done.redriven,
            done.left_unclassified,
            done.rejected_by_script,
        ],
        other => panic!("{other:?}"),
    }
}

/// `d` fails too, so that all four are dead letters.
fn all_dead() -> Scripted {
    let mut s = dead_letters();
    s.after(30_000);
    assert_eq!(s.figures("jobs.dlq"), [4, 0, 0, 0]);
    // Nobody takes what comes back.
    s.h.restart(0);
    s
}

#[test]
fn none_leaves_what_is_unclassified() {
    let mut s = all_dead();
    s.set_script(Some("v2"));
    assert_eq!(redrive(&mut s, 0, Reclassify::None), [2, 2, 0]);
    assert_eq!(s.figures("jobs.dlq"), [2, 0, 0, 0]);
    s.h.restart(0);
    let mut lines = s.consume("jobs.dlq");
    lines.sort();
    assert_eq!(lines, ["jobs.dlq: b(claimed*1)", "jobs.dlq: c(claimed*1)"]);
}

#[test]
fn unclassified_only_runs_the_script_for_those() {
    let mut s = all_dead();
    s.set_script(Some("v2"));
    // `b` fails again and is parked in its queue; `d` would fail and is not asked.
    assert_eq!(redrive(&mut s, 0, Reclassify::Unclassified), [4, 0, 0]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs"), [4, 0, 1, 0]);
    let mut lines = s.consume("jobs");
    lines.sort();
    assert_eq!(
        lines,
        [
            "jobs: a@(t*1)",
            "jobs: c@(claimed*1)",
            "jobs: d@(claimed*1)"
        ]
    );
    s.set_script(Some("v3"));
    assert_eq!(s.figures("jobs"), [0, 4, 0, 0]);
}

#[test]
fn all_runs_the_script_for_all_in_order() {
    let mut s = all_dead();
    s.set_script(Some("v3"));
    assert_eq!(redrive(&mut s, 3, Reclassify::All), [3, 0, 0]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs.dlq"), [1, 0, 0, 0]);
    let lines = s.consume("jobs");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[test]
fn rejected_messages_stay_and_are_counted() {
    let mut s = Scripted::with(spec(ScriptFailure::Reject));
    s.publish(&[msg("a"), msg("b").header("fails", "v2"), msg("c")]);
    let ids = s.take("jobs");
    for id in ids {
        s.nack(id, None);
    }
    assert_eq!(s.figures("jobs.dlq"), [3, 0, 0, 0]);
    s.set_script(Some("v2"));
    assert_eq!(redrive(&mut s, 0, Reclassify::All), [2, 0, 1]);
    assert_eq!(s.figures("jobs.dlq"), [1, 0, 0, 0]);
    // It is where it was, and a second redrive meets it again.
    assert_eq!(redrive(&mut s, 0, Reclassify::All), [0, 0, 1]);
    s.h.restart(0);
    assert_eq!(s.consume("jobs.dlq"), ["jobs.dlq: b(*1)#2"]);
}

#[test]
fn without_a_script_all_go_as_they_are() {
    let mut s = all_dead();
    s.set_script(None);
    assert_eq!(redrive(&mut s, 0, Reclassify::Unclassified), [4, 0, 0]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs"), [4, 0, 0, 0]);
}

#[test]
fn dead_letters_are_put_aside_while_the_script_runs() {
    let mut s = all_dead();
    s.set_script(Some("v3"));
    let name = "jobs.dlq".to_owned();
    let request = AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: Reclassify::All,
    };
    let mut out = s.ask(request);
    out.extend(s.h.run());
    assert!(out.is_empty(), "{out:?}");
    let job = s.h.script_job();
    assert_eq!(&*job.queue, "jobs");
    assert_eq!(s.figures_now_of("jobs.dlq"), [4, 0]);
    assert_eq!(s.take("jobs.dlq"), []);
    // A crash now changes nothing; a snapshot either.
    s.h.take_snapshot();
    let mut lines = s.finish(job);
    lines.extend(s.run());
    let done = Redriven {
        redriven: 4,
        ..Redriven::default()
    };
    assert_eq!(lines, [format!("{:?}", AdminReply::Redriven(Ok(done)))]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs"), [4, 0, 0, 0]);
}

#[test]
fn a_queue_deleted_under_a_redrive_ends_it() {
    let mut s = all_dead();
    s.set_script(Some("v3"));
    let name = "jobs.dlq".to_owned();
    let request = AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: Reclassify::All,
    };
    s.ask(request);
    s.h.run();
    let job = s.h.script_job();
    let name = "jobs".to_owned();
    let request = AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    };
    let out = s.ask(request);
    let out: Vec<_> = out
        .into_iter()
        .filter(|it| matches!(it.event, tanda_engine::Event::Admin { .. }))
        .collect();
    let redriven = AdminReply::Redriven(Ok(Redriven::default()));
    assert_eq!(
        s.lines(&out),
        [format!("{redriven:?}"), "Deleted(Ok(()))".to_owned()]
    );
    assert_eq!(s.finish(job), [""; 0]);
    s.run();
}

#[test]
fn a_redriven_message_that_is_parked_stops_an_ordered_queue() {
    let mut s = Scripted::with(QueueSpec {
        ordering: Ordering::Queue,
        ..spec(ScriptFailure::Park)
    });
    s.publish(&[msg("a")]);
    let ids = s.take("jobs");
    s.nack(ids[0], None);
    s.update(QueueChanges {
        on_enqueue: Some(Some("v2".to_owned())),
        park_dead_letter_after: Some(0),
        ..QueueChanges::default()
    });
    let all = |name: &str| msg(name).header("fails", "v3");
    s.publish(&[all("b")]);
    s.set_script(Some("v3"));
    assert_eq!(redrive(&mut s, 0, Reclassify::All), [1, 0, 0]);
    assert_eq!(s.publish(&[all("c"), msg("d")]), ["#4 stored stored"]);
    s.h.take_snapshot();
    s.h.restart(60_000);
    let counts = s.figures("jobs");
    assert_eq!(counts[2..], [1, 1], "{counts:?}");
}
