//! Payloads: what stands for one, and what is given back.

use proptest::prelude::*;
use tanda_wire::amaquet::json::{Json, Writer};
use tanda_wire::amaquet::payload::{Payload, PayloadError};

fn parsed(text: &str) -> Result<Payload<'_>, PayloadError> {
    Payload::of(Json::parse(text.as_bytes()).unwrap())
}

fn written(payload: &Payload<'_>) -> String {
    let mut out = Vec::new();
    payload.write(&mut Writer::new(&mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn json_is_given_back_as_it_came() {
    for text in [
        "null",
        "1.50",
        "{ \"b\" : 1,\n\"a\": 1e+2, \"a\": \"\\u0041\" }",
        "{\"type\":\"json\"}",
        "{\"data\":1}",
        "[18446744073709551615,-9223372036854775808]",
    ] {
        let payload = parsed(text).unwrap();
        assert_eq!(payload, Payload::Json(text.into()));
        assert_eq!(
            written(&payload),
            format!("{{\"type\":\"json\",\"data\":{text}}}")
        );
        let whole = written(&payload);
        assert_eq!(parsed(&whole), Ok(payload));
    }
}

#[test]
fn types_say_what_data_is() {
    let text = parsed(r#"{"type":"text","data":"a\nb","other":1}"#).unwrap();
    assert_eq!(text, Payload::Text("a\nb".into()));
    assert_eq!(written(&text), r#"{"type":"text","data":"a\nb"}"#);
    let bytes = parsed(r#"{"data":"AP8=","type":"bytes"}"#).unwrap();
    assert_eq!(bytes, Payload::Bytes(vec![0, 255].into()));
    assert_eq!(written(&bytes), r#"{"type":"bytes","data":"AP8="}"#);
    assert_eq!((text.len(), bytes.len()), (3, 2));
}

#[test]
fn types_that_do_not_fit_are_told() {
    for (text, told) in [
        (
            r#"{"type":"xml","data":"a"}"#,
            "type is \"xml\", not \"json\", \"text\" or \"bytes\" \
             (an object with type and data is a payload)",
        ),
        (
            r#"{"type":1,"data":"a"}"#,
            "type is 1, not \"json\", \"text\" or \"bytes\" \
             (an object with type and data is a payload)",
        ),
        (
            r#"{"type":"text","data":1}"#,
            "data of type \"text\" is a number, not a string",
        ),
        (
            r#"{"type":"bytes","data":null}"#,
            "data of type \"bytes\" is null, not a string",
        ),
        (
            r#"{"type":"bytes","data":"AP8"}"#,
            "data of type \"bytes\": 3 characters of base64 are no multiple of 4 \
             (padding is wanted)",
        ),
    ] {
        assert_eq!(parsed(text).unwrap_err().to_string(), told, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(text: String, bytes: Vec<u8>) {
        for payload in [Payload::Text(text.into()), Payload::Bytes(bytes.into())] {
            let whole = written(&payload);
            prop_assert_eq!(parsed(&whole), Ok(payload));
        }
    }
}
