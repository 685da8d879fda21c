//! The table of types, in both directions.

use tanda_wire::amqp::{LongStr, ShortStr, Table, TableWriter, Value as Amqp};
use tanda_wire::firemq::value::TIMESTAMP_EXT;
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{RawMap, Value as Fire};
use tanda_wire::mapping::{MapError, write_amqp_table, write_fire_map};

use crate::PLENTY;

/// `{"v": value}` as a map.
fn fire(value: &Fire<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut map = MapWriter::begin(&mut out);
    map.entry("v", value);
    map.finish();
    out
}

/// `{"v": value}` as the entries of a table.
fn amqp(value: &Amqp<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    TableWriter::new(&mut out).value(ShortStr::clip("v"), value);
    out
}

fn to_amqp(map: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    write_amqp_table(&mut out, RawMap::decode(map).unwrap(), PLENTY).unwrap();
    assert_eq!(&out[..6], b"before");
    let entries = out.split_off(6);
    Table::new(&entries).unwrap().validate().unwrap();
    entries
}

fn to_fire(entries: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    write_fire_map(&mut out, Table::new(entries).unwrap(), PLENTY).unwrap();
    let map = out.split_off(6);
    RawMap::decode(&map).unwrap();
    map
}

fn bytes(value: &[u8]) -> LongStr<'_> {
    LongStr::new(value).unwrap()
}

/// Values that are the same on both sides, in both directions.
#[test]
fn types_with_a_place_on_both_sides() {
    let cases = [
        (Fire::Nil, Amqp::Void),
        (Fire::Bool(true), Amqp::Bool(true)),
        (Fire::Bool(false), Amqp::Bool(false)),
        (Fire::Uint(0), Amqp::I64(0)),
        (Fire::Uint(i64::MAX.unsigned_abs()), Amqp::I64(i64::MAX)),
        (Fire::Int(-1), Amqp::I64(-1)),
        (Fire::Int(i64::MIN), Amqp::I64(i64::MIN)),
        (Fire::F64(1.5), Amqp::F64(1.5)),
        (Fire::F64(f64::INFINITY), Amqp::F64(f64::INFINITY)),
        (Fire::Str("grün"), Amqp::text("grün")),
        (Fire::Str(""), Amqp::text("")),
        (Fire::Bin(b"text"), Amqp::Bytes(bytes(b"text"))),
        (Fire::Bin(&[0xff]), Amqp::Bytes(bytes(&[0xff]))),
    ];
    for (left, right) in cases {
        assert_eq!(to_amqp(&fire(&left)), amqp(&right), "{left:?}");
        assert_eq!(to_fire(&amqp(&right)), fire(&left), "{right:?}");
    }
}

#[test]
fn arrays_and_maps_keep_their_order() {
    let mut map = Vec::new();
    let mut writer = MapWriter::begin(&mut map);
    let mut items = ArrayWriter::begin(writer.key("list"));
    items.item(&Fire::Uint(1));
    let mut inner = MapWriter::begin(items.slot());
    inner.entry("z", &Fire::Nil);
    inner.entry("a", &Fire::Bool(true));
    inner.finish();
    ArrayWriter::begin(items.slot()).finish();
    items.finish();
    MapWriter::begin(writer.key("none")).finish();
    writer.finish();

    let mut entries = Vec::new();
    TableWriter::new(&mut entries)
        .array(ShortStr::clip("list"), |items| {
            items.value(&Amqp::I64(1));
            items.table(|inner| {
                inner.value(ShortStr::clip("z"), &Amqp::Void);
                inner.value(ShortStr::clip("a"), &Amqp::Bool(true));
            });
            items.array(|_| {});
        })
        .table(ShortStr::clip("none"), |_| {});

    assert_eq!(to_amqp(&map), entries);
    assert_eq!(to_fire(&entries), map);
}

#[test]
fn what_only_fire_has() {
    let timestamp = |data| Fire::Ext {
        kind: TIMESTAMP_EXT,
        data,
    };
    let digits = "18446744073709551615";
    let seconds_64 = (7_u64 << 34 | 1_700_000_000).to_be_bytes();
    let seconds_96 = [0, 0, 0, 7, 0, 0, 0, 0x10, 0, 0, 0, 0];
    let before_1970 = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe];
    let cases = [
        (Fire::Uint(u64::MAX), Amqp::text(digits)),
        (Fire::Uint(1 << 63), Amqp::text("9223372036854775808")),
        (Fire::F32(0.5), Amqp::F64(0.5)),
        (timestamp(&[0, 0, 0, 5]), Amqp::Timestamp(5)),
        (timestamp(&seconds_64), Amqp::Timestamp(1_700_000_000)),
        (timestamp(&seconds_96), Amqp::Timestamp(16 << 32)),
        (timestamp(&before_1970), Amqp::I64(-2)),
        (timestamp(&[1, 2]), Amqp::Bytes(bytes(&[1, 2]))),
        (
            Fire::Ext {
                kind: 5,
                data: &[0, 0, 0, 5],
            },
            Amqp::Bytes(bytes(&[0, 0, 0, 5])),
        ),
    ];
    for (left, right) in cases {
        assert_eq!(to_amqp(&fire(&left)), amqp(&right), "{left:?}");
    }
}

