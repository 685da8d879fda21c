//! Commands on keys, of every kind.

use tanda_engine::{
    AddedPart, Caller, Condition, ConnId, Datum, DatumForm, KeyOp, KeyRead, KeyRequest, KeyScan,
    KeyType, KeyWrite, ListSide, Places, RankingPart, RankingSpan, RemovedPart, ReplyTo, Request,
    VhostId,
};

use super::serve::Driver;

/// Runs some of each.
pub(super) fn use_keys(driver: &mut Driver) {
    for (token, (key, write)) in (20..).zip(writes()) {
        let key = key.into();
        ask(driver, token, KeyOp::Write { key, write });
    }
    for (token, key) in (50..).zip(["list", "nothing", "value", "lock"]) {
        let pop = KeyOp::Pop {
            key: key.into(),
            side: ListSide::Front,
            wait_ms: 50,
        };
        ask(driver, token, pop);
        let acquire = KeyOp::Acquire {
            key: key.into(),
            ttl_ms: 30,
            wait_ms: 90,
        };
        ask(driver, token + 10, acquire);
    }
    for key in ["value", "counter", "map", "list", "set", "ranking", "lock"] {
        for read in reads() {
            let key = key.into();
            ask(driver, 80, KeyOp::Read { key, read });
        }
    }
    ask(
        driver,
        81,
        KeyOp::Scan(KeyScan {
            caller: Caller::Anyone,
            glob: None,
            cursor: None,
            limit: 3,
        }),
    );
    driver.wait(40);
    let reply = reply(61);
    driver.request(Request::CancelWait { reply });
    driver.wait(100);
}

fn reply(token: u32) -> ReplyTo {
    let conn = ConnId(1);
    ReplyTo { conn, token }
}

fn ask(driver: &mut Driver, token: u32, op: KeyOp) {
    let request = Box::new(KeyRequest {
        vhost: VhostId::DEFAULT,
        answer_bytes_max: 1 << 16,
        op,
    });
    let reply = reply(token);
    driver.request(Request::Keys { reply, request });
}

fn writes() -> Vec<(&'static str, KeyWrite)> {
    let datum = |text: &str| Datum::new(DatumForm::Text, text.as_bytes());
    let add = |part, ttl_ms| KeyWrite::Add { part, ttl_ms };
    let names = || vec!["a".into(), "b".into()];
    let score = |member: &str, score| {
        let member = member.into();
        AddedPart::Score { member, score }
    };
    let field = |field: &str| {
        let (field, value) = (field.into(), datum("x"));
        AddedPart::Field { field, value }
    };
    let items = |side| {
        let values = vec![datum("1"), datum("2"), datum("3")];
        AddedPart::Items { values, side }
    };
    let set = |ttl_ms| KeyWrite::SetValue {
        value: datum("v"),
        ttl_ms,
        condition: Condition::default(),
    };
    vec![
        ("value", set(Some(60))),
        ("value", set(None)),
        ("gone", set(None)),
        ("gone", KeyWrite::Delete),
        ("old", set(Some(1_000_000))),
        ("old", KeyWrite::Rename { to: "new".into() }),
        (
            "counter",
            KeyWrite::AddCounter {
                by: -7,
                ttl_ms: None,
            },
        ),
        ("map", add(field("f"), Some(1_000_000))),
        ("map", add(field("g"), None)),
        ("map", KeyWrite::Remove(RemovedPart::Field("f".into()))),
        ("list", add(items(ListSide::Back), None)),
        ("list", add(items(ListSide::Front), None)),
        (
            "list",
            KeyWrite::Remove(RemovedPart::ItemsBut(Places { start: 1, stop: -2 })),
        ),
        ("set", add(AddedPart::Members(names()), None)),
        (
            "set",
            KeyWrite::Remove(RemovedPart::Members(vec!["a".into()])),
        ),
        ("ranking", add(score("a", 1.5), None)),
        ("ranking", add(score("b", -2.0), None)),
        ("ranking", KeyWrite::Remove(RemovedPart::Score("a".into()))),
        ("lock", KeyWrite::ReleaseLock { token: 1 }),
        ("set", KeyWrite::Expire { ttl_ms: 20 }),
        ("map", KeyWrite::Persist),
    ]
}

fn reads() -> Vec<KeyRead> {
    let all = Places { start: 0, stop: -1 };
    let range = RankingPart {
        span: RankingSpan::Places(all),
        reverse: true,
        limit: Some(5),
    };
    vec![
        KeyRead::Kind,
        KeyRead::Ttl,
        KeyRead::Value,
        KeyRead::Counter,
        KeyRead::Fields,
        KeyRead::Items(all),
        KeyRead::Members,
        KeyRead::Range(range),
        KeyRead::Rank {
            member: "b".into(),
            reverse: false,
        },
        KeyRead::Length(KeyType::Ranking),
    ]
}
