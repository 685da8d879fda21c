//! `on_enqueue`: fila-semantics 'Lua hooks', fila.md 'Scheduling metadata precedence'.

use tanda_engine::{
    AdminReply, AdminRequest, CheckScriptsError, ConnId, Content, CreateQueueError, EngineConfig,
    Form, KeyKind, KeyPart, Limits, MissingOrderingKey, Ordering, QueueChanges, QueueSpec, Request,
    ScriptFault, ScriptOutcome, ScriptTask, UpdateQueueError, VhostId,
};

use crate::harness::{CONN, Harness, Msg, batch};
use crate::scripted::{Scripted, classified, msg};

#[test]
fn messages_wait_for_their_script_and_others_do_not() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.h.create_plain("other");
    s.h.subscribe(CONN, "other", None);
    let other = Msg::to("other").payload("x");
    assert_eq!(s.send(&[msg("a"), other, msg("b")]), [""; 0]);
    let job = s.h.script_job();
    // The other queue's message is stored and goes at once; the answer waits for all.
    let out = s.h.run();
    assert_eq!(s.lines(&out), ["other: x(*1)"]);
    assert_eq!(s.figures("jobs"), [0, 0, 0, 0]);
    assert_eq!(s.send(&[msg("c")]), [""; 0]);
    assert!(s.h.script_jobs().is_empty(), "one job at a time");
    assert_eq!(s.finish(job), ["#1 stored stored stored"]);
    let job = s.h.script_job();
    assert_eq!(s.finish(job), ["#2 stored"]);
    assert_eq!(
        s.consume("jobs"),
        ["jobs: a(*1)", "jobs: b(*1)", "jobs: c(*1)"]
    );
}

#[test]
fn an_answer_waits_until_what_it_says_is_on_disk() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.send(&[msg("a"), msg("b").header("fails", "v1")]);
    let job = s.h.script_job();
    let out = s.h.finish(job);
    assert_eq!(s.lines(&out), ["#1 stored ScriptFailed"]);
    assert_eq!(out[0].after, s.h.journal.end);
}

#[test]
fn the_hook_wins_for_every_field_it_returns() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let claims = |name: &str| msg(name).key("claimed").weight(9);
    s.publish(&[
        claims("nothing"),
        claims("key").header("tenant", "t"),
        claims("weight").header("w", "4"),
        claims("unkeyed").header("tenant", ""),
        claims("attribute").header("@tier", "gold"),
    ]);
    let mut lines = s.consume("jobs");
    lines.sort();
    assert_eq!(
        lines,
        [
            "jobs: attribute@(claimed*9)",
            "jobs: key(t*9)",
            "jobs: nothing(claimed*9)",
            "jobs: unkeyed(*9)",
            "jobs: weight(claimed*4)",
        ]
    );
}

#[test]
fn calls_carry_the_producers_claims_and_nothing_else() {
    let mut s = Scripted::with(classified("jobs", "config K"));
    s.h.admin(AdminRequest::SetConfig {
        key: "K".to_owned(),
        value: "on".to_owned(),
    });
    s.send(&[msg("a").key("claimed").weight(0).header("h", "v")]);
    let job = s.h.script_job();
    assert_eq!((&*job.queue, job.runtime.len()), ("jobs", 1));
    let ScriptTask::Enqueue(calls) = &job.task else {
        panic!("{job:?}")
    };
    let call = &calls[0];
    assert_eq!((&*call.fairness_key, call.weight), ("claimed", 1));
    let content = Content::new(Form::Fila, call.content.bytes());
    assert_eq!(content.header(b"h").as_deref(), Some(&b"v"[..]));
    assert_eq!(content.payload(), Ok(&b"a"[..]));
    // What is set now is seen by later jobs only.
    s.h.admin(AdminRequest::SetConfig {
        key: "K".to_owned(),
        value: "off".to_owned(),
    });
    assert_eq!(job.runtime["K"], "on");
    assert_eq!(s.finish(job), ["#1 stored"]);
    s.send(&[msg("b")]);
    assert_eq!(s.h.script_job().runtime["K"], "off");
}

