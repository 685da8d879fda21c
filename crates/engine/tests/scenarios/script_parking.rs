//! Messages that a script fails on and that are kept: fila-semantics 'Lua hooks', `script_failure`.

use tanda_engine::{
    AdminReply, AdminRequest, EngineConfig, KeyKind, KeyPart, MessageId, MessagePlace, Millis,
    MissingOrderingKey, Ordering, QueueChanges, QueueSpec, Reclassify, VhostId,
};

use crate::harness::Harness;
use crate::scripted::{Scripted, msg, parking};

fn place(s: &mut Scripted, message: MessageId) -> MessagePlace {
    let name = "jobs".to_owned();
    let message = Some(message);
    match s.h.admin(AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name,
        message,
    }) {
        AdminReply::Explained(Ok(explanation)) => explanation.message.unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Publishes one message that is accepted.
fn one(s: &mut Scripted, message: crate::harness::Msg) -> MessageId {
    let reply = tanda_engine::ReplyTo {
        conn: crate::harness::CONN,
        token: 77,
    };
    let batch = crate::harness::batch(&[message]);
    let mut out = s.h.handle(tanda_engine::Request::Publish { reply, batch });
    out.extend(s.h.run_scripts());
    let stored = out.into_iter().find_map(|output| match output.event {
        tanda_engine::Event::Published { results, .. } => Some(results),
        _ => None,
    });
    match stored.as_deref() {
        Some([tanda_engine::PublishResult::Stored(id)]) => *id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_parked_message_is_accepted_and_waits_for_another_script() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    let bad = msg("a").key("claimed").weight(3).header("fails", "v1 v2");
    let id = one(&mut s, bad.header("tenant", "t").header("@x", "1"));
    let good = one(&mut s, msg("b"));
    assert_eq!(s.figures("jobs"), [2, 0, 1, 0]);
    assert_eq!(
        s.counts("jobs").oldest_unclassified_at,
        Some(id.enqueued_at())
    );
    assert_eq!(s.consume("jobs"), ["jobs: b(*1)"]);
    s.h.ack("jobs", &[good]);
    let parked = |tries, script: &str| MessagePlace::Parked {
        enqueued_at: id.enqueued_at(),
        tries,
        error: Some(format!("{script} failed")),
        next_try_at: None,
    };
    assert_eq!(place(&mut s, id), parked(1, "v1"));
    assert_eq!(s.after(10_000_000), [""; 0]);
    s.set_script(Some("v2"));
    assert_eq!(place(&mut s, id), parked(2, "v2"));
    let reply = s.update(QueueChanges {
        on_enqueue: Some(Some("v3".to_owned())),
        ..QueueChanges::default()
    });
    assert_eq!(reply, AdminReply::Updated(Ok(())));
    assert_eq!(s.figures("jobs"), [0, 1, 0, 0]);
    s.h.restart(0);
    // Its lease ends; it was classified on disk.
    assert_eq!(s.consume("jobs"), [""; 0]);
    assert_eq!(s.after(100_000), [""; 0]);
    assert_eq!(s.after(1_000), ["jobs: a@(t*3)#2"]);
}

#[test]
fn timeouts_are_tried_again_with_backoff() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    let id = one(&mut s, msg("a").header("hangs", "v1"));
    for (tries, wait_ms) in (1..).zip([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    {
        let parked = MessagePlace::Parked {
            enqueued_at: id.enqueued_at(),
            tries,
            error: Some("the script did not end in time".to_owned()),
            next_try_at: Some(s.h.now.after_ms(wait_ms)),
        };
        assert_eq!(place(&mut s, id), parked);
        s.after(wait_ms - 1);
        assert_eq!(place(&mut s, id), parked);
        s.after(1);
    }
    // A changed script does not wait for that.
    s.set_script(Some("v2"));
    assert_eq!(s.consume("jobs"), ["jobs: a(*1)"]);
}

#[test]
fn after_so_many_tries_a_message_is_dead_lettered_and_kept() {
    let spec = |after| QueueSpec {
        park_dead_letter_after: after,
        ..parking("jobs", "v1")
    };
    let mut s = Scripted::with(spec(3));
    s.publish(&[msg("a").key("k").header("hangs", "v1")]);
    s.after(1_000);
    assert_eq!(s.figures("jobs"), [1, 0, 1, 0]);
    s.after(2_000);
    assert_eq!(s.figures("jobs"), [0, 0, 0, 0]);
    // It was never delivered before.
    assert_eq!(s.consume("jobs.dlq"), ["jobs.dlq: a(k*1)"]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs.dlq"), [0, 1, 0, 0]);

    let mut s = Scripted::with(spec(1));
    assert_eq!(s.publish(&[msg("a").header("fails", "v1")]), ["#1 stored"]);
    assert_eq!(s.consume("jobs.dlq"), ["jobs.dlq: a(*1)"]);
}

#[test]
fn a_restart_forgets_no_try_and_adds_none() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    let failed = one(&mut s, msg("a").header("fails", "v1"));
    let hung = one(&mut s, msg("b").header("hangs", "v1"));
    s.after(1_000);
    for snapshot in [false, true] {
        if snapshot {
            s.h.take_snapshot();
        }
        s.h.restart(5);
        let parked = |id: MessageId, tries, next_try_at| MessagePlace::Parked {
            enqueued_at: id.enqueued_at(),
            tries,
            error: None,
            next_try_at,
        };
        assert_eq!(place(&mut s, failed), parked(failed, 1, None));
        let next = Some(s.h.now.after_ms(2_000));
        assert_eq!(place(&mut s, hung), parked(hung, 2, next));
    }
    // What changed before a restart is tried after it.
    let reply = tanda_engine::ReplyTo {
        conn: crate::harness::CONN,
        token: 99,
    };
    let request = AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(QueueChanges {
            on_enqueue: Some(Some("v2".to_owned())),
            ..QueueChanges::default()
        }),
    };
    s.h.handle(tanda_engine::Request::Admin { reply, request });
    let check = s.h.script_job();
    s.finish(check);
    s.h.restart(0);
    s.run();
    assert_eq!(s.consume("jobs"), ["jobs: a(*1)", "jobs: b(*1)"]);
}

#[test]
fn removing_the_script_classifies_with_the_producers_values() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    let bad = msg("a").key("claimed").weight(4).header("fails", "v1");
    s.publish(&[bad.header("tenant", "t")]);
    s.set_script(None);
    s.h.restart(0);
    assert_eq!(s.consume("jobs"), ["jobs: a(claimed*4)"]);
}

#[test]
fn what_an_older_script_says_does_not_count() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    let id = one(&mut s, msg("a").header("hangs", "v1").header("fails", "v2"));
    s.h.now = s.h.now.after_ms(1_000);
    s.h.run();
    let old = s.h.script_job();
    s.set_script(Some("v2"));
    assert_eq!(s.finish(old), [""; 0]);
    s.run();
    let MessagePlace::Parked { tries, error, .. } = place(&mut s, id) else {
        panic!("parked")
    };
    assert_eq!((tries, error.as_deref()), (2, Some("v2 failed")));
}

