//! Values, counters, and what goes for keys of every kind.

use tanda_engine::{
    AddedPart, Condition, Datum, DatumForm, KeyAnswer, KeyError, KeyOp, KeyRead, KeyType, KeyWrite,
    ListSide, Millis, RemovedPart, VersionedDatum,
};

use super::world::{START, World, add, bool, datum, field, members, pop, push, remove, score, set};

fn version(version: u64) -> Result<KeyAnswer, KeyError> {
    Ok(KeyAnswer::Version(version))
}

fn value(text: &str, version: u64) -> Result<KeyAnswer, KeyError> {
    Ok(KeyAnswer::Value(VersionedDatum {
        value: datum(text),
        version,
    }))
}

fn set_if(text: &str, condition: Condition) -> KeyWrite {
    KeyWrite::SetValue {
        value: datum(text),
        ttl_ms: None,
        condition,
    }
}

#[test]
fn versions_rise_and_conditions_hold() {
    let mut w = World::new();
    let if_absent = Condition {
        if_absent: true,
        if_version: None,
    };
    let if_version = |version| Condition {
        if_absent: false,
        if_version: Some(version),
    };
    let conflict = |found| Err(KeyError::VersionConflict { found });
    assert_eq!(w.write("k", set_if("a", if_version(1))), conflict(0));
    assert_eq!(w.write("k", set_if("a", if_version(0))), version(1));
    assert_eq!(w.write("k", set_if("b", if_version(0))), conflict(1));
    assert_eq!(w.write("k", set_if("b", if_absent)), Err(KeyError::Exists));
    assert_eq!(w.write("k", set_if("b", if_version(1))), version(2));
    assert_eq!(w.read("k", KeyRead::Value), value("b", 2));
    let delete = |if_version| KeyWrite::DeleteValue { if_version };
    assert_eq!(w.write("k", delete(Some(1))), conflict(2));
    assert_eq!(w.write("k", delete(Some(2))), bool(true));
    assert_eq!(w.write("k", delete(Some(2))), bool(false));
    assert_eq!(w.read("k", KeyRead::Value), Err(KeyError::NotFound));
    // Who remembers version 1 or 2 does not take the new value for the old one.
    assert_eq!(w.write("k", set_if("c", if_absent)), version(3));
    assert_eq!(w.write("other", set("d")), version(3));
    let swap = KeyWrite::SwapValue {
        value: datum("e"),
        ttl_ms: None,
    };
    let swapped = |previous, version| Ok(KeyAnswer::Swapped { previous, version });
    assert_eq!(w.write("k", swap.clone()), swapped(Some(datum("c")), 4));
    assert_eq!(w.write("new", swap), swapped(None, 3));
}

#[test]
fn many_values_are_read_in_order() {
    let mut w = World::new();
    w.did("a", set("1"));
    w.did("c", set("3"));
    let many = |keys: &[&str]| KeyOp::GetMany {
        keys: members(keys),
    };
    let of = |text: &str| {
        Some(VersionedDatum {
            value: datum(text),
            version: 1,
        })
    };
    let all = vec![of("3"), None, of("1"), of("3")];
    assert_eq!(
        w.does(many(&["c", "b", "a", "c"])),
        Ok(KeyAnswer::Values(all))
    );
    w.did(
        "n",
        KeyWrite::AddCounter {
            by: 1,
            ttl_ms: None,
        },
    );
    let found = KeyType::Counter;
    assert_eq!(
        w.does(many(&["a", "n"])),
        Err(KeyError::WrongType { found })
    );
}

#[test]
fn counters_add_and_never_wrap() {
    let mut w = World::new();
    let add = |by| KeyWrite::AddCounter { by, ttl_ms: None };
    let set = |value| KeyWrite::SetCounter {
        value,
        ttl_ms: None,
    };
    let integer = |value| Ok(KeyAnswer::Integer(value));
    assert_eq!(w.read("n", KeyRead::Counter), Err(KeyError::NotFound));
    assert_eq!(w.write("n", add(-5)), integer(-5));
    assert_eq!(w.write("n", set(i64::MAX)), integer(i64::MAX));
    let overflow = Err(KeyError::Overflow { value: i64::MAX });
    assert_eq!(w.write("n", add(1)), overflow);
    assert_eq!(w.read("n", KeyRead::Counter), integer(i64::MAX));
    assert_eq!(w.write("n", add(i64::MIN)), integer(-1));
}

