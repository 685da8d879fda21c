//! Field tables: what is written reads back, what is copied is the same bytes.

use proptest::prelude::*;
use tanda_wire::amqp::{Edit, LongStr, ShortStr, Table, TableWriter, Value};

use crate::json::{Json, hex, unhex};
use crate::model::{encoded, entries, read, read_entries};
use crate::vectors::section;

proptest! {
    #[test]
    fn what_is_written_reads_back(entries in entries()) {
        let bytes = encoded(&entries);
        let table = Table::new(&bytes).unwrap();
        prop_assert_eq!(table.validate(), Ok(()));
        prop_assert_eq!(read_entries(table), entries);
    }

    #[test]
    fn raw_spans_join_to_the_table(entries in entries()) {
        let bytes = encoded(&entries);
        let table = Table::new(&bytes).unwrap();
        let (mut by_entry, mut by_value) = (Vec::new(), Vec::new());
        for entry in table {
            let entry = entry.unwrap();
            TableWriter::new(&mut by_entry).raw_entries(entry.raw);
            TableWriter::new(&mut by_value).raw_value(entry.key, entry.raw_value);
            let mut written = Vec::new();
            entry.value.write(&mut written);
            prop_assert_eq!(written, entry.raw_value);
        }
        prop_assert_eq!(&by_entry, &bytes);
        prop_assert_eq!(&by_value, &bytes);
    }

    #[test]
    fn find_gives_the_first_of_a_key(entries in entries()) {
        let bytes = encoded(&entries);
        let table = Table::new(&bytes).unwrap();
        for key in [&b"a"[..], b"b", b"", b"never"] {
            let want = entries.iter().find(|(other, _)| other == key).map(|(_, value)| value);
            let found = table.find(key).unwrap().map(|value| read(&value));
            prop_assert_eq!(found.as_ref(), want);
        }
    }

    #[test]
    fn copies_leave_out_what_is_named(entries in entries()) {
        let bytes = encoded(&entries);
        let mut out = Vec::new();
        TableWriter::new(&mut out)
            .copy_without(Table::new(&bytes).unwrap(), &[b"a", b"b"])
            .unwrap();
        let mut want = entries;
        want.retain(|(key, _)| key != b"a" && key != b"b");
        prop_assert_eq!(out, encoded(&want));
    }

    #[test]
    fn edits_keep_the_others_as_they_came(entries in entries()) {
        let bytes = encoded(&entries);
        let mut out = Vec::new();
        TableWriter::new(&mut out)
            .copy_edited(Table::new(&bytes).unwrap(), |entry| match entry.key.as_bytes() {
                b"a" => Edit::Remove,
                b"b" => Edit::Replace(Value::I64(5)),
                _ => Edit::Keep,
            })
            .unwrap();
        let mut want = entries;
        want.retain(|(key, _)| key != b"a");
        for (key, value) in &mut want {
            if key == b"b" {
                *value = crate::model::Model::I64(5);
            }
        }
        prop_assert_eq!(out, encoded(&want));
    }
}

#[test]
fn both_spellings_of_64_bits_are_signed_and_are_copied_as_they_came() {
    let bytes = unhex("016c6cffffffffffffffff014c4cffffffffffffffff");
    let table = Table::new(&bytes).unwrap();
    assert_eq!(table.find(b"l"), Ok(Some(Value::I64(-1))));
    assert_eq!(table.find(b"L"), Ok(Some(Value::I64(-1))));
    let mut out = Vec::new();
    TableWriter::new(&mut out).copy_without(table, &[]).unwrap();
    assert_eq!(out, bytes);
}

#[test]
fn any_octet_but_0_is_true() {
    let table = Table::new(&[1, b'a', b't', 0, 1, b'b', b't', 0xFF]).unwrap();
    assert_eq!(table.find(b"a"), Ok(Some(Value::Bool(false))));
    assert_eq!(table.find(b"b"), Ok(Some(Value::Bool(true))));
}