#[test]
fn an_ordered_queue_stops_at_the_first_unclassified_message() {
    let mut s = Scripted::with(QueueSpec {
        ordering: Ordering::Queue,
        ..parking("jobs", "v1")
    });
    let before = one(&mut s, msg("a"));
    let first = one(&mut s, msg("b").header("fails", "v1"));
    let behind = one(&mut s, msg("c"));
    let second = one(&mut s, msg("d").header("fails", "v1 v2"));
    one(&mut s, msg("e"));
    assert_eq!(s.figures("jobs"), [5, 0, 2, 2]);
    assert_eq!(s.consume("jobs"), ["jobs: a(*1)"]);
    s.h.ack("jobs", &[before]);
    assert_eq!(s.run(), [""; 0]);
    let MessagePlace::Stopped {
        first_unclassified,
        place: of_first,
    } = place(&mut s, behind)
    else {
        panic!("stopped")
    };
    assert_eq!(first_unclassified, first);
    assert!(matches!(*of_first, MessagePlace::Parked { tries: 1, .. }));
    s.h.restart(0);
    assert_eq!(s.figures("jobs"), [4, 0, 2, 2]);
    s.set_script(Some("v2"));
    assert_eq!(s.figures("jobs"), [4, 0, 1, 1]);
    assert_eq!(s.consume("jobs"), ["jobs: b(*1)"]);
    s.h.ack("jobs", &[first]);
    assert_eq!(s.run(), ["jobs: c(*1)"]);
    s.h.ack("jobs", &[behind]);
    assert_eq!(s.run(), [""; 0]);
    s.set_script(Some("v3"));
    assert_eq!(s.figures("jobs"), [1, 1, 0, 0]);
    s.h.ack("jobs", &[second]);
    assert_eq!(s.run(), ["jobs: e(*1)"]);
}

