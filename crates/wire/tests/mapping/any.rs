//! Any headers: what has a place on both sides comes back, and nothing panics or passes its limit.

use proptest::prelude::*;
use tanda_wire::amqp::{self, Table};
use tanda_wire::fila::Headers;
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{Props, RawMap, Value};
use tanda_wire::mapping::{
    FireMessage, write_amqp_properties, write_amqp_table, write_fila_headers_of_amqp,
    write_fila_headers_of_fire, write_fire_map, write_fire_props,
};

use crate::PLENTY;

/// A value of a type that both protocols have.
#[derive(Debug, Clone)]
enum Both {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Bin(Vec<u8>),
    Array(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Both {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => Value::Nil.encode(out),
            Self::Bool(value) => Value::Bool(*value).encode(out),
            Self::Int(value) => u64::try_from(*value)
                .map_or(Value::Int(*value), Value::Uint)
                .encode(out),
            Self::Float(value) => Value::F64(*value).encode(out),
            Self::Str(value) => Value::Str(value).encode(out),
            Self::Bin(value) => Value::Bin(value).encode(out),
            Self::Array(items) => {
                let mut array = ArrayWriter::begin(out);
                for item in items {
                    item.write(array.slot());
                }
                array.finish();
            }
            Self::Map(entries) => write_map(out, entries),
        }
    }
}

fn write_map(out: &mut Vec<u8>, entries: &[(String, Both)]) {
    let mut map = MapWriter::begin(out);
    for (key, value) in entries {
        value.write(map.key(key));
    }
    map.finish();
}

fn entries(value: impl Strategy<Value = Both>) -> impl Strategy<Value = Vec<(String, Both)>> {
    proptest::collection::btree_map("[a-zü]{0,20}", value, 0..8)
        .prop_map(|entries| entries.into_iter().collect())
}

fn both() -> impl Strategy<Value = Both> {
    let leaf = prop_oneof![
        Just(Both::Nil),
        any::<bool>().prop_map(Both::Bool),
        any::<i64>().prop_map(Both::Int),
        any::<f64>().prop_map(Both::Float),
        ".{0,20}".prop_map(Both::Str),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Both::Bin),
    ];
    leaf.prop_recursive(4, 20, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Both::Array),
            entries(inner).prop_map(Both::Map),
        ]
    })
}

/// Bytes that are often MessagePack maps, or often tables.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        Just(0),
        1..4_u8,
        proptest::sample::select(&b"StblFAVdDxT"[..]),
        0x80..0x84_u8,
        0x90..0x94_u8,
        0xa0..0xa4_u8,
        0xc0..=0xdf_u8,
        any::<u8>(),
    ];
    proptest::collection::vec(byte, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn shared_types_come_back(entries in entries(both())) {
        let mut map = Vec::new();
        write_map(&mut map, &entries);
        let mut table = Vec::new();
        write_amqp_table(&mut table, RawMap::decode(&map).unwrap(), PLENTY).unwrap();
        let table = Table::new(&table).unwrap();
        prop_assert_eq!(table.validate(), Ok(()));
        let mut back = Vec::new();
        write_fire_map(&mut back, table, PLENTY).unwrap();
        prop_assert_eq!(&back, &map);
        // And from there to AMQP again.
        let mut again = Vec::new();
        write_amqp_table(&mut again, RawMap::decode(&back).unwrap(), PLENTY).unwrap();
        prop_assert_eq!(&again[..], table.as_bytes());
    }

    #[test]
    fn any_map(bytes in likely(), bytes_max in 0..200_usize) {
        let checked = RawMap::decode(&bytes);
        let headers = RawMap::from_checked(&bytes);
        let mut out = Vec::new();
        if write_amqp_table(&mut out, headers, bytes_max).is_ok() {
            prop_assert!(out.len() <= bytes_max);
            prop_assert_eq!(Table::new(&out).unwrap().validate(), Ok(()));
        } else {
            prop_assert!(out.is_empty());
        }
        if let Ok(headers) = checked {
            prop_assert!(write_amqp_table(&mut Vec::new(), headers, PLENTY).is_ok());
        }
        let message = FireMessage { headers, props: Props::from_checked(&bytes), persistent: true };
        out.clear();
        if write_amqp_properties(&mut out, &message, bytes_max).is_ok() {
            prop_assert!(amqp::Properties::decode(&out).is_ok() && out.len() <= bytes_max);
        }
        out.clear();
        if write_fila_headers_of_fire(&mut out, &message, bytes_max).is_ok() {
            let headers = Headers::decode(&out).unwrap();
            // Two lengths of each header, and their count, come on top.
            prop_assert!(out.len() <= bytes_max + 2 + 4 * headers.len());
        }
    }

    #[test]
    fn any_table(bytes in likely(), bytes_max in 0..200_usize) {
        let table = Table::new(&bytes).unwrap();
        let mut out = Vec::new();
        match write_fire_map(&mut out, table, bytes_max) {
            Ok(()) => {
                prop_assert!(out.len() <= bytes_max);
                prop_assert!(RawMap::decode(&out).is_ok());
            }
            Err(_) => prop_assert!(out.is_empty()),
        }
        let whole = write_fire_map(&mut Vec::new(), table, PLENTY);
        prop_assert_eq!(whole.is_ok(), table.validate().is_ok());
        if let Ok(properties) = amqp::Properties::decode(&bytes) {
            out.clear();
            write_fire_props(&mut out, &properties);
            prop_assert!(Props::decode(&out).is_ok());
            out.clear();
            if write_fila_headers_of_amqp(&mut out, &properties, bytes_max).is_ok() {
                prop_assert!(Headers::decode(&out).is_ok());
            }
        }
    }
}
