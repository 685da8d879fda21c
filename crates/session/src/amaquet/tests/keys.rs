//! Commands on keys: what the engine is asked, and what its answers become.

use tanda_engine::{
    Datum, DatumForm, KeyAnswer, KeyError, KeyOp, KeyType, Request, VersionedDatum, VhostId,
};

use super::*;

/// A command of the request id 5, the operation it asks for, an answer, and what the peer reads.
type Case = (&'static str, &'static str, KeyAnswer, &'static str);

fn text(text: &str) -> Datum {
    Datum::new(DatumForm::Text, text.as_bytes())
}

fn json(text: &str) -> Datum {
    Datum::new(DatumForm::Json, text.as_bytes())
}

fn check(cases: &[Case]) {
    for (command, op, answer, result) in cases {
        let mut peer = Peer::open();
        peer.ask(5, command);
        assert_eq!(peer.read(), [""; 0], "{command}");
        let (token, asked) = peer.key_request();
        assert_eq!(format!("{asked:?}"), *op, "{command}");
        peer.answer_keys(token, Ok(answer.clone()));
        let told = format!(r#"COMMAND 5 {{"ok":true,"result":{result}}}"#);
        assert_eq!(peer.read(), [told], "{command}");
        assert!(peer.session.link.active.is_empty());
    }
}

impl Peer {
    /// The only request: one about keys.
    fn key_request(&mut self) -> (u32, KeyOp) {
        let request = self.session.next_request();
        let Some(Request::Keys { reply, request }) = request else {
            panic!("{request:?}")
        };
        assert_eq!(reply.conn, CONN);
        assert_eq!(request.vhost, VhostId::DEFAULT);
        assert_eq!(request.answer_bytes_max, 16 << 20);
        assert_eq!(self.requests(), [""; 0]);
        (reply.token, request.op)
    }

    fn answer_keys(&mut self, token: u32, result: Result<KeyAnswer, KeyError>) {
        self.event(Event::Keys {
            token,
            vhost: VhostId::DEFAULT,
            result: Box::new(result),
        });
    }
}

#[test]
fn keys_of_every_kind() {
    check(&[
        (
            r#"{"command":"key.exists","key":"a"}"#,
            r#"Read { key: "a", read: Exists }"#,
            KeyAnswer::Bool(false),
            r#"{"exists":false}"#,
        ),
        (
            r#"{"command":"key.kind","key":"a"}"#,
            r#"Read { key: "a", read: Kind }"#,
            KeyAnswer::Kind(KeyType::Ranking),
            r#"{"kind":"ranking"}"#,
        ),
        (
            r#"{"command":"key.delete","key":"a"}"#,
            r#"Write { key: "a", write: Delete }"#,
            KeyAnswer::Bool(true),
            r#"{"deleted":true}"#,
        ),
        (
            r#"{"command":"key.expire","key":"a","ttl_ms":7}"#,
            r#"Write { key: "a", write: Expire { ttl_ms: 7 } }"#,
            KeyAnswer::ExpiresAt(Millis(9)),
            r#"{"expires_at":9}"#,
        ),
        (
            r#"{"command":"key.ttl","key":"a"}"#,
            r#"Read { key: "a", read: Ttl }"#,
            KeyAnswer::TtlMs(None),
            r#"{"ttl_ms":null}"#,
        ),
        (
            r#"{"command":"key.persist","key":"a"}"#,
            r#"Write { key: "a", write: Persist }"#,
            KeyAnswer::Bool(true),
            r#"{"persisted":true}"#,
        ),
        (
            r#"{"command":"key.rename","key":"a","to":"b"}"#,
            r#"Write { key: "a", write: Rename { to: "b" } }"#,
            KeyAnswer::Bool(true),
            r#"{"renamed":true}"#,
        ),
        (
            r#"{"command":"key.scan"}"#,
            "Scan(KeyScan { caller: Anyone, glob: None, cursor: None, limit: 1000 })",
            KeyAnswer::Scanned {
                keys: vec!["a".into(), "\"".into()],
                cursor: None,
            },
            r#"{"keys":["a","\""],"cursor":null}"#,
        ),
        (
            r#"{"command":"key.scan","glob":"a*","cursor":"c","limit":1}"#,
            r#"Scan(KeyScan { caller: Anyone, glob: Some("a*"), cursor: Some("c"), limit: 1 })"#,
            KeyAnswer::Scanned {
                keys: Vec::new(),
                cursor: Some("d".into()),
            },
            r#"{"keys":[],"cursor":"d"}"#,
        ),
    ]);
}

#[test]
fn values() {
    let one = VersionedDatum {
        value: Datum::new(DatumForm::Bytes, b"\x00\x01"),
        version: 3,
    };
    check(&[
        (
            r#"{"command":"value.set","key":"a","value":{"b": 1.50}}"#,
            "Write { key: \"a\", write: SetValue { value: Json(\"{\\\"b\\\": 1.50}\"), ttl_ms: \
                None, condition: Condition { if_absent: false, if_version: None } } }",
            KeyAnswer::Version(1),
            r#"{"version":1}"#,
        ),
        (
            "{\"command\":\"value.set\",\"key\":\"a\",\"value\":{\"type\":\"text\",\"data\":\"\
                x\\n\"},\"ttl_ms\":5,\"if_absent\":true,\"if_version\":0}",
            "Write { key: \"a\", write: SetValue { value: Text(\"x\\n\"), ttl_ms: Some(5), con\
                dition: Condition { if_absent: true, if_version: Some(0) } } }",
            KeyAnswer::Version(u64::MAX),
            r#"{"version":18446744073709551615}"#,
        ),
        (
            r#"{"command":"value.get","key":"a"}"#,
            r#"Read { key: "a", read: Value }"#,
            KeyAnswer::Value(one.clone()),
            r#"{"value":{"type":"bytes","data":"AAE="},"version":3}"#,
        ),
        (
            r#"{"command":"value.get_many","keys":["a","b"]}"#,
            r#"GetMany { keys: ["a", "b"] }"#,
            KeyAnswer::Values(vec![Some(one), None]),
            r#"{"values":[{"value":{"type":"bytes","data":"AAE="},"version":3},null]}"#,
        ),
        (
            r#"{"command":"value.delete","key":"a","if_version":2}"#,
            r#"Write { key: "a", write: DeleteValue { if_version: Some(2) } }"#,
            KeyAnswer::Bool(true),
            r#"{"deleted":true}"#,
        ),
        (
            r#"{"command":"value.swap","key":"a","value":{"type":"bytes","data":"AAE="}}"#,
            r#"Write { key: "a", write: SwapValue { value: Bytes("\x00\x01"), ttl_ms: None } }"#,
            KeyAnswer::Swapped {
                previous: None,
                version: 1,
            },
            r#"{"previous":null,"version":1}"#,
        ),
        (
            r#"{"command":"value.swap","key":"a","value":null,"ttl_ms":9}"#,
            r#"Write { key: "a", write: SwapValue { value: Json("null"), ttl_ms: Some(9) } }"#,
            KeyAnswer::Swapped {
                previous: Some(json("null")),
                version: 2,
            },
            r#"{"previous":{"type":"json","data":null},"version":2}"#,
        ),
    ]);
}

#[test]
fn counters_and_maps() {
    check(&[
        (
            r#"{"command":"counter.add","key":"a"}"#,
            r#"Write { key: "a", write: AddCounter { by: 1, ttl_ms: None } }"#,
            KeyAnswer::Integer(-4),
            r#"{"value":-4}"#,
        ),
        (
            r#"{"command":"counter.get","key":"a"}"#,
            r#"Read { key: "a", read: Counter }"#,
            KeyAnswer::Integer(4),
            r#"{"value":4}"#,
        ),
        (
            r#"{"command":"counter.set","key":"a","value":-9,"ttl_ms":1}"#,
            r#"Write { key: "a", write: SetCounter { value: -9, ttl_ms: Some(1) } }"#,
            KeyAnswer::Integer(-9),
            r#"{"value":-9}"#,
        ),
        (
            r#"{"command":"map.set","key":"a","field":"f","value":7}"#,
            "Write { key: \"a\", write: Add { part: Field { field: \"f\", value: Json(\"7\") }\
                , ttl_ms: None } }",
            KeyAnswer::Bool(true),
            r#"{"created":true}"#,
        ),
        (
            r#"{"command":"map.get","key":"a","field":""}"#,
            r#"Read { key: "a", read: Field("") }"#,
            KeyAnswer::Datum(text("é\u{1}")),
            r#"{"value":{"type":"text","data":"é\u0001"}}"#,
        ),
        (
            r#"{"command":"map.remove","key":"a","field":"f"}"#,
            r#"Write { key: "a", write: Remove(Field("f")) }"#,
            KeyAnswer::Bool(false),
            r#"{"removed":false}"#,
        ),
        (
            r#"{"command":"map.all","key":"a"}"#,
            r#"Read { key: "a", read: Fields }"#,
            KeyAnswer::Fields(vec![("f".into(), json("1")), ("\"".into(), text("x"))]),
            r#"{"fields":{"f":{"type":"json","data":1},"\"":{"type":"text","data":"x"}}}"#,
        ),
        (
            r#"{"command":"map.length","key":"a"}"#,
            r#"Read { key: "a", read: Length(Map) }"#,
            KeyAnswer::Count(2),
            r#"{"length":2}"#,
        ),
        (
            r#"{"command":"map.add","key":"a","field":"f","by":2}"#,
            "Write { key: \"a\", write: Add { part: ToField { field: \"f\", by: 2 }, ttl_ms: N\
                one } }",
            KeyAnswer::Integer(2),
            r#"{"value":2}"#,
        ),
    ]);
}

#[test]
fn lists_and_sets() {
    check(&[
        (
            r#"{"command":"list.push","key":"a","values":[1,"x"],"side":"front","ttl_ms":5}"#,
            "Write { key: \"a\", write: Add { part: Items { values: [Json(\"1\"), Json(\"\\\"x\
                \\\"\")], side: Front }, ttl_ms: Some(5) } }",
            KeyAnswer::Count(2),
            r#"{"length":2}"#,
        ),
        (
            r#"{"command":"list.range","key":"a","start":0,"stop":-1}"#,
            r#"Read { key: "a", read: Items(Places { start: 0, stop: -1 }) }"#,
            KeyAnswer::Items(vec![json("1"), text("x")]),
            r#"{"values":[{"type":"json","data":1},{"type":"text","data":"x"}]}"#,
        ),
        (
            r#"{"command":"list.length","key":"a"}"#,
            r#"Read { key: "a", read: Length(List) }"#,
            KeyAnswer::Count(0),
            r#"{"length":0}"#,
        ),
        (
            r#"{"command":"list.trim","key":"a","start":1,"stop":2}"#,
            r#"Write { key: "a", write: Remove(ItemsBut(Places { start: 1, stop: 2 })) }"#,
            KeyAnswer::Count(1),
            r#"{"length":1}"#,
        ),
        (
            r#"{"command":"set.add","key":"a","members":["x","y"]}"#,
            r#"Write { key: "a", write: Add { part: Members(["x", "y"]), ttl_ms: None } }"#,
            KeyAnswer::Count(1),
            r#"{"added":1}"#,
        ),
        (
            r#"{"command":"set.remove","key":"a","members":["x"]}"#,
            r#"Write { key: "a", write: Remove(Members(["x"])) }"#,
            KeyAnswer::Count(1),
            r#"{"removed":1}"#,
        ),
        (
            r#"{"command":"set.contains","key":"a","member":"x"}"#,
            r#"Read { key: "a", read: Contains("x") }"#,
            KeyAnswer::Bool(true),
            r#"{"contains":true}"#,
        ),
        (
            r#"{"command":"set.members","key":"a"}"#,
            r#"Read { key: "a", read: Members }"#,
            KeyAnswer::Members(vec!["x".into(), "y".into()]),
            r#"{"members":["x","y"]}"#,
        ),
        (
            r#"{"command":"set.length","key":"a"}"#,
            r#"Read { key: "a", read: Length(Set) }"#,
            KeyAnswer::Count(2),
            r#"{"length":2}"#,
        ),
    ]);
}

#[test]
fn rankings_and_locks() {
    check(&[
        (
            r#"{"command":"ranking.add","key":"a","member":"m","score":1.5}"#,
            "Write { key: \"a\", write: Add { part: Score { member: \"m\", score: 1.5 }, ttl_m\
                s: None } }",
            KeyAnswer::Bool(true),
            r#"{"created":true}"#,
        ),
        (
            r#"{"command":"ranking.remove","key":"a","member":"m"}"#,
            r#"Write { key: "a", write: Remove(Score("m")) }"#,
            KeyAnswer::Bool(true),
            r#"{"removed":true}"#,
        ),
        (
            r#"{"command":"ranking.score","key":"a","member":"m"}"#,
            r#"Read { key: "a", read: Score("m") }"#,
            KeyAnswer::Score(0.1),
            r#"{"score":0.1}"#,
        ),
        (
            r#"{"command":"ranking.rank","key":"a","member":"m","reverse":true}"#,
            r#"Read { key: "a", read: Rank { member: "m", reverse: true } }"#,
            KeyAnswer::Count(0),
            r#"{"rank":0}"#,
        ),
        (
            r#"{"command":"ranking.range","key":"a","start":0,"stop":-1}"#,
            "Read { key: \"a\", read: Range(RankingPart { span: Places(Places \
                { start: 0, stop: -1 }), reverse: false, limit: None }) }",
            KeyAnswer::Ranked(vec![("m".into(), 1.0), ("n".into(), -2.5)]),
            r#"{"members":[{"member":"m","score":1.0},{"member":"n","score":-2.5}]}"#,
        ),
        (
            r#"{"command":"ranking.range","key":"a","min":0,"max":2.5,"reverse":true,"limit":3}"#,
            "Read { key: \"a\", read: Range(RankingPart { span: Scores { min: 0.0, max: 2.5 }, \
                reverse: true, limit: Some(3) }) }",
            KeyAnswer::Ranked(Vec::new()),
            r#"{"members":[]}"#,
        ),
        (
            r#"{"command":"ranking.length","key":"a"}"#,
            r#"Read { key: "a", read: Length(Ranking) }"#,
            KeyAnswer::Count(2),
            r#"{"length":2}"#,
        ),
        (
            r#"{"command":"lock.acquire","key":"a","ttl_ms":50}"#,
            r#"Acquire { key: "a", ttl_ms: 50, wait_ms: 0 }"#,
            KeyAnswer::Locked {
                key: "a".into(),
                token: 7,
                expires_at: Millis(8),
                waited: false,
            },
            r#"{"token":7,"expires_at":8}"#,
        ),
        (
            r#"{"command":"lock.renew","key":"a","token":7,"ttl_ms":50}"#,
            r#"Write { key: "a", write: RenewLock { token: 7, ttl_ms: 50 } }"#,
            KeyAnswer::ExpiresAt(Millis(9)),
            r#"{"expires_at":9}"#,
        ),
        (
            r#"{"command":"lock.release","key":"a","token":7}"#,
            r#"Write { key: "a", write: ReleaseLock { token: 7 } }"#,
            KeyAnswer::Bool(true),
            r#"{"released":true}"#,
        ),
    ]);
}

/// What the peer reads for an error.
fn told(command: &str, error: KeyError) -> String {
    let mut peer = Peer::open();
    peer.ask(5, command);
    let (token, _) = peer.key_request();
    peer.answer_keys(token, Err(error));
    let lines = peer.read();
    let prefix = r#"COMMAND 5 {"ok":false,"error":{"code":""#;
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    line.strip_prefix(prefix).unwrap().to_owned()
}

const GET: &str = r#"{"command":"value.get","key":"a"}"#;
const ADD: &str = r#"{"command":"map.add","key":"a","field":"f"}"#;
const RENAME: &str = r#"{"command":"key.rename","key":"a","to":"b"}"#;
const POP: &str = r#"{"command":"list.pop","key":"a","wait_ms":9}"#;
const ACQUIRE: &str = r#"{"command":"lock.acquire","key":"a","ttl_ms":9,"wait_ms":9}"#;
const RENEW: &str = r#"{"command":"lock.renew","key":"a","token":1,"ttl_ms":9}"#;
const RANK: &str = r#"{"command":"ranking.rank","key":"a","member":"m"}"#;

#[test]
fn what_is_not_there_or_of_another_kind_is_told() {
    for (command, error, expected) in [
        (
            GET,
            KeyError::NotFound,
            r#"NOT_FOUND","message":"key not found"}}"#,
        ),
        (
            ADD,
            KeyError::NotFound,
            r#"NOT_FOUND","message":"key or field not found"}}"#,
        ),
        (
            RANK,
            KeyError::NotFound,
            r#"NOT_FOUND","message":"key or member not found"}}"#,
        ),
        (
            POP,
            KeyError::NotFound,
            r#"NOT_FOUND","message":"the list has no item"}}"#,
        ),
        (
            RENEW,
            KeyError::NotFound,
            r#"NOT_FOUND","message":"nobody holds the lock"}}"#,
        ),
        (
            GET,
            KeyError::WrongType {
                found: KeyType::List,
            },
            r#"WRONG_TYPE","message":"the key is a list"}}"#,
        ),
        (
            ADD,
            KeyError::WrongType {
                found: KeyType::Map,
            },
            r#"WRONG_TYPE","message":"the field holds no integer of 64 bits"}}"#,
        ),
        (
            RENAME,
            KeyError::WrongType {
                found: KeyType::Lock,
            },
            r#"WRONG_TYPE","message":"a lock cannot be renamed"}}"#,
        ),
    ] {
        assert_eq!(told(command, error), expected, "{command}");
    }
}

#[test]
fn what_is_in_another_state_is_told() {
    for (command, error, expected) in [
        (
            RENAME,
            KeyError::Exists,
            r#"EXISTS","message":"a key with the name in to exists"}}"#,
        ),
        (
            GET,
            KeyError::VersionConflict { found: 3 },
            r#"CONFLICT","message":"if_version does not fit: the value has version 3"}}"#,
        ),
        (
            GET,
            KeyError::VersionConflict { found: 0 },
            r#"CONFLICT","message":"if_version does not fit: the key does not exist"}}"#,
        ),
        (
            ADD,
            KeyError::Overflow { value: 5 },
            r#"CONFLICT","message":"by would bring 5 beyond 64 bits"}}"#,
        ),
        (
            ACQUIRE,
            KeyError::Held { until: Millis(7) },
            r#"CONFLICT","message":"the lock is held until 7 at most"}}"#,
        ),
        (
            RENEW,
            KeyError::StaleToken,
            r#"CONFLICT","message":"token is not that of who holds the lock"}}"#,
        ),
        (
            ACQUIRE,
            KeyError::TimedOut,
            r#"TIMEOUT","message":"the lock was not free within wait_ms"}}"#,
        ),
        (
            POP,
            KeyError::TimedOut,
            r#"TIMEOUT","message":"no item came within wait_ms"}}"#,
        ),
    ] {
        assert_eq!(told(command, error), expected, "{command}");
    }
}

#[test]
fn what_does_not_fit_is_told() {
    for (command, error, expected) in [
        (
            GET,
            KeyError::AnswerTooLarge { bytes_max: 9 },
            r#"PAYLOAD_TOO_LARGE","message":"the answer would be over the limit of 9 bytes"}}"#,
        ),
        (
            GET,
            KeyError::TooManyKeys { max: 9 },
            "OVERLOADED\",\"message\":\"there is no room for more than 9 keys\",\"retry_after_\
                ms\":100}}",
        ),
        (
            GET,
            KeyError::Storage,
            "OVERLOADED\",\"message\":\"the disk is full: only what makes room is done\",\"ret\
                ry_after_ms\":100}}",
        ),
        (
            GET,
            KeyError::BadCursor,
            r#"BAD_REQUEST","message":"cursor is none that key.scan gave"}}"#,
        ),
        (
            GET,
            KeyError::VhostNotFound,
            r#"NOT_FOUND","message":"the virtual host of this door is gone"}}"#,
        ),
    ] {
        assert_eq!(told(command, error), expected, "{command}");
    }
}

#[test]
fn an_answer_over_the_hard_limit_says_so() {
    let mut peer = Peer::open();
    peer.ask(5, r#"{"command":"value.get","key":"a"}"#);
    let (token, _) = peer.key_request();
    let value = text(&"\u{1}".repeat(12 << 20));
    peer.answer_keys(
        token,
        Ok(KeyAnswer::Value(VersionedDatum { value, version: 1 })),
    );
    let expected = "COMMAND 5 {\"ok\":false,\"error\":{\"code\":\"PAYLOAD_TOO_LARGE\",\"messag\
        e\":\"an answer of 75497540 bytes is over the limit of 67108864\"}}";
    assert_eq!(peer.read(), [expected]);
}