#[test]
fn a_group_known_late_takes_its_turn_in_order_of_arrival() {
    let account = KeyPart {
        kind: KeyKind::Attribute,
        name: "account".to_owned(),
    };
    let mut s = Scripted::with(QueueSpec {
        ordering: Ordering::Key {
            key: vec![account],
            missing: MissingOrderingKey::Reject,
        },
        ..parking("jobs", "v1")
    });
    let of = |name: &str| msg(name).header("@account", "1");
    let bad = one(&mut s, of("a").header("fails", "v1"));
    one(&mut s, of("b"));
    // No script gives it a value for the ordering key: that is a failed try like others.
    let missing = one(&mut s, msg("no account").header("fails", "v1"));
    s.set_script(Some("v2"));
    let MessagePlace::Parked { tries, error, .. } = place(&mut s, missing) else {
        panic!("parked")
    };
    let why = "on_enqueue left no value for the ordering key";
    assert_eq!((tries, error.as_deref()), (2, Some(why)));
    s.h.take_snapshot();
    s.h.restart(0);
    assert_eq!(s.consume("jobs"), ["jobs: a@(*1)"]);
    s.h.ack("jobs", &[bad]);
    assert_eq!(s.run(), ["jobs: b@(*1)"]);
    // Without a script it belongs to no group.
    s.set_script(None);
    assert_eq!(s.figures("jobs"), [0, 2, 0, 0]);
}

#[test]
fn a_late_duplicate_is_dropped_and_counted() {
    let order = |kind, name: &str| KeyPart {
        kind,
        name: name.to_owned(),
    };
    let mut s = Scripted::with(QueueSpec {
        dedup_key: Some(vec![
            order(KeyKind::Attribute, "order"),
            order(KeyKind::IdempotencyKey, ""),
        ]),
        ..parking("jobs", "v1")
    });
    let of = |name: &str, key: &str| msg(name).header("@order", "x").idempotency(key);
    s.publish(&[
        of("parked", "1").header("fails", "v1"),
        of("other", "2").header("fails", "v1"),
        of("first", "1"),
    ]);
    s.h.restart(0);
    assert_eq!(s.figures("jobs"), [3, 0, 2, 0]);
    s.set_script(Some("v2"));
    assert_eq!(s.figures("jobs"), [2, 0, 0, 0]);
    assert_eq!(s.counts("jobs").late_duplicates, 1);
    assert_eq!(s.publish(&[of("again", "2")]), ["#2 =dup"]);
    s.h.restart(0);
    assert_eq!(s.publish(&[of("again", "2")]), ["#3 =dup"]);
    assert_eq!(s.consume("jobs"), ["jobs: other@(*1)", "jobs: first@(*1)"]);
}

#[test]
fn a_not_before_time_counts_from_the_enqueue() {
    let mut s = Scripted::with(QueueSpec {
        park_dead_letter_after: 2,
        ..parking("jobs", "v1")
    });
    let delayed = |name: &str| msg(name).delay(50_000);
    s.publish(&[delayed("a").header("fails", "v1")]);
    s.set_script(Some("v2"));
    s.h.restart(1_000);
    assert_eq!(s.counts("jobs").delayed, 1);
    assert_eq!(s.consume("jobs"), [""; 0]);
    assert_eq!(s.after(48_999), [""; 0]);
    assert_eq!(s.after(1), ["jobs: a(*1)"]);
    // It survives the way to the dead-letter queue and back.
    s.publish(&[delayed("b").header("hangs", "v2")]);
    s.after(1_000);
    assert_eq!(s.counts("jobs.dlq").delayed, 1);
    s.h.restart(0);
    s.set_script(Some("v3"));
    let name = "jobs.dlq".to_owned();
    s.h.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: Reclassify::All,
    });
    s.h.restart(0);
    assert_eq!(s.counts("jobs").delayed, 1);
    assert_eq!(s.consume("jobs"), [""; 0]);
    assert_eq!(s.after(48_999), [""; 0]);
    assert_eq!(s.after(1), ["jobs: b(*1)"]);
}

