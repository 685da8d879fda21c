//! What a restart keeps, what a record looks like, and records that make no sense.

use tanda_engine::{
    AdminReply, AdminRequest, Engine, EngineConfig, Journal as _, KeyAnswer, KeyError, KeyRead,
    KeyWrite, ListSide, Lsn, Millis, Places, VhostId,
};

use super::world::{START, World, acquire, bool, field, pop, push, score, set};

#[test]
fn tokens_and_versions_grow_across_restarts() {
    let mut w = World::new();
    let token = |w: &mut World| match w.does(acquire("l", 10, 0)) {
        Ok(KeyAnswer::Locked { token, .. }) => token,
        other => panic!("{other:?}"),
    };
    assert_eq!(token(&mut w), 1);
    w.did("v", set("a"));
    assert_eq!(w.write("v", KeyWrite::Delete), bool(true));
    assert_eq!(w.write("l", KeyWrite::Delete), bool(true));
    let mut again = w.restarted();
    assert_eq!(token(&mut again), 2);
    assert_eq!(again.write("v", set("a")), Ok(KeyAnswer::Version(2)));
    // From a capture too, which has neither the lock nor the value.
    let at = w.engine.begin_capture(Millis(w.now), &w.log);
    let mut records = Vec::new();
    while !w.engine.capture_slice(1, &mut records) {}
    assert_eq!(at, w.log.end());
    let records: Vec<_> = records.into_iter().map(|it| (Lsn(1), it)).collect();
    let mut captured = World::started(&records, w.now);
    assert_eq!(token(&mut captured), 2);
    assert_eq!(captured.write("v", set("a")), Ok(KeyAnswer::Version(2)));
}

#[test]
fn what_ended_meanwhile_is_gone() {
    let mut w = World::new();
    w.did("v", set("a"));
    w.did("v", KeyWrite::Expire { ttl_ms: 100 });
    w.did("w", set("a"));
    let mut later = World::started(&w.log.0, w.now + 100);
    assert_eq!(later.read("v", KeyRead::Exists), bool(false));
    assert_eq!(later.read("w", KeyRead::Exists), bool(true));
    assert_eq!(later.engine.key_count(VhostId::DEFAULT), 1);
}

#[test]
fn keys_of_a_virtual_host_go_with_it() {
    let mut w = World::new();
    let changed = |w: &mut World, request| match w.admin(request) {
        AdminReply::VhostChanged(Ok(())) | AdminReply::VhostDeleted(Ok(_)) => {}
        other => panic!("{other:?}"),
    };
    let name = || "v".to_owned();
    changed(&mut w, AdminRequest::CreateVhost { name: name() });
    let AdminReply::Vhost(Ok(vhost)) = w.admin(AdminRequest::OpenVhost { name: name() }) else {
        panic!("no vhost");
    };
    w.did("k", set("in /"));
    w.vhost = vhost;
    w.did("k", set("in v"));
    assert_eq!(w.engine.key_count(vhost), 1);
    let mut again = w.restarted();
    again.vhost = vhost;
    assert!(again.read("k", KeyRead::Value).is_ok());
    // An item that never reaches its client cannot return to what is gone.
    w.did("l", push(&["i"], ListSide::Back));
    w.ask(1, pop("l", ListSide::Front, 0));
    let taken = w.taken().remove(0);
    w.ask(1, pop("l", ListSide::Front, 1_000));
    changed(&mut w, AdminRequest::DeleteVhost { name: name() });
    w.undelivered(taken);
    let answers = w.taken();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].outcome, Err(KeyError::VhostNotFound));
    assert_eq!(w.engine.key_count(vhost), 0);
    let again = w.restarted();
    assert_eq!(again.engine.key_count(vhost), 0);
    assert_eq!(again.engine.key_count(VhostId::DEFAULT), 1);
}

#[test]
fn a_record_is_these_bytes() {
    let mut w = World::new();
    w.did("k", push(&["hi"], ListSide::Back));
    let [(_, record)] = &w.log.0[..] else {
        panic!("{:?}", w.log);
    };
    let mut expected = vec![28, 1];
    expected.extend([0; 16]);
    expected.extend(START.to_be_bytes());
    // The virtual host; a list with id 1, for ever, "k"; from position 0 one text.
    expected.extend([0, 0, 0, 0, 1, 1, 4, 0, 0, 1, b'k']);
    expected.extend([9, 1, 0, 1, 2, 2, b'h', b'i']);
    assert_eq!(*record, expected);
}

#[test]
fn a_log_with_holes_starts_after_it_was_mended() {
    let mut w = World::new();
    w.did("a", push(&["1", "2"], ListSide::Back));
    w.did("a", KeyWrite::Delete);
    w.did("a", set("v"));
    w.did("r", score("m", 1.0));
    w.did("m", field("f", "1"));
    // Without each of the records, and without each pair of them.
    let records = &w.log.0;
    for skipped in 0..records.len() {
        for other in skipped..records.len() {
            let mut engine = Engine::new(EngineConfig::default());
            for (at, record) in records.iter().enumerate() {
                if at == skipped || at == other {
                    continue;
                }
                let lenient = engine.replay_lenient(record.0, &record.1, &mut |_, _| false);
                assert_eq!(lenient, Ok(0));
            }
            assert!(engine.name_lost_queues().is_empty());
            engine
                .start(Millis(w.now), &mut super::world::Log::default())
                .unwrap();
            engine.assert_invariants();
        }
    }
}

#[test]
fn damaged_records_are_refused_and_never_panic() {
    let mut w = World::new();
    w.did("a", push(&["1", "2"], ListSide::Back));
    w.did("r", score("m", 1.0));
    w.did("m", field("f", "1"));
    let records = w.log.0.clone();
    for (at, (_, record)) in records.iter().enumerate() {
        for byte in 26..record.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut engine = Engine::new(EngineConfig::default());
                let mut is_refused = false;
                for (n, (lsn, record)) in records.iter().enumerate() {
                    let mut record = record.clone();
                    if n == at {
                        record[byte] = value;
                    }
                    is_refused |= engine.replay(*lsn, &record).is_err();
                }
                let mut log = super::world::Log::default();
                if !is_refused && engine.start(Millis(w.now), &mut log).is_ok() {
                    engine.assert_invariants();
                }
            }
        }
    }
    let all = Places { start: 0, stop: -1 };
    assert!(w.read("a", KeyRead::Items(all)).is_ok());
}