#[test]
fn every_tag_is_copied_unchanged() {
    for entry in section("tables") {
        let table = Table::from_json(&entry["entries"]);
        let mut out = Vec::new();
        let mut writer = TableWriter::new(&mut out);
        writer.value(ShortStr::clip("first"), &Value::Void);
        writer.copy_without(table, &[b"none"]).unwrap();
        let want = format!("0566697273745{}{}", '6', hex(table.as_bytes()));
        assert_eq!(hex(&out), want, "{}", entry["name"]);
    }
}

#[test]
fn a_broken_entry_ends_the_table_and_the_copy() {
    let bytes = unhex(
        "0161490000000101625a0163490000000 2"
            .replace(' ', "")
            .as_str(),
    );
    let table = Table::new(&bytes).unwrap();
    let mut iter = table.iter();
    assert!(iter.next().unwrap().is_ok());
    assert_eq!(iter.next().unwrap().unwrap_err().offset, 9);
    assert!(iter.next().is_none());
    assert_eq!(table.find(b"a"), Ok(Some(Value::I32(1))));
    assert_eq!(table.find(b"c").unwrap_err().offset, 9);
    let mut out = Vec::new();
    assert!(TableWriter::new(&mut out).copy_without(table, &[]).is_err());
    assert_eq!(out, bytes[..7]);
}

#[test]
fn an_entry_of_x_death_is_counted_up_in_place() {
    let mut old = Vec::new();
    let (count, queue) = (ShortStr::clip("count"), ShortStr::clip("queue"));
    TableWriter::new(&mut old).array(ShortStr::clip("x-death"), |deaths| {
        for (name, number) in [("q2", 3), ("q1", 1)] {
            deaths.table(|death| {
                death.value(count, &Value::I64(number));
                death.value(queue, &Value::text(name));
            });
        }
    });
    let table = Table::new(&old).unwrap();
    let Ok(Some(Value::Array(deaths))) = table.find(b"x-death") else {
        panic!("no array");
    };
    let mut new = Vec::new();
    TableWriter::new(&mut new).array(ShortStr::clip("x-death"), |out| {
        for death in deaths {
            let death = death.unwrap();
            let Value::Table(fields) = death.value else {
                panic!("no table");
            };
            if fields.find(b"queue") == Ok(Some(Value::text("q1"))) {
                out.table(|inner| {
                    let counted = inner.copy_edited(fields, |field| match field.key.as_bytes() {
                        b"count" => Edit::Replace(Value::I64(2)),
                        _ => Edit::Keep,
                    });
                    assert_eq!(counted, Ok(()));
                });
            } else {
                out.raw(death.raw);
            }
        }
    });
    let want = hex(&old).replacen("6c0000000000000001", "6c0000000000000002", 1);
    assert_eq!(hex(&new), want);
    assert_ne!(old, new);
}

#[test]
fn values_say_their_type() {
    let names: Vec<&str> = section("tables")
        .iter()
        .filter(|entry| entry["name"] == "every tag")
        .flat_map(|entry| {
            Table::from_json(&entry["entries"])
                .iter()
                .collect::<Vec<_>>()
        })
        .map(|entry| entry.unwrap().value.type_name())
        .collect();
    let want = [
        "bool",
        "bool",
        "byte",
        "unsignedbyte",
        "short",
        "unsignedshort",
        "signedint",
        "unsignedint",
        "long",
        "long",
        "float",
        "double",
        "decimal",
        "longstr",
        "binary",
        "array",
        "timestamp",
        "table",
        "void",
        "longstr",
    ];
    assert_eq!(names, want);
    assert_eq!(Value::U32(u32::MAX).as_i64(), Some(4_294_967_295));
    assert_eq!(Value::I8(-1).as_i64(), Some(-1));
    assert_eq!(Value::text("5").as_i64(), None);
    assert_eq!(Value::Timestamp(5).as_i64(), None);
    assert_eq!(Value::text("5").as_long_string(), Some(&b"5"[..]));
    let bytes = Value::Bytes(LongStr::clip("5"));
    assert_eq!(bytes.as_long_string(), None);
}
