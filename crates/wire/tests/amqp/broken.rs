//! Payloads that break the layout: refused, with the place at fault, and never a panic.

use tanda_wire::amqp::{Array, ContentHeader, Method, MethodError, MethodId, Properties, Table};
use tanda_wire::cursor::DecodeErrorKind;

use crate::json::unhex;
use crate::vectors::{bytes, section, whole_frame};

#[test]
fn listed_malformed_methods_are_refused_at_the_right_place() {
    for entry in section("malformed_methods") {
        let name = &entry["name"];
        let payload = bytes(&entry, "payload");
        match Method::decode(&payload).expect_err(&name.to_string()) {
            MethodError::NoId { len } => {
                assert_eq!(entry["error"], "no id", "{name}");
                assert_eq!(len, payload.len(), "{name}");
            }
            MethodError::Unknown { id } => {
                assert_eq!(entry["error"], "unknown", "{name}");
                assert_eq!(id.to_bytes(), payload[..4], "{name}");
                assert_eq!(id.name(), None, "{name}");
            }
            MethodError::Malformed { id, error } => {
                assert_eq!(entry["error"], "malformed", "{name}");
                assert_eq!(id.to_bytes(), payload[..4], "{name}");
                assert_eq!(entry["offset"], error.offset, "{name}: {error}");
            }
        }
    }
}

#[test]
fn listed_malformed_content_headers_are_refused_at_the_right_place() {
    for entry in section("malformed_content_headers") {
        let name = &entry["name"];
        let payload = bytes(&entry, "payload");
        let error = ContentHeader::decode(&payload).expect_err(&name.to_string());
        assert_eq!(entry["offset"], error.offset, "{name}: {error}");
    }
}

#[test]
fn listed_malformed_tables_are_refused_at_the_right_place() {
    for entry in section("malformed_tables") {
        let name = &entry["name"];
        let entries = bytes(&entry, "entries");
        let table = Table::new(&entries).unwrap();
        let error = table.validate().expect_err(&name.to_string());
        assert_eq!(entry["offset"], error.offset, "{name}: {error}");
    }
}

#[test]
fn a_method_cut_anywhere_is_refused() {
    for entry in section("methods") {
        let frame = bytes(&entry, "frame");
        let payload = whole_frame(&frame).payload;
        for cut in 0..payload.len() {
            match Method::decode(&payload[..cut]) {
                Err(MethodError::NoId { len }) => assert!(len == cut && cut < 4),
                Err(MethodError::Malformed { error, .. }) => {
                    assert!(error.offset <= cut, "{} cut at {cut}", entry["name"]);
                    assert!(matches!(error.kind, DecodeErrorKind::Truncated { .. }));
                }
                other => panic!("{} cut at {cut}: {other:?}", entry["name"]),
            }
        }
    }
}

#[test]
fn a_method_with_a_byte_more_is_refused() {
    for entry in section("methods") {
        let frame = bytes(&entry, "frame");
        let payload = whole_frame(&frame).payload;
        let longer = [payload, &[0]].concat();
        let error = Method::decode(&longer).unwrap_err();
        let MethodError::Malformed { id, error } = error else {
            panic!("{}: {error}", entry["name"]);
        };
        assert_eq!(error.offset, payload.len(), "{id}");
        assert_eq!(error.kind, DecodeErrorKind::TrailingBytes { have: 1 });
    }
}

#[test]
fn bits_that_name_nothing_are_ignored() {
    let plain = unhex("003c005000000000000000010100");
    let ack = Method::decode(&plain[..13]).unwrap();
    let odd = unhex("003c00500000000000000001ff");
    assert_eq!(Method::decode(&odd).unwrap(), ack);
}

#[test]
fn reserved_arguments_are_dropped() {
    // channel.open with the out-of-band settings of AMQP 0-8, get-empty with a cluster id.
    for (with, without) in [
        ("0014000a03616263", "0014000a00"),
        ("003c004803616263", "003c004800"),
        ("0014000b00000003616263", "0014000b00000000"),
        ("000a0028012f0361626301", "000a0028012f0000"),
        ("003c0028beef01610162 00", "003c0028000001610162 00"),
    ] {
        let with = unhex(&with.replace(' ', ""));
        let method = Method::decode(&with).unwrap();
        let mut encoded = Vec::new();
        method.encode(&mut encoded);
        assert_eq!(encoded, unhex(&without.replace(' ', "")));
    }
}