#[test]
fn what_only_amqp_has() {
    let decimal = |scale, value| Amqp::Decimal { scale, value };
    let cases = [
        (Amqp::I8(-1), Fire::Int(-1)),
        (Amqp::U8(255), Fire::Uint(255)),
        (Amqp::I16(-300), Fire::Int(-300)),
        (Amqp::U16(65535), Fire::Uint(65535)),
        (Amqp::I32(7), Fire::Uint(7)),
        (Amqp::U32(u32::MAX), Fire::Uint(u32::MAX.into())),
        (Amqp::F32(0.1), Fire::F32(0.1)),
        (decimal(2, 1234), Fire::F64(12.34)),
        (decimal(0, -7), Fire::F64(-7.0)),
        (Amqp::Timestamp(1_700_000_000), Fire::Uint(1_700_000_000)),
        (Amqp::Timestamp(u64::MAX), Fire::Uint(u64::MAX)),
        (Amqp::LongString(bytes(b"a\xff")), Fire::Bin(b"a\xff")),
    ];
    for (left, right) in cases {
        assert_eq!(to_fire(&amqp(&left)), fire(&right), "{left:?}");
    }
}

#[test]
fn keys() {
    // {1: nil, -2: nil, nil: nil, true: nil, 1.5: nil, h'ff': nil, [1, "a"]: nil, {1: 2}: nil}
    let map = [
        &[0x88, 1, 0xc0, 0xfe, 0xc0, 0xc0, 0xc0, 0xc3, 0xc0][..],
        &[0xca, 0x3f, 0xc0, 0, 0, 0xc0],
        &[0xc4, 1, 0xff, 0xc0],
        &[0x92, 1, 0xa1, b'a', 0xc0],
        &[0x81, 1, 2, 0xc0],
    ]
    .concat();
    let entries = to_amqp(&map);
    let table = Table::new(&entries).unwrap();
    let keys: Vec<_> = table
        .iter()
        .map(|entry| entry.unwrap().key.to_str().unwrap().to_owned())
        .collect();
    let expected = [
        "1",
        "-2",
        "null",
        "true",
        "1.5",
        "/w==",
        r#"[1,"a"]"#,
        r#"{"1":2}"#,
    ];
    assert_eq!(keys, expected);

    // A key that does not fit is left out, and of a repeated one the last is kept.
    let (long, longest) = ("k".repeat(256), "k".repeat(255));
    let mut map = Vec::new();
    let mut writer = MapWriter::begin(&mut map);
    writer.entry(&long, &Fire::Nil);
    writer.entry("twice", &Fire::Uint(1));
    writer.entry(&longest, &Fire::Nil);
    writer.entry("twice", &Fire::Uint(2));
    writer.finish();
    let mut expected = Vec::new();
    TableWriter::new(&mut expected)
        .value(ShortStr::clip(&longest), &Amqp::Void)
        .value(ShortStr::clip("twice"), &Amqp::I64(2));
    assert_eq!(to_amqp(&map), expected);

    // Of a table the first is kept; a key that is no text becomes base64.
    let mut entries = Vec::new();
    TableWriter::new(&mut entries)
        .value(ShortStr::clip("twice"), &Amqp::I64(1))
        .value(ShortStr::new(b"\xff").unwrap(), &Amqp::Void)
        .value(ShortStr::clip("twice"), &Amqp::I64(2));
    let mut expected = Vec::new();
    let mut writer = MapWriter::begin(&mut expected);
    writer.entry("twice", &Fire::Uint(1));
    writer.entry("/w==", &Fire::Nil);
    writer.finish();
    assert_eq!(to_fire(&entries), expected);
}

#[test]
fn limits_hold_and_leave_nothing() {
    // An array of 100 small numbers takes 102 bytes here and 900 there.
    let mut map = Vec::new();
    let mut writer = MapWriter::begin(&mut map);
    let mut items = ArrayWriter::begin(writer.key("v"));
    for _ in 0..100 {
        items.item(&Fire::Uint(1));
    }
    items.finish();
    writer.finish();
    let raw = RawMap::decode(&map).unwrap();
    let mut out = b"before".to_vec();
    let whole = to_amqp(&map).len();
    for bytes_max in [0, 10, map.len(), whole - 1] {
        let refused = write_amqp_table(&mut out, raw, bytes_max);
        assert_eq!(refused, Err(MapError::TooLarge { bytes_max }));
        assert_eq!(out, b"before");
    }
    write_amqp_table(&mut out, raw, whole).unwrap();

    let entries = to_amqp(&map);
    let table = Table::new(&entries).unwrap();
    out.truncate(6);
    for bytes_max in [0, entries.len() - 1] {
        let refused = write_fire_map(&mut out, table, bytes_max);
        assert_eq!(refused, Err(MapError::TooLarge { bytes_max }));
    }
    // A table that breaks off inside, and one whose second entry has no such type.
    for cut in [entries.len() - 1, 3] {
        let broken = Table::new(&entries[..cut]).unwrap();
        let refused = write_fire_map(&mut out, broken, PLENTY);
        assert!(matches!(refused, Err(MapError::Table(_))), "{refused:?}");
    }
    assert_eq!(out, b"before");
}

/// The deepest that either side reads is carried by the other.
#[test]
fn depth() {
    let mut map = vec![0x81, 0xa1, b'a'];
    map.extend(std::iter::repeat_n(0x91, 63));
    map.push(0xc0);
    let entries = to_amqp(&map);
    assert_eq!(to_fire(&entries), map);
}