#[test]
fn a_failing_script_refuses_its_message_and_stores_nothing() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let lines = s.publish(&[
        msg("a").header("fails", "v1"),
        msg("b").header("hangs", "v1"),
        msg("c"),
    ]);
    assert_eq!(lines, ["#1 ScriptFailed ScriptTimedOut stored"]);
    assert_eq!(s.figures("jobs"), [1, 0, 0, 0]);
    s.h.restart(0);
    assert_eq!(s.consume("jobs"), ["jobs: c(*1)"]);
}

#[test]
fn what_a_script_may_not_return_is_a_failure() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let long = "x".repeat(65_535);
    s.publish(&[msg("most").header("tenant", &long)]);
    s.send(&[msg("a"), msg("b"), msg("c")]);
    let job = s.h.script_job();
    let too_long = tanda_engine::Classification {
        fairness_key: Some(long.clone() + "x"),
        ..Default::default()
    };
    let too_many = tanda_engine::Classification {
        attributes: vec![("name".to_owned(), long)],
        ..Default::default()
    };
    // And a host that owes a result.
    let outcome = ScriptOutcome::Enqueue(vec![Ok(too_long), Ok(too_many)]);
    let out = s.h.finish_with(job, outcome);
    assert_eq!(s.lines(&out), ["#2 ScriptFailed ScriptFailed ScriptFailed"]);
    s.send(&[msg("d")]);
    let job = s.h.script_job();
    let out = s.h.finish_with(job, ScriptOutcome::Checked(Ok(())));
    assert_eq!(s.lines(&out), ["#3 ScriptFailed"]);
}

fn attribute(name: &str) -> KeyPart {
    KeyPart {
        kind: KeyKind::Attribute,
        name: name.to_owned(),
    }
}

#[test]
fn keys_of_attributes_are_known_after_the_hook() {
    let mut s = Scripted::with(QueueSpec {
        ordering: Ordering::Key {
            key: vec![attribute("account")],
            missing: MissingOrderingKey::Reject,
        },
        dedup_key: Some(vec![attribute("order")]),
        ..classified("jobs", "v1")
    });
    let of = |name: &str, account: &str, order: &str| {
        msg(name)
            .header("@account", account)
            .header("@order", order)
    };
    let lines = s.publish(&[
        of("a", "1", "x"),
        of("b", "1", "y"),
        of("again", "2", "x"),
        msg("no account"),
    ]);
    assert_eq!(lines, ["#1 stored stored =dup OrderingKeyMissing"]);
    assert_eq!(s.consume("jobs"), ["jobs: a@(*1)"]);
    assert_eq!(s.publish(&[of("later", "3", "y")]), ["#2 =dup"]);
    // All of it is on disk.
    s.h.restart(60_000);
    assert_eq!(s.publish(&[of("later", "3", "y")]), ["#3 =dup"]);
}

#[test]
fn a_duplicate_that_no_script_can_change_does_not_wait() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let of = |name: &str| msg(name).idempotency("k");
    // Two in one batch: the second is the duplicate.
    assert_eq!(s.publish(&[of("a"), of("b")]), ["#1 stored =dup"]);
    assert_eq!(s.send(&[of("c").header("fails", "v1")]), ["#2 =dup"]);
    assert!(s.h.script_jobs().is_empty());
}

#[test]
fn too_much_that_waits_refuses_whole_batches_of_that_queue_only() {
    let config = EngineConfig {
        has_script_host: true,
        limits: Limits {
            script_waiting_max: 3,
            ..Limits::default()
        },
        ..EngineConfig::default()
    };
    let mut s = Scripted::over(Harness::with_config(config));
    s.h.create(classified("jobs", "v1"));
    s.h.create_plain("other");
    let other = || Msg::to("other").payload("x");
    assert_eq!(s.send(&[msg("a"), msg("b")]), [""; 0]);
    let refused = "#2 Overloaded Overloaded Overloaded";
    assert_eq!(s.send(&[other(), msg("c"), msg("d")]), [refused]);
    assert_eq!(s.send(&[other()]), ["#3 stored"]);
    assert_eq!(s.send(&[msg("e")]), [""; 0]);
    assert_eq!(s.run(), ["#1 stored stored", "#4 stored"]);
    // A batch that is larger than all that may wait goes when nothing waits.
    let many: Vec<_> = (0..5).map(|n| msg(&n.to_string())).collect();
    assert_eq!(s.publish(&many).len(), 1);
    assert_eq!(s.figures("jobs"), [8, 0, 0, 0]);
    assert_eq!(s.figures("other"), [1, 0, 0, 0]);
}