#[test]
fn a_key_is_of_one_kind() {
    let mut w = World::new();
    let writes = [
        (KeyType::Value, set("a")),
        (
            KeyType::Counter,
            KeyWrite::AddCounter {
                by: 1,
                ttl_ms: None,
            },
        ),
        (KeyType::Map, field("f", "a")),
        (KeyType::List, push(&["a"], ListSide::Back)),
        (KeyType::Set, add(AddedPart::Members(members(&["a"])))),
        (KeyType::Ranking, score("a", 1.0)),
    ];
    for (of, write) in &writes {
        assert!(w.write(of.name(), write.clone()).is_ok());
    }
    let lock = KeyOp::Acquire {
        key: "lock".into(),
        ttl_ms: 1_000,
        wait_ms: 0,
    };
    assert!(w.does(lock).is_ok());
    let kinds = writes.iter().map(|(of, _)| *of).chain([KeyType::Lock]);
    for found in kinds {
        let name = found.name();
        assert_eq!(w.read(name, KeyRead::Kind), Ok(KeyAnswer::Kind(found)));
        assert_eq!(w.read(name, KeyRead::Exists), bool(true));
        for (of, write) in &writes {
            if *of != found {
                let outcome = w.write(name, write.clone());
                assert_eq!(outcome, Err(KeyError::WrongType { found }), "{of:?}");
            }
        }
        for of in [KeyType::Map, KeyType::List, KeyType::Set, KeyType::Ranking] {
            let outcome = w.read(name, KeyRead::Length(of));
            let wrong = Err(KeyError::WrongType { found });
            assert_eq!(
                outcome,
                if of == found {
                    Ok(KeyAnswer::Count(1))
                } else {
                    wrong
                }
            );
        }
        if found != KeyType::List {
            let outcome = w.does(pop(name, ListSide::Front, 10));
            assert_eq!(outcome, Err(KeyError::WrongType { found }));
        }
    }
    assert_eq!(w.engine.key_count(w.vhost), 7);
    for (of, _) in &writes {
        assert_eq!(w.write(of.name(), KeyWrite::Delete), bool(true));
        assert_eq!(w.write(of.name(), KeyWrite::Delete), bool(false));
    }
    assert_eq!(w.engine.key_count(w.vhost), 1);
}

#[test]
fn removing_what_is_not_there_removes_nothing() {
    let mut w = World::new();
    for (part, outcome) in [
        (RemovedPart::Field("f".into()), bool(false)),
        (RemovedPart::Score("m".into()), bool(false)),
        (
            RemovedPart::Members(members(&["a"])),
            Ok(KeyAnswer::Count(0)),
        ),
        (
            RemovedPart::ItemsBut(tanda_engine::Places { start: 0, stop: 1 }),
            Ok(KeyAnswer::Count(0)),
        ),
    ] {
        assert_eq!(w.write("k", remove(part)), outcome);
    }
    assert!(w.log.0.is_empty(), "nothing is written");
    for write in [
        KeyWrite::Expire { ttl_ms: 1 },
        KeyWrite::Persist,
        KeyWrite::Rename { to: "x".into() },
        KeyWrite::RenewLock {
            token: 1,
            ttl_ms: 1,
        },
        KeyWrite::ReleaseLock { token: 1 },
    ] {
        assert_eq!(w.write("k", write), Err(KeyError::NotFound));
    }
    for read in [
        KeyRead::Kind,
        KeyRead::Ttl,
        KeyRead::Value,
        KeyRead::Counter,
        KeyRead::Field("f".into()),
        KeyRead::Fields,
        KeyRead::Members,
        KeyRead::Contains("m".into()),
        KeyRead::Score("m".into()),
        KeyRead::Length(KeyType::List),
    ] {
        assert_eq!(w.read("k", read), Err(KeyError::NotFound));
    }
}

