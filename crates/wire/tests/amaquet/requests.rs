//! Requests: what is read, and what is said of those that make no sense.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use tanda_wire::amaquet::command::{
    ArgumentLimits, Backoff, Bounded, COMMANDS, Command, DeliveryDurability, Key, Member,
    RankingSpan, Score, Side, ValueType, WaitMs,
};
use tanda_wire::amaquet::{ErrorCode, Payload};

fn refused(request: &str) -> String {
    let error = Command::parse(request.as_bytes(), &ArgumentLimits::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadRequest, "{request}");
    error.to_string()
}

/// A value of a type.
fn good(name: &str, of: ValueType) -> Value {
    match (name, of) {
        ("side", _) => json!("front"),
        ("backoff", _) => json!("fixed"),
        ("delivery_durability", _) => json!("fast"),
        (_, ValueType::String) => json!("a"),
        (_, ValueType::Bool) => json!(true),
        (_, ValueType::I64 | ValueType::U64) => json!(1),
        (_, ValueType::Number) => json!(1.5),
        (_, ValueType::Payload | ValueType::Object) => json!({"b": 1}),
        (_, ValueType::Payloads) => json!([1, "a"]),
        (_, ValueType::Strings) => json!(["a", "b"]),
        (_, ValueType::Messages) => json!([{"payload": 1}]),
    }
}

/// A value of another type, and what is said of it; any value is a payload.
fn bad(of: ValueType) -> Option<(Value, &'static str)> {
    Some(match of {
        ValueType::Payload => return None,
        ValueType::String => (json!(1), "is a number, 1; it must be a string"),
        ValueType::Bool => (json!("true"), "is a string; it must be a bool"),
        ValueType::I64 => (
            json!(1.0),
            "is a number, 1.0; it must be an integer of 64 bits",
        ),
        ValueType::U64 => (
            json!(-1),
            "is a number, -1; it must be an integer of 64 bits that is not below zero",
        ),
        ValueType::Number => (
            json!("1"),
            "is a string; it must be a number that a double holds exactly as it is written",
        ),
        ValueType::Payloads | ValueType::Strings | ValueType::Messages => {
            (json!({}), "is an object; it must be an array")
        }
        ValueType::Object => (json!([]), "is an array; it must be an object"),
    })
}

/// A request with all arguments that must be there.
fn request(name: &str) -> Map<String, Value> {
    let spec = COMMANDS.iter().find(|it| it.name == name).unwrap();
    let required = spec.arguments.iter().filter(|it| it.required);
    let mut request: Map<_, _> = required
        .map(|it| (it.name.to_owned(), good(it.name, it.value_type)))
        .collect();
    if name == "ranking.range" {
        request.insert("start".to_owned(), json!(0));
        request.insert("stop".to_owned(), json!(-1));
    }
    request.insert("command".to_owned(), json!(name));
    request
}

fn text(request: &Map<String, Value>) -> String {
    Value::from(request.clone()).to_string()
}

#[test]
fn every_argument_is_read_and_every_bad_one_is_named() {
    for spec in COMMANDS {
        let least = request(spec.name);
        let limits = ArgumentLimits::default();
        let read = |request: &Map<String, Value>| {
            let request = text(request);
            Command::parse(request.as_bytes(), &limits)
                .unwrap_or_else(|error| panic!("{request}: {error}"))
                .spec()
                .name
        };
        assert_eq!(read(&least), spec.name);
        for argument in spec.arguments {
            let mut with = least.clone();
            with.insert(
                argument.name.to_owned(),
                good(argument.name, argument.value_type),
            );
            if spec.name != "ranking.range" {
                assert_eq!(read(&with), spec.name);
            }
            with.insert(argument.name.to_owned(), Value::Null);
            if !argument.required && spec.name != "ranking.range" {
                assert_eq!(read(&with), spec.name, "null is as if left out");
            }
            with.remove(argument.name);
            if argument.required {
                let wanted = argument.value_type.described();
                let told = format!("{} is missing; it must be {wanted}", argument.name);
                assert_eq!(refused(&text(&with)), told);
            }
            if let Some((value, told)) = bad(argument.value_type) {
                with.insert(argument.name.to_owned(), value);
                let told = format!("{} {told}", argument.name);
                assert_eq!(refused(&text(&with)), told, "{}", spec.name);
            }
        }
    }
}

