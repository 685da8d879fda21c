//! Any bytes: no panic, and what is accepted encodes and reads back.

use proptest::collection::vec;
use proptest::prelude::*;
use tanda_wire::amqp::encode::{write_any_method, write_content_header};
use tanda_wire::amqp::{
    ContentHeader, Method, MethodId, Properties, Split, Table, TableWriter, split_frame,
};

use crate::vectors::{bytes, section, whole_frame};

/// Whether the method was accepted.
fn check_method(payload: &[u8]) -> bool {
    let first = match Method::decode(payload) {
        Ok(method) => method,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    assert_eq!(first.id().to_bytes(), payload[..4]);
    assert!(!format!("{first:?}").is_empty());
    let mut frame = Vec::new();
    write_any_method(&mut frame, 1, &first);
    let Ok(Split::Frame(found)) = split_frame(&frame, u32::MAX) else {
        panic!("{first:?} was written as {frame:02x?}");
    };
    assert_eq!(Method::decode(found.payload), Ok(first));
    true
}

fn check_properties(raw: &[u8]) {
    let Ok(properties) = Properties::decode(raw) else {
        return;
    };
    assert_eq!(properties.raw(), raw);
    let values = properties.values();
    let mut again = Vec::new();
    values.encode(&mut again);
    assert_eq!(Properties::decode(&again).unwrap().values(), values);
    let mut edited = Vec::new();
    properties.edited(&mut edited, &[], &[]);
    assert_eq!(edited, again);
    if let Some(headers) = properties.headers() {
        check_table(headers.as_bytes());
    }
    let mut frame = Vec::new();
    write_content_header(&mut frame, 1, 5, properties);
    let Ok(Split::Frame(found)) = split_frame(&frame, u32::MAX) else {
        panic!("{properties:?} was written as {frame:02x?}");
    };
    let header = ContentHeader::decode(found.payload).unwrap();
    assert_eq!(header.properties, properties);
}

fn check_table(entries: &[u8]) {
    let table = Table::new(entries).unwrap();
    let valid = table.validate();
    let mut copy = Vec::new();
    let copied = TableWriter::new(&mut copy).copy_without(table, &[]);
    assert!(entries.starts_with(&copy));
    match valid {
        Ok(()) => {
            assert_eq!(copied, Ok(()));
            assert_eq!(copy, entries);
            crate::model::read_entries(table);
        }
        Err(error) => assert!(error.offset <= entries.len()),
    }
}

fn check_stream(mut stream: &[u8], frame_max: u32) {
    loop {
        match split_frame(stream, frame_max) {
            Ok(Split::Frame(frame)) => {
                assert!(frame.consumed() <= stream.len());
                assert!(frame.consumed() <= frame_max as usize);
                stream = &stream[frame.consumed()..];
            }
            Ok(Split::Incomplete { need_bytes }) => {
                assert!(need_bytes > stream.len());
                assert!(need_bytes <= (frame_max as usize).max(8));
                return;
            }
            Err(_) => return,
        }
    }
}

/// Mostly small numbers, as lengths are, so that decoders get past them.
fn small_bytes(len: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        6 => Just(0_u8),
        3 => 0..8_u8,
        2 => prop::sample::select(&b"tbBsuIilLfdDSAFTVx"[..]),
        1 => any::<u8>(),
    ];
    vec(byte, 0..len)
}

proptest! {
    #[test]
    fn any_arguments(id in prop::sample::select(MethodId::all().collect::<Vec<_>>()),
                     arguments in small_bytes(60)) {
        check_method(&[&id.to_bytes()[..], &arguments].concat());
    }

    #[test]
    fn any_properties(flags in any::<u16>(), sparse in any::<u16>(), values in small_bytes(80)) {
        let flags = flags & sparse;
        check_properties(&[&flags.to_be_bytes()[..], &values].concat());
    }

    #[test]
    fn any_table(entries in small_bytes(80)) {
        check_table(&entries);
    }

    #[test]
    fn any_stream(stream in small_bytes(60), frame_max in 0..100_u32) {
        check_stream(&stream, frame_max);
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        check_stream(&bytes, 4096);
        check_method(&bytes);
        check_table(&bytes);
        check_properties(&bytes);
        let _header = ContentHeader::decode(&bytes);
    }
}

/// Whatever one byte becomes, decoding ends, and what it accepts it can encode and read again.
#[test]
fn any_one_byte_may_change() {
    let mut accepted = 0;
    for entry in section("methods") {
        let frame = bytes(&entry, "frame");
        let payload = whole_frame(&frame).payload;
        for at in 0..payload.len() {
            for value in [0, 1, 2, 0x7F, 0x80, 0xFF] {
                let mut payload = payload.to_vec();
                payload[at] = value;
                accepted += usize::from(check_method(&payload));
            }
        }
    }
    assert!(
        accepted > 1000,
        "only {accepted} were accepted, so this tests little"
    );
    for entry in section("content_headers") {
        let frame = bytes(&entry, "frame");
        let raw = &whole_frame(&frame).payload[12..];
        for at in 0..raw.len() {
            for value in 0..=u8::MAX {
                let mut raw = raw.to_vec();
                raw[at] = value;
                check_properties(&raw);
            }
        }
    }
    for entry in section("tables") {
        let table = bytes(&entry, "table");
        for at in 4..table.len() {
            for value in 0..=u8::MAX {
                let mut table = table.clone();
                table[at] = value;
                check_table(&table[4..]);
            }
        }
    }
}