#[test]
fn a_content_header_cut_anywhere_is_refused() {
    for entry in section("content_headers") {
        let frame = bytes(&entry, "frame");
        let payload = whole_frame(&frame).payload;
        for cut in 0..payload.len() {
            let error = ContentHeader::decode(&payload[..cut]).unwrap_err();
            assert!(error.offset <= cut, "{} cut at {cut}", entry["name"]);
        }
        let longer = [payload, &[0]].concat();
        let error = ContentHeader::decode(&longer).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::TrailingBytes { have: 1 });
    }
}

#[test]
fn a_table_cut_anywhere_is_refused_unless_an_entry_ends_there() {
    for entry in section("tables") {
        let bytes = bytes(&entry, "table");
        let entries = &bytes[4..];
        let mut ends = vec![0];
        for entry in Table::new(entries).unwrap() {
            ends.push(ends.last().unwrap() + entry.unwrap().raw.len());
        }
        assert_eq!(ends.last(), Some(&entries.len()));
        for cut in 0..entries.len() {
            let valid = Table::new(&entries[..cut]).unwrap().validate();
            assert_eq!(valid.is_ok(), ends.contains(&cut), "cut at {cut}");
        }
    }
}

/// Entries of tables in tables, `levels` in all, the innermost holding nothing.
fn nested(levels: usize, tag: u8) -> Vec<u8> {
    let mut inner = Vec::new();
    for _ in 1..levels {
        let mut outer = if tag == b'F' { vec![1, b'k'] } else { vec![] };
        outer.push(tag);
        outer.extend_from_slice(&u32::try_from(inner.len()).unwrap().to_be_bytes());
        outer.extend_from_slice(&inner);
        inner = outer;
    }
    inner
}

#[test]
fn only_64_levels_are_read() {
    let tables = |levels| Table::new(nested(levels, b'F').leak()).unwrap().validate();
    assert_eq!(tables(64), Ok(()));
    let error = tables(65).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooDeep { depth_max: 64 });
    assert_eq!(
        error.offset,
        63 * 7 + 2,
        "the tag of the table that is too deep"
    );
    let arrays = |levels| Array::new(nested(levels, b'A').leak()).unwrap().validate();
    assert_eq!(arrays(64), Ok(()));
    let error = arrays(65).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooDeep { depth_max: 64 });
    assert_eq!(error.offset, 63 * 5);
    assert!(tables(2000).is_err());
}

#[test]
fn further_words_of_flags_are_read_when_they_are_empty() {
    let header = |properties: &str| Properties::decode(unhex(properties).leak());
    let plain = header("100002").unwrap();
    let longer = header("1001000002").unwrap();
    assert_eq!(longer.delivery_mode(), plain.delivery_mode());
    assert_eq!(
        header("100100010001000002").unwrap().delivery_mode(),
        Some(2)
    );
    let kind = |properties| header(properties).unwrap_err().kind;
    assert!(matches!(
        kind("1001400002"),
        DecodeErrorKind::UnknownFlags { flags: 0x4000, .. }
    ));
    assert!(matches!(kind("1001"), DecodeErrorKind::Truncated { .. }));
    assert!(matches!(
        kind("10010001"),
        DecodeErrorKind::Truncated { .. }
    ));
}

#[test]
fn errors_say_what_and_where() {
    let text = |payload: &str| Method::decode(&unhex(payload)).unwrap_err().to_string();
    assert_eq!(text("00"), "a method frame of 1 bytes names no method");
    assert_eq!(text("00010002"), "there is no method (1,2)");
    assert_eq!(
        text("003c0028000001"),
        "basic.publish (60,40): short string of 1 bytes at offset 7 runs past the end: \
         0 bytes left"
    );
    assert_eq!(
        text("005a000a0000"),
        "tx.select (90,10): 2 bytes at offset 4 follow the last value"
    );
    let table = |entries: &str| {
        let entries = unhex(entries);
        Table::new(&entries)
            .unwrap()
            .validate()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        table("01615500"),
        "tag of a field value at offset 2 is 0x55: no layout has this tag"
    );
    let error = Properties::decode(&[0x10, 1, 0x40, 0, 2]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "property flags at offset 2 are 0x4000: some name no value"
    );
    assert_eq!(MethodId::NONE.to_string(), "(0,0)");
    assert_eq!(MethodId::new(60, 40).to_string(), "basic.publish (60,40)");
}
