//! Limits, and memory.

use tanda_engine::{
    AddedPart, EngineConfig, KeyAnswer, KeyError, KeyOp, KeyRead, KeyRequest, KeyType, KeyWrite,
    Limits, ListSide, Places, RemovedPart, Request, VhostId,
};

use super::world::{World, acquire, add, bool, count, field, pop, push, remove, score, set};

#[test]
fn a_full_disk_takes_nothing_and_gives_everything() {
    let mut w = World::new();
    w.did("l", push(&["a", "b"], ListSide::Back));
    w.did("v", set("a"));
    w.does(acquire("lock", 1_000, 0)).unwrap();
    w.engine.set_storage_full(true);
    for write in [
        set("b"),
        KeyWrite::SwapValue {
            value: super::world::datum("b"),
            ttl_ms: None,
        },
    ] {
        assert_eq!(w.write("v", write), Err(KeyError::Storage));
    }
    let names = super::world::members(&["a"]);
    for write in [
        field("f", "1"),
        score("m", 1.0),
        add(AddedPart::Members(names)),
        push(&["a"], ListSide::Back),
        KeyWrite::AddCounter {
            by: 1,
            ttl_ms: None,
        },
    ] {
        assert_eq!(w.write("new", write), Err(KeyError::Storage));
    }
    assert_eq!(w.does(acquire("other", 1_000, 0)), Err(KeyError::Storage));
    let renew = KeyWrite::RenewLock {
        token: 1,
        ttl_ms: 5,
    };
    assert!(w.write("lock", renew).is_ok());
    assert!(w.does(pop("l", ListSide::Front, 0)).is_ok());
    assert_eq!(w.write("v", KeyWrite::Delete), bool(true));
}

#[test]
fn keys_are_counted() {
    let limits = Limits {
        keys_max: 2,
        ..Limits::default()
    };
    let mut w = World::with(EngineConfig {
        limits,
        ..EngineConfig::default()
    });
    assert!(w.write("a", set("1")).is_ok());
    assert!(w.write("b", set("1")).is_ok());
    assert_eq!(
        w.write("c", set("1")),
        Err(KeyError::TooManyKeys { max: 2 })
    );
    assert!(w.write("a", set("2")).is_ok());
    assert_eq!(w.write("b", KeyWrite::Delete), bool(true));
    assert!(w.write("c", set("1")).is_ok());
}

#[test]
fn answers_are_bounded() {
    let mut w = World::new();
    let big = "x".repeat(600_000);
    w.did("l", push(&[&big, &big], ListSide::Back));
    w.did("m", field("a", &big));
    w.did("m", field("b", &big));
    let too_large = Err(KeyError::AnswerTooLarge { bytes_max: 1 << 20 });
    let all = Places { start: 0, stop: -1 };
    assert_eq!(w.read("l", KeyRead::Items(all)), too_large);
    assert_eq!(w.read("m", KeyRead::Fields), too_large);
    let one = Places { start: 1, stop: 1 };
    assert!(w.read("l", KeyRead::Items(one)).is_ok());
}

#[test]
fn memory_comes_back() {
    let mut w = World::new();
    let empty = w.engine.memory_bytes();
    let items: Vec<String> = (0..5_000).map(|n| format!("item {n}")).collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    assert_eq!(w.write("l", push(&items, ListSide::Back)), count(5_000));
    let names = super::world::members(&items);
    assert_eq!(w.write("s", add(AddedPart::Members(names))), count(5_000));
    for item in &items[..1_500] {
        w.did("r", score(item, 1.0));
    }
    let full = w.engine.memory_bytes();
    assert!(full > empty + 500_000, "{empty} {full}");
    let kept = remove(RemovedPart::ItemsBut(Places { start: 0, stop: 0 }));
    assert_eq!(w.write("l", kept), count(1));
    for key in ["l", "s", "r"] {
        assert_eq!(w.write(key, KeyWrite::Delete), bool(true));
    }
    // What is gone is taken apart in slices.
    w.go(0);
    let left = w.engine.memory_bytes();
    assert!(left < empty + 100_000, "{empty} {left}");
    assert!(
        !w.engine
            .run(tanda_engine::Millis(w.now), &mut w.log, &mut Vec::new())
    );
}

#[test]
fn a_virtual_host_that_is_gone_has_no_keys() {
    let mut w = World::new();
    let ask = |vhost| Request::Keys {
        reply: tanda_engine::ReplyTo {
            conn: tanda_engine::ConnId(1),
            token: 1,
        },
        request: Box::new(KeyRequest {
            vhost,
            answer_bytes_max: 10,
            op: KeyOp::Read {
                key: "k".into(),
                read: KeyRead::Length(KeyType::Map),
            },
        }),
    };
    let mut out = Vec::new();
    let now = tanda_engine::Millis(w.now);
    w.engine.handle(now, &mut w.log, ask(VhostId(7)), &mut out);
    let tanda_engine::Event::Keys { result, .. } = &out[0].event else {
        panic!("{out:?}");
    };
    let result: &Result<KeyAnswer, KeyError> = result;
    assert_eq!(*result, Err(KeyError::VhostNotFound));
}