#[test]
fn messages_of_a_producer_that_left_are_stored() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let conn = ConnId(7);
    s.h.connect(conn);
    let reply = tanda_engine::ReplyTo { conn, token: 1 };
    let batch = batch(&[msg("a")]);
    s.h.handle(Request::Publish { reply, batch });
    s.h.handle(Request::Disconnect { conn });
    s.run();
    assert_eq!(s.consume("jobs"), ["jobs: a(*1)"]);
}

#[test]
fn a_deleted_queue_answers_what_waits_for_it() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.send(&[msg("a")]);
    let job = s.h.script_job();
    s.send(&[msg("b")]);
    let reply = tanda_engine::ReplyTo {
        conn: CONN,
        token: 99,
    };
    let name = "jobs".to_owned();
    let request = AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    };
    let out = s.h.handle(Request::Admin { reply, request });
    let mut lines = s.lines(&out);
    lines.sort();
    assert_eq!(
        lines,
        ["#1 QueueNotFound", "#2 QueueNotFound", "Deleted(Ok(()))"]
    );
    // The job is still out; another queue of the name has nothing to do with it.
    s.h.create(classified("jobs", "v1"));
    assert_eq!(s.finish(job), [""; 0]);
    assert_eq!(s.figures("jobs"), [0, 0, 0, 0]);
}

#[test]
fn a_full_disk_refuses_what_waited() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.send(&[msg("a")]);
    s.h.engine.set_storage_full(true);
    assert_eq!(s.run(), ["#1 Storage"]);
}

#[test]
fn scripts_are_checked_before_a_queue_has_them() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let bad = classified("bad", "syntax error");
    let reply = s.h.admin(AdminRequest::CreateQueue(Box::new(bad)));
    let problem = "line 1: syntax error".to_owned();
    let refused = CreateQueueError::ScriptRefused {
        problem: problem.clone(),
    };
    assert_eq!(reply, AdminReply::Created(Err(refused)));
    let name = "bad".to_owned();
    let found = s.h.admin(AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert!(matches!(found, AdminReply::Inspected(Err(_))));
    let reply = s.update(QueueChanges {
        on_failure: Some(Some("syntax error".to_owned())),
        lease_ms: Some(7),
        ..QueueChanges::default()
    });
    let refused = UpdateQueueError::ScriptRefused { problem };
    assert_eq!(reply, AdminReply::Updated(Err(refused)));
    let name = "jobs".to_owned();
    let AdminReply::Inspected(Ok(it)) = s.h.admin(AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name,
    }) else {
        panic!("jobs is there")
    };
    assert_eq!((it.config.lease_ms, &it.config.on_failure), (30_000, &None));
}

#[test]
fn scripts_can_be_checked_for_their_own_sake() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let mut check = |on_enqueue: &str, on_failure: &str| {
        let [on_enqueue, on_failure] = [on_enqueue, on_failure].map(|it| Some(it.to_owned()));
        s.h.admin(AdminRequest::CheckScripts {
            on_enqueue,
            on_failure,
        })
    };
    assert_eq!(check("v1", "retry"), AdminReply::ScriptsChecked(Ok(())));
    let problem = "line 1: syntax error".to_owned();
    let refused = CheckScriptsError::Refused { problem };
    let reply = check("v1", "syntax error");
    assert_eq!(reply, AdminReply::ScriptsChecked(Err(refused)));
    let reply = check("v1", &"x".repeat((1 << 20) + 1));
    assert!(
        matches!(&reply, AdminReply::ScriptsChecked(Err(CheckScriptsError::Refused { problem }))
            if problem.contains("1048577")),
        "{reply:?}"
    );
    let mut h = Harness::new();
    let reply = h.admin(AdminRequest::CheckScripts {
        on_enqueue: Some("v1".to_owned()),
        on_failure: None,
    });
    let refused = CheckScriptsError::Unsupported;
    assert_eq!(reply, AdminReply::ScriptsChecked(Err(refused)));
}

