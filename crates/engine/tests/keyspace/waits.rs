//! Who waits for items and locks: fair, cancelled, gone.

use tanda_engine::{
    Journal as _, KeyAnswer, KeyError, KeyOp, KeyRead, KeyWrite, ListSide, Lsn, Millis, Places,
};

use super::world::{Answer, Outcome, World, acquire, bool, count, item, pop, push, set};

fn told(answers: &[Answer]) -> Vec<(u32, String)> {
    answers
        .iter()
        .map(|it| (it.reply.token, item(&it.outcome)))
        .collect()
}

fn of(list: &[(u32, &str)]) -> Vec<(u32, String)> {
    list.iter()
        .map(|(token, text)| (*token, (*text).to_owned()))
        .collect()
}

#[test]
fn items_go_to_who_came_first() {
    let mut w = World::new();
    w.ask(1, pop("l", ListSide::Front, 1_000));
    w.ask(2, pop("l", ListSide::Back, 1_000));
    w.ask(1, pop("l", ListSide::Front, 1_000));
    assert!(w.answers.is_empty());
    w.ask(
        3,
        KeyOp::Write {
            key: "l".into(),
            write: push(&["a", "b"], ListSide::Back),
        },
    );
    let answers = w.taken();
    // The length is that before the others took theirs.
    assert_eq!(answers[0].outcome, count(2));
    assert_eq!(told(&answers[1..]), of(&[(1, "a"), (2, "b")]));
    // All of it is one record, for which all answers wait.
    assert_eq!(w.log.0.len(), 1);
    assert!(answers.iter().all(|answer| answer.after == w.log.end()));
    assert_eq!(w.read("l", KeyRead::Exists), bool(false));
    w.ask(
        3,
        KeyOp::Write {
            key: "l".into(),
            write: push(&["c", "d"], ListSide::Back),
        },
    );
    assert_eq!(told(&w.taken()[1..]), of(&[(3, "c")]));
    assert_eq!(item(&w.does(pop("l", ListSide::Front, 0))), "d");
}

#[test]
fn waits_end() {
    let mut w = World::new();
    w.ask(1, pop("l", ListSide::Front, 100));
    w.ask(1, pop("l", ListSide::Front, 50));
    assert_eq!(w.engine.next_deadline(), Some(Millis(w.now + 50)));
    w.go(50);
    let answers = w.taken();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].reply.token, 2);
    assert_eq!(answers[0].outcome, Err(KeyError::TimedOut));
    assert_eq!(answers[0].after, Lsn::ZERO);
    // One whose time is over gets nothing, also when nobody came to say so.
    w.now += 50;
    assert_eq!(w.ask(2, pop("l", ListSide::Front, 100)).token, 3);
    w.ask(
        3,
        KeyOp::Write {
            key: "l".into(),
            write: push(&["a"], ListSide::Back),
        },
    );
    let answers = w.taken();
    assert_eq!(answers[1].outcome, Err(KeyError::TimedOut));
    assert_eq!(told(&answers[2..]), of(&[(3, "a")]));
}

#[test]
fn waits_are_cancelled_and_forgotten() {
    let mut w = World::new();
    let first = w.ask(1, pop("l", ListSide::Front, 1_000));
    w.ask(2, pop("l", ListSide::Front, 1_000));
    w.ask(3, pop("l", ListSide::Front, 1_000));
    w.cancel(first);
    w.cancel(first);
    let answers = w.taken();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].outcome, Err(KeyError::Cancelled));
    w.disconnect(2);
    w.ask(
        4,
        KeyOp::Write {
            key: "l".into(),
            write: push(&["a"], ListSide::Back),
        },
    );
    assert_eq!(told(&w.taken()[1..]), of(&[(3, "a")]));
    assert_eq!(w.engine.next_deadline(), None);
}

fn items(w: &mut World) -> String {
    let all = Places { start: 0, stop: -1 };
    match w.read("l", KeyRead::Items(all)) {
        Ok(KeyAnswer::Items(items)) => items.iter().map(super::world::text).collect(),
        other => format!("{other:?}"),
    }
}

#[test]
fn items_for_clients_that_are_gone_return_to_their_places() {
    let mut w = World::new();
    w.did("l", push(&["a", "b", "c", "d"], ListSide::Back));
    for side in [ListSide::Front, ListSide::Front, ListSide::Back] {
        w.ask(2, pop("l", side, 0));
    }
    w.did("l", push(&["e"], ListSide::Back));
    w.did("l", push(&["x"], ListSide::Front));
    assert_eq!(items(&mut w), "xce");
    for answer in w.taken().into_iter().rev() {
        w.undelivered(answer);
    }
    assert_eq!(items(&mut w), "xabcde");
    assert!(w.answers.is_empty());
}

#[test]
fn a_list_that_vanished_comes_back_with_its_end() {
    let mut w = World::new();
    w.did("l", push(&["a", "b"], ListSide::Back));
    w.did("l", KeyWrite::Expire { ttl_ms: 500 });
    w.ask(2, pop("l", ListSide::Front, 0));
    w.ask(2, pop("l", ListSide::Front, 0));
    w.ask(3, pop("l", ListSide::Front, 50));
    let answers = w.taken();
    let [first, second] = &answers[..] else {
        panic!("{answers:?}");
    };
    // Who waits gets what returns.
    w.undelivered(second.clone());
    assert_eq!(told(&w.taken()), of(&[(5, "b")]));
    w.undelivered(first.clone());
    assert_eq!(items(&mut w), "a");
    assert_eq!(w.read("l", KeyRead::Ttl), Ok(KeyAnswer::TtlMs(Some(500))));
    // Over with its list, it does not return.
    w.ask(2, pop("l", ListSide::Front, 0));
    let answer = w.taken().pop().unwrap();
    w.go(500);
    w.undelivered(answer.clone());
    assert_eq!(w.read("l", KeyRead::Exists), bool(false));
    // The name is another's.
    w.did("l", set("v"));
    w.undelivered(answer);
    assert!(w.read("l", KeyRead::Value).is_ok());
}