/// Requests that make no sense, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    (
        "",
        "the payload is no JSON: the JSON ends too early, at byte 0",
    ),
    ("[]", "the payload is an array, not an object"),
    ("{}", "command is missing; it must be a string"),
    (
        r#"{"command":"value.get","key":""}"#,
        "key is 0 bytes; it must be 1 to 1024 bytes",
    ),
    (
        r#"{"command":"key.expire","key":"k","ttl_ms":0}"#,
        "ttl_ms is 0; it must be above 0",
    ),
    (
        r#"{"command":"key.scan","limit":10001}"#,
        "limit is 10001; it must be 1 to 10000",
    ),
    (
        r#"{"command":"queue.pop","queue":"q","max":1001}"#,
        "max is 1001; it must be 1 to 1000",
    ),
    (
        r#"{"command":"list.pop","key":"k","wait_ms":300001}"#,
        "wait_ms is 300001; it must be at most 300000 (amaquet.limits.max_wait)",
    ),
    (
        r#"{"command":"list.pop","key":"k","side":"left"}"#,
        "side is \"left\"; it must be \"front\" or \"back\"",
    ),
    (
        r#"{"command":"queue.create","queue":"q","backoff":"slow"}"#,
        "backoff is \"slow\"; it must be \"none\", \"fixed\" or \"exponential\"",
    ),
    (
        r#"{"command":"queue.create","queue":"q","delivery_durability":""}"#,
        "delivery_durability is \"\"; it must be \"committed\" or \"fast\"",
    ),
    (
        r#"{"command":"counter.set","key":"k","value":9223372036854775808}"#,
        "value is a number, 9223372036854775808; it must be an integer of 64 bits",
    ),
    (
        r#"{"command":"counter.set","key":"k","value":18446744073709551616}"#,
        "the payload is no JSON: the number at byte 43 does not fit \
         (integers have 64 bits, others are doubles)",
    ),
    (
        r#"{"command":"ranking.add","key":"k","member":"m","score":9007199254740993}"#,
        "score is a number, 9007199254740993; \
         it must be a number that a double holds exactly as it is written",
    ),
    (
        r#"{"command":"value.set","key":"k","value":{"type":"text","data":1}}"#,
        "value is no payload: data of type \"text\" is a number, not a string",
    ),
    (
        r#"{"command":"list.push","key":"k","values":[1,{"type":"bytes","data":"?"}]}"#,
        "values[1] is no payload: data of type \"bytes\": \
         1 characters of base64 are no multiple of 4 (padding is wanted)",
    ),
    (
        r#"{"command":"value.get_many","keys":["a",1]}"#,
        "keys[1] is a number, 1; it must be a string",
    ),
    (
        r#"{"command":"queue.push","queue":"q","messages":[{"payload":1},{}]}"#,
        "messages[1].payload is missing; it must be a payload",
    ),
    (
        r#"{"command":"queue.push","queue":"q","messages":[[]]}"#,
        "messages[0] is an array; it must be an object",
    ),
    (
        r#"{"command":"queue.push","queue":"q","messages":[{"payload":1,"headers":{"a":1}}]}"#,
        "messages[0].headers.a is a number, 1; it must be a string",
    ),
    (
        r#"{"command":"queue.push","queue":"q","messages":[{"payload":1,"weight":0}]}"#,
        "messages[0].weight is 0; it must be 1 to 4294967295",
    ),
    (
        r#"{"command":"ranking.range","key":"k"}"#,
        "start is missing, and so are min and max; \
         it must be there with stop, or min with max, and not both",
    ),
    (
        r#"{"command":"ranking.range","key":"k","start":0}"#,
        "start is only half of start and stop; \
         it must be there with stop, or min with max, and not both",
    ),
    (
        r#"{"command":"ranking.range","key":"k","max":0}"#,
        "start is missing, with half of min and max; \
         it must be there with stop, or min with max, and not both",
    ),
    (
        r#"{"command":"ranking.range","key":"k","start":0,"stop":1,"min":0}"#,
        "start is together with min and max; \
         it must be there with stop, or min with max, and not both",
    ),
];

#[test]
fn requests_that_make_no_sense_are_told() {
    for (request, told) in REFUSED {
        assert_eq!(refused(request), *told, "{request}");
    }
}