#[test]
fn a_name_taken_while_its_script_is_checked_is_taken() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let reply = tanda_engine::ReplyTo {
        conn: CONN,
        token: 99,
    };
    let request = AdminRequest::CreateQueue(Box::new(classified("new", "v1")));
    let out = s.h.handle(Request::Admin { reply, request });
    assert!(out.is_empty());
    let job = s.h.script_job();
    s.h.create_plain("new");
    let lines = s.finish(job);
    assert_eq!(lines, ["Created(Err(AlreadyExists))"]);
}

#[test]
fn without_a_host_scripts_are_refused() {
    let mut h = Harness::new();
    let spec = classified("jobs", "v1");
    let reply = h.admin(AdminRequest::CreateQueue(Box::new(spec)));
    let refused = CreateQueueError::ScriptsUnsupported;
    assert_eq!(reply, AdminReply::Created(Err(refused)));
    h.create_plain("jobs");
    let reply = h.admin(AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(QueueChanges {
            on_enqueue: Some(Some("v1".to_owned())),
            ..QueueChanges::default()
        }),
    });
    let refused = UpdateQueueError::ScriptsUnsupported;
    assert_eq!(reply, AdminReply::Updated(Err(refused)));
}

#[test]
fn a_script_too_long_is_refused() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    let long = classified("long", &"x".repeat((1 << 20) + 1));
    let reply = s.h.admin(AdminRequest::CreateQueue(Box::new(long)));
    let AdminReply::Created(Err(CreateQueueError::InvalidSetting { setting, .. })) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(setting, "on_enqueue_script");
}

#[test]
fn a_changed_script_is_for_later_messages_and_a_removed_one_for_none() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.publish(&[msg("a").header("tenant", "t")]);
    // Under way when the script changes: what it says counts.
    s.send(&[msg("b").header("fails", "v1")]);
    let job = s.h.script_job();
    s.send(&[msg("c").header("fails", "v1")]);
    let reply = tanda_engine::ReplyTo {
        conn: CONN,
        token: 99,
    };
    let request = AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(QueueChanges {
            on_enqueue: Some(None),
            ..QueueChanges::default()
        }),
    };
    s.h.handle(Request::Admin { reply, request });
    assert_eq!(s.finish(job), ["#2 ScriptFailed", "#3 stored"]);
    assert_eq!(s.send(&[msg("d").header("tenant", "x")]), ["#4 stored"]);
    assert_eq!(
        s.consume("jobs"),
        ["jobs: a(t*1)", "jobs: c(*1)", "jobs: d(*1)"]
    );
}

#[test]
fn scripts_outlive_a_restart_and_what_waited_does_not() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.publish(&[msg("a").header("tenant", "t").header("@x", "1")]);
    s.send(&[msg("lost")]);
    s.h.restart(0);
    s.h.take_snapshot();
    s.h.restart(0);
    assert_eq!(
        s.publish(&[msg("b").header("fails", "v1")]),
        ["#3 ScriptFailed"]
    );
    assert_eq!(s.consume("jobs"), ["jobs: a@(t*1)"]);
}

#[test]
fn contents_that_may_not_be_read_now_are_not_run() {
    let mut s = Scripted::with(classified("jobs", "v1"));
    s.send(&[msg("a")]);
    let job = s.h.script_job();
    let outcome = ScriptOutcome::Enqueue(vec![Err(ScriptFault::Unreadable)]);
    let out = s.h.finish_with(job, outcome);
    assert_eq!(s.lines(&out), ["#1 ScriptTimedOut"]);
}