#[test]
fn keys_end_at_their_time() {
    let mut w = World::new();
    let set_for = |ttl_ms| KeyWrite::SetValue {
        value: datum("a"),
        ttl_ms,
        condition: Condition::default(),
    };
    let ttl = |ms| Ok(KeyAnswer::TtlMs(ms));
    w.did("k", set_for(Some(100)));
    assert_eq!(w.read("k", KeyRead::Ttl), ttl(Some(100)));
    w.now += 99;
    assert_eq!(w.read("k", KeyRead::Ttl), ttl(Some(1)));
    w.now += 1;
    // Also before the timer comes.
    assert_eq!(w.read("k", KeyRead::Value), Err(KeyError::NotFound));
    assert_eq!(w.read("k", KeyRead::Exists), bool(false));
    assert!(w.scan_all(None, 10).is_empty());
    assert_eq!(w.engine.next_deadline(), Some(Millis(START + 100)));
    w.go(0);
    assert_eq!(w.engine.next_deadline(), None);
    assert_eq!(w.engine.key_count(w.vhost), 0);
    // A value that is set anew has a new end, or none.
    w.did("k", set_for(Some(100)));
    w.did("k", set_for(Some(500)));
    assert_eq!(w.read("k", KeyRead::Ttl), ttl(Some(500)));
    w.did("k", set_for(None));
    assert_eq!(w.read("k", KeyRead::Ttl), ttl(None));
    // Other writes leave the end of a key that is there.
    let counter = |ttl_ms| KeyWrite::AddCounter { by: 1, ttl_ms };
    w.did("n", counter(Some(50)));
    w.did("n", counter(Some(5_000)));
    assert_eq!(w.read("n", KeyRead::Ttl), ttl(Some(50)));
    let expires = w.write("n", KeyWrite::Expire { ttl_ms: 70 });
    assert_eq!(expires, Ok(KeyAnswer::ExpiresAt(Millis(w.now + 70))));
    assert_eq!(w.write("n", KeyWrite::Persist), bool(true));
    assert_eq!(w.write("n", KeyWrite::Persist), bool(false));
    w.go(1_000);
    assert_eq!(w.read("n", KeyRead::Counter), Ok(KeyAnswer::Integer(2)));
    // A key that is over is no obstacle to one of another kind.
    w.did("n", KeyWrite::Expire { ttl_ms: 1 });
    w.now += 1;
    assert_eq!(w.write("n", set("a")), Ok(KeyAnswer::Version(2)));
}

#[test]
fn keys_get_other_names() {
    let mut w = World::new();
    let rename = |to: &str| KeyWrite::Rename { to: to.into() };
    w.did("to", set("x"));
    w.did("to", set("y"));
    w.did("a", set("1"));
    assert_eq!(w.write("a", rename("to")), Err(KeyError::Exists));
    assert_eq!(w.write("a", rename("a")), Err(KeyError::Exists));
    assert_eq!(w.write("to", KeyWrite::Delete), bool(true));
    assert_eq!(w.write("a", rename("to")), bool(true));
    // Version 1 and 2 were others of this name.
    assert_eq!(w.read("to", KeyRead::Value), value("1", 3));
    assert_eq!(w.read("a", KeyRead::Value), Err(KeyError::NotFound));
    assert_eq!(w.write("a", set("2")), version(3));
    w.did("l", push(&["i"], ListSide::Back));
    w.did("l", KeyWrite::Expire { ttl_ms: 10 });
    assert_eq!(w.write("l", rename("m")), bool(true));
    assert_eq!(w.read("m", KeyRead::Ttl), Ok(KeyAnswer::TtlMs(Some(10))));
    w.now += 10;
    assert_eq!(w.write("a", rename("m")), bool(true), "m is over");
}

#[test]
fn forms_of_payloads_are_kept() {
    let mut w = World::new();
    for form in [DatumForm::Json, DatumForm::Text, DatumForm::Bytes] {
        let value = Datum::new(form, b"1");
        let write = KeyWrite::SwapValue {
            value,
            ttl_ms: None,
        };
        assert!(w.write("k", write).is_ok());
        let Ok(KeyAnswer::Value(read)) = w.read("k", KeyRead::Value) else {
            panic!("no value");
        };
        assert_eq!(read.value.form, form);
    }
}
