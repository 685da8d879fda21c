//! JSON beside a library that builds values.

use proptest::prelude::*;
use serde_json::Value;
use tanda_wire::amaquet::json::{Json, JsonKind, Number, Writer};

fn problem(text: &str) -> String {
    Json::parse(text.as_bytes()).unwrap_err().to_string()
}

/// The same value, by walking over the text.
fn walked(json: Json<'_>) -> Value {
    match json.kind() {
        JsonKind::Null => Value::Null,
        JsonKind::Bool => json.as_bool().unwrap().into(),
        JsonKind::String => json.as_str().unwrap().into(),
        JsonKind::Array => json.as_array().unwrap().map(walked).collect(),
        JsonKind::Object => {
            let fields = json.as_object().unwrap();
            fields
                .map(|(key, it)| (key.into_owned(), walked(it)))
                .collect()
        }
        JsonKind::Number => match json.as_number().unwrap() {
            Number::Unsigned(it) => it.into(),
            Number::Negative(it) => it.into(),
            Number::Double(it) => it.into(),
        },
    }
}

fn write(out: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Null => out.null(),
        Value::Bool(it) => out.bool(*it),
        Value::String(it) => out.str(it),
        Value::Array(items) => out.array(|out| {
            for item in items {
                write(out, item);
            }
        }),
        Value::Object(fields) => out.object(|out| {
            for (key, value) in fields {
                write(out.key(key), value);
            }
        }),
        Value::Number(it) => match (it.as_u64(), it.as_i64(), it.as_f64()) {
            (Some(it), ..) => out.u64(it),
            (_, Some(it), _) => out.i64(it),
            (_, _, it) => out.f64(it.unwrap()),
        },
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // The other reader is not exact in the last digit of long fractions.
        any::<i32>().prop_map(|it| Value::from(f64::from(it) / 8.0)),
        any::<String>().prop_map(Value::from),
        "[\"\\\\/\u{0}-\u{20}a\u{e9}\u{1F600}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|it| it.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_others_write(value in any_json(), pretty: bool) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        let json = Json::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(json.text(), &text);
        prop_assert_eq!(walked(json), value);
    }

    #[test]
    fn others_read_what_is_written(value in any_json()) {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), &value);
        let read: Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(walked(Json::parse(&out).unwrap()), value);
    }

    #[test]
    fn takes_and_refuses_as_others_do(text in "[\\[\\]{},:\"\\\\u0-9aedbn tru.+-]{0,14}") {
        let ours = Json::parse(text.as_bytes()).map(walked);
        let theirs = serde_json::from_str::<Value>(&text);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
            (Err(_), Err(_)) => {}
            // It rounds numbers that do not fit, here they are refused.
            (Err(error), Ok(_)) => prop_assert!(error.to_string().contains("does not fit")),
            (Ok(ours), Err(error)) => prop_assert!(false, "{ours} {error}"),
        }
    }
}

#[test]
fn refused_texts_are_told() {
    let deep = "[".repeat(129) + &"]".repeat(129);
    let long = format!("0.{}", "1".repeat(511));
    for (text, told) in [
        ("", "the JSON ends too early, at byte 0"),
        ("  ", "the JSON ends too early, at byte 2"),
        ("{\"a\"", "the JSON ends too early, at byte 4"),
        ("[1 2]", "\"2\" at byte 3 is not what JSON has there"),
        ("[1,]", "\"]\" at byte 3 is not what JSON has there"),
        ("{\"a\":1,}", "\"}\" at byte 7 is not what JSON has there"),
        ("{a:1}", "\"a\" at byte 1 is not what JSON has there"),
        ("[1}", "\"}\" at byte 2 is not what JSON has there"),
        ("nul", "the JSON ends too early, at byte 3"),
        ("1 1", "\"1\" at byte 2 is not what JSON has there"),
        ("+1", "\"+\" at byte 0 is not what JSON has there"),
        ("00", "\"0\" at byte 1 is not what JSON has there"),
        ("1.", "the JSON ends too early, at byte 2"),
        (
            "\"\u{1}\"",
            "\"\\x01\" at byte 1 is not what JSON has there",
        ),
        ("\"\\x\"", "an escape that JSON does not have at byte 1"),
        ("\"\\ud800\"", "half of a surrogate pair at byte 1"),
        ("\"\\ud800\\u0041\"", "half of a surrogate pair at byte 1"),
        ("\"\\udc00\"", "half of a surrogate pair at byte 1"),
        (
            "18446744073709551616",
            "the number at byte 0 does not fit (integers have 64 bits, others are doubles)",
        ),
        (
            "[1e999]",
            "the number at byte 1 does not fit (integers have 64 bits, others are doubles)",
        ),
        (
            &deep,
            "more than 128 arrays and objects inside each other at byte 128",
        ),
        (&long, "the number at byte 0 is longer than 512 bytes"),
    ] {
        assert_eq!(problem(text), told, "{text}");
    }
    let error = Json::parse(b"[\"\xff\"]").unwrap_err();
    assert_eq!(error.to_string(), "byte 2 is not UTF-8");
}

#[test]
fn the_deepest_and_the_widest_numbers_are_taken() {
    let deep = "[".repeat(128) + &"]".repeat(128);
    assert_eq!(Json::parse(deep.as_bytes()).unwrap().text(), deep);
    let mixed = "{\"a\":[".repeat(64) + "1" + &"]}".repeat(64);
    assert_eq!(Json::parse(mixed.as_bytes()).unwrap().text(), mixed);
    for (text, number) in [
        ("18446744073709551615", Number::Unsigned(u64::MAX)),
        ("-9223372036854775808", Number::Negative(i64::MIN)),
        ("-0", Number::Unsigned(0)),
        ("1.0", Number::Double(1.0)),
        ("1e3", Number::Double(1000.0)),
    ] {
        let json = Json::parse(text.as_bytes()).unwrap();
        assert_eq!(json.as_number(), Some(number), "{text}");
    }
}

#[test]
fn an_integer_is_a_double_where_nothing_is_lost() {
    let double = |text: &str| {
        let json = Json::parse(text.as_bytes()).unwrap();
        json.as_number().unwrap().double()
    };
    for exact in [
        "0",
        "-1",
        "9007199254740992",
        "9007199254740994",
        "9223372036854775808",
    ] {
        assert_eq!(double(exact), exact.parse().ok(), "{exact}");
    }
    assert_eq!(double("-9223372036854775808"), Some(-(2_f64.powi(63))));
    for inexact in [
        "9007199254740993",
        "18446744073709551615",
        "-9007199254740993",
    ] {
        assert_eq!(double(inexact), None, "{inexact}");
    }
    assert_eq!(double("0.1"), Some(0.1));
}

#[test]
fn of_a_repeated_key_all_come() {
    let json = Json::parse(b" { \"a\" : 1 , \"\\u0061\" : [ 2 , { } ] } ").unwrap();
    let fields: Vec<_> = json.as_object().unwrap().collect();
    let fields: Vec<_> = fields.iter().map(|(key, it)| (&**key, it.text())).collect();
    assert_eq!(fields, [("a", "1"), ("a", "[ 2 , { } ]")]);
}
