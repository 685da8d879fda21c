//! Scans.

use std::collections::BTreeSet;

use tanda_engine::{Caller, KeyAnswer, KeyError, KeyOp, KeyScan, KeyWrite};

use super::world::{World, set};

fn scan(cursor: Option<&str>, limit: usize) -> KeyOp {
    KeyOp::Scan(KeyScan {
        caller: Caller::Anyone,
        glob: None,
        cursor: cursor.map(Into::into),
        limit,
    })
}

#[test]
fn what_is_there_throughout_is_met() {
    let mut w = World::new();
    for n in 0..100 {
        w.did(&format!("k{n}"), set("v"));
    }
    let mut met = BTreeSet::new();
    let mut cursor: Option<Box<str>> = None;
    for round in 0.. {
        let answer = w.does(scan(cursor.as_deref(), 7));
        let Ok(KeyAnswer::Scanned { keys, cursor: next }) = answer else {
            panic!("{answer:?}");
        };
        met.extend(keys);
        cursor = next;
        if cursor.is_none() {
            break;
        }
        // Keys come, go, are written and get other names meanwhile; and the broker restarts.
        w.did(&format!("new{round}"), set("v"));
        w.did(&format!("k{}", 3 * round), KeyWrite::Delete);
        w.did(&format!("k{}", 99 - 3 * round), set("w"));
        if round == 5 {
            w = w.restarted();
        }
        assert!(
            round < 100,
            "a scan ends, although keys are made all the time"
        );
    }
    for n in 0..100 {
        let name = format!("k{n}");
        let is_there = w.engine.key_count(w.vhost) > 0
            && w.read(&name, tanda_engine::KeyRead::Exists) == super::world::bool(true);
        assert!(!is_there || met.contains(&*name), "{name}");
    }
}

#[test]
fn globs_choose() {
    let mut w = World::new();
    for name in ["a", "ab", "abc", "b"] {
        w.did(name, set("v"));
    }
    assert_eq!(w.scan_all(Some("a*"), 2), ["a", "ab", "abc"]);
    assert_eq!(w.scan_all(Some("?"), 10), ["a", "b"]);
    assert!(w.scan_all(Some(""), 10).is_empty());
}

#[test]
fn a_call_looks_at_some_keys_only() {
    let mut w = World::new();
    for n in 0..25_000 {
        let request = KeyOp::Write {
            key: format!("k{n}").into(),
            write: KeyWrite::AddCounter {
                by: 1,
                ttl_ms: None,
            },
        };
        w.ask_quietly(request);
    }
    let answer = w.does(KeyOp::Scan(KeyScan {
        caller: Caller::Anyone,
        glob: Some("x*".into()),
        cursor: None,
        limit: 10,
    }));
    let Ok(KeyAnswer::Scanned { keys, cursor }) = answer else {
        panic!("{answer:?}");
    };
    assert!(keys.is_empty());
    assert_eq!(cursor.as_deref(), Some("20000-25000"));
    assert!(w.scan_all(Some("x*"), 10).is_empty());
}

#[test]
fn other_texts_are_no_cursors() {
    let mut w = World::new();
    w.did("k", set("v"));
    for cursor in ["", "x", "1", "2-1", "0-2", "-1-1", "18446744073709551616-1"] {
        let answer = w.does(scan(Some(cursor), 10));
        assert_eq!(answer, Err(KeyError::BadCursor), "{cursor}");
    }
    let answer = w.does(scan(Some("1-1"), 10));
    let nothing = KeyAnswer::Scanned {
        keys: Vec::new(),
        cursor: None,
    };
    assert_eq!(answer, Ok(nothing));
}