#[test]
fn an_item_never_goes_to_a_connection_that_is_gone() {
    let mut w = World::new();
    w.ask(2, pop("l", ListSide::Front, 1_000));
    w.ask(2, pop("l", ListSide::Front, 1_000));
    w.ask(
        1,
        KeyOp::Write {
            key: "l".into(),
            write: push(&["a"], ListSide::Back),
        },
    );
    let answer = w.taken().pop().unwrap();
    w.undelivered(answer);
    assert!(w.answers.is_empty(), "{:?}", w.answers);
    assert_eq!(items(&mut w), "a");
}

#[test]
fn a_renamed_list_is_there_for_who_waits() {
    let mut w = World::new();
    w.ask(2, pop("l", ListSide::Front, 1_000));
    w.did("m", push(&["a"], ListSide::Back));
    w.ask(
        1,
        KeyOp::Write {
            key: "m".into(),
            write: KeyWrite::Rename { to: "l".into() },
        },
    );
    assert_eq!(told(&w.taken()[1..]), of(&[(1, "a")]));
    assert_eq!(w.read("l", KeyRead::Exists), bool(false));
}

fn locked(outcome: &Outcome) -> (u64, u64) {
    match outcome {
        Ok(KeyAnswer::Locked {
            token, expires_at, ..
        }) => (*token, expires_at.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn locks_are_held_by_one() {
    let mut w = World::new();
    let now = w.now;
    let first = w.does(acquire("l", 100, 0));
    assert_eq!(locked(&first), (1, now + 100));
    let held = Err(KeyError::Held {
        until: Millis(now + 100),
    });
    assert_eq!(w.does(acquire("l", 100, 0)), held);
    let renew = |token, ttl_ms| KeyWrite::RenewLock { token, ttl_ms };
    let until = Ok(KeyAnswer::ExpiresAt(Millis(now + 300)));
    assert_eq!(w.write("l", renew(2, 1)), Err(KeyError::StaleToken));
    assert_eq!(w.write("l", renew(1, 300)), until);
    w.disconnect(1);
    w.go(299);
    let release = |token| KeyWrite::ReleaseLock { token };
    assert_eq!(w.write("l", release(9)), Err(KeyError::StaleToken));
    assert_eq!(w.write("l", release(1)), bool(true));
    assert_eq!(w.write("l", release(1)), Err(KeyError::NotFound));
    assert_eq!(locked(&w.does(acquire("l", 5, 0))).0, 2);
    w.now += 5;
    assert_eq!(w.write("l", renew(2, 300)), Err(KeyError::NotFound));
    assert_eq!(locked(&w.does(acquire("l", 5, 0))).0, 3);
    let rename = KeyWrite::Rename { to: "m".into() };
    let found = tanda_engine::KeyType::Lock;
    assert_eq!(w.write("l", rename), Err(KeyError::WrongType { found }));
}

#[test]
fn locks_go_to_who_waits_in_order() {
    let mut w = World::new();
    w.does(acquire("l", 100, 0)).unwrap();
    for conn in [2, 3, 4, 5] {
        w.ask(conn, acquire("l", 1_000, 10_000));
    }
    w.go(100);
    let answers = w.taken();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].reply.token, 2);
    assert_eq!(locked(&answers[0].outcome), (2, w.now + 1_000));
    assert_eq!(answers[0].after, w.log.end());
    w.ask(
        1,
        KeyOp::Write {
            key: "l".into(),
            write: KeyWrite::ReleaseLock { token: 2 },
        },
    );
    let answers = w.taken();
    assert_eq!(locked(&answers[1].outcome), (3, w.now + 1_000));
    // It never reached its client: the next one gets it.
    w.undelivered(answers[1].clone());
    let answers = w.taken();
    assert_eq!((answers.len(), locked(&answers[0].outcome).0), (1, 4));
    assert_eq!(answers[0].reply.token, 4);
    w.ask(
        1,
        KeyOp::Write {
            key: "l".into(),
            write: KeyWrite::Delete,
        },
    );
    let answers = w.taken();
    assert_eq!(answers[0].outcome, bool(true));
    assert_eq!(locked(&answers[1].outcome).0, 5);
    // A newcomer finds a lock whose time is over: who waits comes first.
    w.ask(6, acquire("l", 1_000, 10_000));
    w.now += 1_000;
    w.ask(7, acquire("l", 1_000, 0));
    let answers = w.taken();
    assert_eq!(locked(&answers[1].outcome).0, 6);
    assert!(matches!(answers[0].outcome, Err(KeyError::Held { .. })));
}

#[test]
fn a_lock_that_was_not_waited_for_does_not_come_back() {
    let mut w = World::new();
    w.ask(1, acquire("l", 100, 0));
    let answer = w.taken().pop().unwrap();
    w.undelivered(answer);
    assert_eq!(w.read("l", KeyRead::Exists), bool(true));
}