#[test]
fn requests_that_are_too_long_are_told() {
    let key = format!(r#"{{"command":"value.get","key":"{}"}}"#, "k".repeat(1025));
    assert_eq!(
        refused(&key),
        "key is 1025 bytes; it must be 1 to 1024 bytes"
    );
    let field = "f".repeat(65_536);
    let field = format!(r#"{{"command":"map.get","key":"k","field":"{field}"}}"#);
    assert_eq!(
        refused(&field),
        "field is 65536 bytes; it must be at most 65535 bytes"
    );
    let members = r#""","#.repeat(100_000);
    let members = format!(r#"{{"command":"set.add","key":"k","members":[{members}""]}}"#);
    assert_eq!(
        refused(&members),
        "members is longer; it must be at most 100000 items"
    );
}

#[test]
fn an_unknown_command_is_told_shortened() {
    let name = "x".repeat(100);
    let request = format!(r#"{{"command":"{name}"}}"#);
    let error = Command::parse(request.as_bytes(), &ArgumentLimits::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownCommand);
    let told = format!(
        "there is no command \"{}...\"; server.commands lists them all",
        "x".repeat(64)
    );
    assert_eq!(error.to_string(), told);
}

fn parsed(request: &str) -> Command<'_> {
    Command::parse(request.as_bytes(), &ArgumentLimits::default()).unwrap()
}

fn names(command: &Command<'_>) -> Vec<String> {
    let mut names = Vec::new();
    command.tell_names(&mut |name| names.push(name.to_owned()));
    names
}

#[test]
fn arguments_have_these_values() {
    let set = parsed(
        r#"{"key":"a","command":"value.set","value":null,"if_version":0,"later":[],"key":"b"}"#,
    );
    assert_eq!(names(&set), ["b"]);
    let Command::ValueSet(set) = set else {
        panic!("{set:?}");
    };
    assert_eq!(set.key, Key("b".into()));
    assert_eq!(set.value, Payload::Json("null".into()));
    assert_eq!(
        (set.if_version, set.if_absent, set.ttl_ms),
        (Some(0), false, None)
    );

    let pop = parsed(r#"{"command":"list.pop","key":"l"}"#);
    let Command::ListPop(pop) = pop else {
        panic!("{pop:?}");
    };
    assert_eq!((pop.side, pop.wait_ms), (Side::Front, WaitMs(0)));

    let push = parsed(r#"{"command":"list.push","key":"l","values":[]}"#);
    let Command::ListPush(push) = push else {
        panic!("{push:?}");
    };
    assert_eq!((push.side, push.values.len()), (Side::Back, 0));

    let add = parsed(r#"{"command":"ranking.add","key":"r","member":"m","score":-0.0}"#);
    let Command::RankingAdd(add) = add else {
        panic!("{add:?}");
    };
    assert!(add.score.0.is_sign_positive(), "there is one zero");
    assert_eq!(add.member, Member(Cow::Borrowed("m")));

    let range =
        parsed(r#"{"command":"ranking.range","key":"r","min":-1,"max":2.5,"reverse":true}"#);
    let Command::RankingRange(range) = range else {
        panic!("{range:?}");
    };
    let span = RankingSpan::Scores {
        min: -1.0,
        max: 2.5,
    };
    assert_eq!((range.span(), range.reverse), (Ok(span), true));
    assert_eq!(range.max, Some(Score(2.5)));

    let scan = parsed(r#"{"command":"key.scan","glob":null}"#);
    assert_eq!(names(&scan), [""; 0]);
    let Command::KeyScan(scan) = scan else {
        panic!("{scan:?}");
    };
    assert_eq!(
        (scan.glob, scan.cursor, scan.limit),
        (None, None, Bounded(1_000))
    );
}

#[test]
fn permissions_are_wanted_on_all_names() {
    let rename = parsed(r#"{"command":"key.rename","key":"a","to":"b"}"#);
    assert_eq!(names(&rename), ["a", "b"]);
    let many = parsed(r#"{"command":"value.get_many","keys":["a","b","a"]}"#);
    assert_eq!(names(&many), ["a", "b", "a"]);
    let redrive = parsed(r#"{"command":"queue.redrive","queue":"orders.dlq"}"#);
    assert_eq!(names(&redrive), ["orders.dlq"]);
    assert!(names(&parsed(r#"{"command":"server.info"}"#)).is_empty());
}

#[test]
fn messages_and_queues_have_all_their_fields() {
    let push = parsed(
        r#"{"command":"queue.push","queue":"q","messages":[{"payload":"p","headers":{"a":"b"},
            "fairness_key":"f","weight":3,"delay_ms":5,"idempotency_key":"i"},{"payload":1}]}"#,
    );
    let Command::QueuePush(push) = push else {
        panic!("{push:?}");
    };
    let [full, least] = &push.messages[..] else {
        panic!("{push:?}");
    };
    assert_eq!(full.payload, Payload::Json("\"p\"".into()));
    assert_eq!(full.headers.0, [("a".into(), "b".into())]);
    assert_eq!(full.fairness_key.as_deref(), Some("f"));
    assert_eq!((full.weight, full.delay_ms), (Some(Bounded(3)), 5));
    assert_eq!(full.idempotency_key.as_deref(), Some("i"));
    assert_eq!((least.weight, least.delay_ms), (None, 0));
    let create = parsed(
        r#"{"command":"queue.create","queue":"q","visibility_timeout_ms":1,"max_attempts":2,
            "backoff":"exponential","dedup_key":["payload"],"delivery_durability":"committed"}"#,
    );
    let Command::QueueCreate(create) = create else {
        panic!("{create:?}");
    };
    assert_eq!(create.max_attempts, Some(Bounded(2)));
    assert_eq!(create.backoff, Some(Backoff::Exponential));
    assert_eq!(create.dedup_key, Some(vec![Cow::Borrowed("payload")]));
    assert_eq!(
        create.delivery_durability,
        Some(DeliveryDurability::Committed)
    );
}

#[test]
fn a_longer_wait_may_be_configured() {
    let limits = ArgumentLimits {
        wait_ms_max: 300_001,
    };
    let request = br#"{"command":"lock.acquire","key":"l","ttl_ms":1,"wait_ms":300001}"#;
    assert!(Command::parse(request, &limits).is_ok());
}
