//! Owned values for generated tests, and how they are written.

use proptest::collection::vec;
use proptest::prelude::*;
use tanda_wire::amqp::table::{Entry, Item};
use tanda_wire::amqp::{Array, ArrayWriter, LongStr, ShortStr, Table, TableWriter, Value};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Model {
    Bool(bool),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    F32(u32),
    F64(u64),
    Decimal(u8, i32),
    LongString(Vec<u8>),
    Bytes(Vec<u8>),
    Timestamp(u64),
    Void,
    Array(Vec<Self>),
    Table(Entries),
}

pub(crate) type Entries = Vec<(Vec<u8>, Model)>;

fn leaf() -> impl Strategy<Value = Model> {
    prop_oneof![
        any::<bool>().prop_map(Model::Bool),
        any::<i8>().prop_map(Model::I8),
        any::<u8>().prop_map(Model::U8),
        any::<i16>().prop_map(Model::I16),
        any::<u16>().prop_map(Model::U16),
        any::<i32>().prop_map(Model::I32),
        any::<u32>().prop_map(Model::U32),
        any::<i64>().prop_map(Model::I64),
        any::<u32>().prop_map(Model::F32),
        any::<u64>().prop_map(Model::F64),
        any::<(u8, i32)>().prop_map(|(scale, value)| Model::Decimal(scale, value)),
        vec(any::<u8>(), 0..20).prop_map(Model::LongString),
        vec(any::<u8>(), 0..20).prop_map(Model::Bytes),
        any::<u64>().prop_map(Model::Timestamp),
        Just(Model::Void),
    ]
}

/// Keys are short, so that some repeat.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => vec(b'a'..=b'c', 0..3),
        1 => vec(any::<u8>(), 0..=255),
    ]
}

fn value() -> impl Strategy<Value = Model> {
    leaf().prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Model::Array),
            vec((key(), inner), 0..6).prop_map(Model::Table),
        ]
    })
}

pub(crate) fn entries() -> impl Strategy<Value = Entries> {
    vec((key(), value()), 0..8)
}

fn plain(model: &Model) -> Value<'_> {
    match model {
        Model::Bool(value) => Value::Bool(*value),
        Model::I8(value) => Value::I8(*value),
        Model::U8(value) => Value::U8(*value),
        Model::I16(value) => Value::I16(*value),
        Model::U16(value) => Value::U16(*value),
        Model::I32(value) => Value::I32(*value),
        Model::U32(value) => Value::U32(*value),
        Model::I64(value) => Value::I64(*value),
        Model::F32(bits) => Value::F32(f32::from_bits(*bits)),
        Model::F64(bits) => Value::F64(f64::from_bits(*bits)),
        Model::Decimal(scale, value) => Value::Decimal {
            scale: *scale,
            value: *value,
        },
        Model::LongString(bytes) => Value::LongString(LongStr::new(bytes).unwrap()),
        Model::Bytes(bytes) => Value::Bytes(LongStr::new(bytes).unwrap()),
        Model::Timestamp(value) => Value::Timestamp(*value),
        Model::Void => Value::Void,
        Model::Array(_) | Model::Table(_) => unreachable!("written by closures"),
    }
}

pub(crate) fn write_entries(writer: &mut TableWriter<'_>, entries: &Entries) {
    for (key, value) in entries {
        let key = ShortStr::new(key).unwrap();
        if let Model::Array(items) = value {
            writer.array(key, |inner| write_items(inner, items));
        } else if let Model::Table(entries) = value {
            writer.table(key, |inner| write_entries(inner, entries));
        } else {
            writer.value(key, &plain(value));
        }
    }
}

fn write_items(writer: &mut ArrayWriter<'_>, items: &[Model]) {
    for item in items {
        if let Model::Array(items) = item {
            writer.array(|inner| write_items(inner, items));
        } else if let Model::Table(entries) = item {
            writer.table(|inner| write_entries(inner, entries));
        } else {
            writer.value(&plain(item));
        }
    }
}

pub(crate) fn encoded(entries: &Entries) -> Vec<u8> {
    let mut out = Vec::new();
    write_entries(&mut TableWriter::new(&mut out), entries);
    out
}

pub(crate) fn read_entries(table: Table<'_>) -> Entries {
    let entry = |Entry { key, value, .. }: Entry<'_>| (key.as_bytes().to_vec(), read(&value));
    table.iter().map(|found| entry(found.unwrap())).collect()
}

fn read_items(array: Array<'_>) -> Vec<Model> {
    let item = |Item { value, .. }: Item<'_>| read(&value);
    array.iter().map(|found| item(found.unwrap())).collect()
}

pub(crate) fn read(value: &Value<'_>) -> Model {
    match value {
        Value::Bool(value) => Model::Bool(*value),
        Value::I8(value) => Model::I8(*value),
        Value::U8(value) => Model::U8(*value),
        Value::I16(value) => Model::I16(*value),
        Value::U16(value) => Model::U16(*value),
        Value::I32(value) => Model::I32(*value),
        Value::U32(value) => Model::U32(*value),
        Value::I64(value) => Model::I64(*value),
        Value::F32(value) => Model::F32(value.to_bits()),
        Value::F64(value) => Model::F64(value.to_bits()),
        Value::Decimal { scale, value } => Model::Decimal(*scale, *value),
        Value::LongString(bytes) => Model::LongString(bytes.as_bytes().to_vec()),
        Value::Bytes(bytes) => Model::Bytes(bytes.as_bytes().to_vec()),
        Value::Timestamp(value) => Model::Timestamp(*value),
        Value::Void => Model::Void,
        Value::Array(array) => Model::Array(read_items(*array)),
        Value::Table(table) => Model::Table(read_entries(*table)),
    }
}