#[test]
fn a_purge_takes_parked_messages_and_those_behind_them() {
    let mut s = Scripted::with(QueueSpec {
        ordering: Ordering::Queue,
        ..parking("jobs", "v1")
    });
    s.publish(&[
        msg("a"),
        msg("b").header("hangs", "v1"),
        msg("c"),
        msg("d").header("fails", "v1"),
    ]);
    s.h.now = s.h.now.after_ms(1_000);
    s.h.run();
    let job = s.h.script_job();
    let name = "jobs".to_owned();
    let reply = s.h.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert_eq!(reply, AdminReply::Purged(Ok(4)));
    assert_eq!(s.finish(job), [""; 0]);
    assert_eq!(s.figures("jobs"), [0, 0, 0, 0]);
    assert_eq!(s.publish(&[msg("e")]), ["#2 stored"]);
    s.h.restart(0);
    assert_eq!(s.consume("jobs"), ["jobs: e(*1)"]);
}

#[test]
fn what_cannot_be_read_is_tried_again_and_not_counted() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    let id = one(&mut s, msg("a").header("hangs", "v1"));
    s.h.now = s.h.now.after_ms(1_000);
    s.h.run();
    let mut job = s.h.script_job();
    if let tanda_engine::ScriptTask::Enqueue(calls) = &mut job.task {
        calls[0].content = tanda_engine::CallContent::Unreadable;
    }
    s.finish(job);
    let parked = MessagePlace::Parked {
        enqueued_at: id.enqueued_at(),
        tries: 1,
        error: Some("the message cannot be read now".to_owned()),
        next_try_at: Some(s.h.now.after_ms(60_000)),
    };
    assert_eq!(place(&mut s, id), parked);
    s.after(60_000);
    assert!(matches!(
        place(&mut s, id),
        MessagePlace::Parked { tries: 2, .. }
    ));
}

#[test]
fn the_newest_error_of_a_script_is_told() {
    let mut s = Scripted::with(crate::scripted::classified("jobs", "v1"));
    s.publish(&[msg("a").header("fails", "v1")]);
    let name = "jobs".to_owned();
    let message = None;
    let AdminReply::Explained(Ok(it)) = s.h.admin(AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name,
        message,
    }) else {
        panic!("explained")
    };
    assert_eq!(it.last_script_error.as_deref(), Some("v1 failed"));
    assert_eq!(it.next_due_at, None::<Millis>);
}

#[test]
fn unclassified_dead_letters_of_a_snapshot_go_into_pages() {
    let mut h = Harness::with_config(EngineConfig {
        page_messages: 4,
        lane_hot: 8,
        has_script_host: true,
        ..EngineConfig::default()
    });
    h.create(QueueSpec {
        park_dead_letter_after: 1,
        ..parking("jobs", "v1")
    });
    let mut s = Scripted::over(h);
    let bad: Vec<_> = (0..60).map(|_| msg("a").header("fails", "v1")).collect();
    s.publish(&bad);
    assert_eq!(s.counts("jobs.dlq").depth, 60);
    s.h.take_snapshot();
    s.h.restart(1_000);
    s.run();
    s.h.engine.assert_invariants();
    // Other messages take the slots of those that went.
    s.publish(&bad);
    s.h.engine.assert_invariants();
    s.set_script(Some("v2"));
    let name = "jobs.dlq".to_owned();
    s.h.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: Reclassify::default(),
    });
    s.run();
    s.h.engine.assert_invariants();
    assert_eq!(s.counts("jobs").depth, 120);
}
