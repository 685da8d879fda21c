//! Properties: every combination of flags, and edits that leave the others as they came.

use proptest::collection::vec;
use proptest::prelude::*;
use tanda_wire::amqp::{Properties, Property, PropertyKind, PropertyValues, ShortStr, Table};

use crate::json::unhex;
use crate::model::{encoded, entries};

/// One value of every kind.
#[derive(Debug, Clone)]
struct Parts {
    texts: Vec<Vec<u8>>,
    headers: Vec<u8>,
    octets: (u8, u8),
    timestamp: u64,
}

impl Parts {
    fn property(&self, kind: PropertyKind) -> Property<'_> {
        let text = |at: usize| ShortStr::new(&self.texts[at]).unwrap();
        match kind {
            PropertyKind::ContentType => Property::ContentType(text(0)),
            PropertyKind::ContentEncoding => Property::ContentEncoding(text(1)),
            PropertyKind::Headers => Property::Headers(Table::new(&self.headers).unwrap()),
            PropertyKind::DeliveryMode => Property::DeliveryMode(self.octets.0),
            PropertyKind::Priority => Property::Priority(self.octets.1),
            PropertyKind::CorrelationId => Property::CorrelationId(text(2)),
            PropertyKind::ReplyTo => Property::ReplyTo(text(3)),
            PropertyKind::Expiration => Property::Expiration(text(4)),
            PropertyKind::MessageId => Property::MessageId(text(5)),
            PropertyKind::Timestamp => Property::Timestamp(self.timestamp),
            PropertyKind::MessageType => Property::MessageType(text(6)),
            PropertyKind::UserId => Property::UserId(text(7)),
            PropertyKind::AppId => Property::AppId(text(8)),
            PropertyKind::ClusterId => Property::ClusterId(text(9)),
        }
    }

    /// The values of the kinds whose flags are set.
    fn values(&self, flags: u16) -> PropertyValues<'_> {
        let mut values = PropertyValues::default();
        for kind in PropertyKind::ALL {
            if flags & kind.flag() != 0 {
                put(&mut values, self.property(*kind));
            }
        }
        values
    }
}

fn put<'a>(values: &mut PropertyValues<'a>, property: Property<'a>) {
    match property {
        Property::ContentType(value) => values.content_type = Some(value),
        Property::ContentEncoding(value) => values.content_encoding = Some(value),
        Property::Headers(value) => values.headers = Some(value),
        Property::DeliveryMode(value) => values.delivery_mode = Some(value),
        Property::Priority(value) => values.priority = Some(value),
        Property::CorrelationId(value) => values.correlation_id = Some(value),
        Property::ReplyTo(value) => values.reply_to = Some(value),
        Property::Expiration(value) => values.expiration = Some(value),
        Property::MessageId(value) => values.message_id = Some(value),
        Property::Timestamp(value) => values.timestamp = Some(value),
        Property::MessageType(value) => values.message_type = Some(value),
        Property::UserId(value) => values.user_id = Some(value),
        Property::AppId(value) => values.app_id = Some(value),
        Property::ClusterId(value) => values.cluster_id = Some(value),
    }
}

fn parts() -> impl Strategy<Value = Parts> {
    let texts = vec(vec(any::<u8>(), 0..=255), 10);
    (texts, entries(), any::<(u8, u8)>(), any::<u64>()).prop_map(
        |(texts, entries, octets, timestamp)| Parts {
            texts,
            headers: encoded(&entries),
            octets,
            timestamp,
        },
    )
}

fn raw(values: &PropertyValues<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    values.encode(&mut raw);
    assert_eq!(raw.len(), values.encoded_size());
    raw
}

proptest! {
    #[test]
    fn what_is_written_reads_back(parts in parts(), flags in any::<u16>()) {
        let values = parts.values(flags);
        let raw = raw(&values);
        let properties = Properties::decode(&raw).unwrap();
        prop_assert_eq!(properties.values(), values);
        prop_assert_eq!(properties.raw(), &raw);
        prop_assert_eq!(properties.is_empty(), flags & 0xFFFC == 0);
        for kind in PropertyKind::ALL {
            prop_assert_eq!(properties.has(*kind), flags & kind.flag() != 0);
        }
    }

    #[test]
    fn one_is_set_and_the_others_stay(
        old in parts(), new in parts(), flags in any::<u16>(), at in 0..14_usize,
    ) {
        let mut values = old.values(flags);
        let old_raw = raw(&values);
        let property = new.property(PropertyKind::ALL[at]);
        let mut out = b"before".to_vec();
        Properties::decode(&old_raw).unwrap().with(&mut out, property);
        put(&mut values, property);
        prop_assert_eq!(&out[6..], raw(&values));
    }

    #[test]
    fn one_is_removed_and_the_others_stay(
        parts in parts(), flags in any::<u16>(), at in 0..14_usize,
    ) {
        let kind = PropertyKind::ALL[at];
        let mut out = Vec::new();
        Properties::decode(&raw(&parts.values(flags))).unwrap().without(&mut out, kind);
        prop_assert_eq!(out, raw(&parts.values(flags & !kind.flag())));
    }

    #[test]
    fn several_are_edited_at_once(
        old in parts(), new in parts(), flags in any::<(u16, u16, u16)>(),
    ) {
        let (before, set, remove) = flags;
        let kinds = |flags: u16| {
            PropertyKind::ALL.iter().copied().filter(move |kind| flags & kind.flag() != 0)
        };
        let set_list: Vec<Property<'_>> = kinds(set).map(|kind| new.property(kind)).collect();
        let remove_list: Vec<PropertyKind> = kinds(remove).collect();
        let mut out = Vec::new();
        let old_raw = raw(&old.values(before));
        let properties = Properties::decode(&old_raw).unwrap();
        properties.edited(&mut out, &set_list, &remove_list);
        let mut want = old.values(before & !remove);
        for property in set_list {
            put(&mut want, property);
        }
        prop_assert_eq!(out, raw(&want));
    }
}

#[test]
fn the_last_of_a_kind_counts() {
    let mut out = Vec::new();
    let set = [Property::DeliveryMode(1), Property::DeliveryMode(2)];
    Properties::EMPTY.edited(&mut out, &set, &[PropertyKind::DeliveryMode]);
    assert_eq!(out, [0x10, 0, 2]);
}

#[test]
fn flags_that_name_nothing_are_kept_raw_and_lost_in_edits() {
    let bytes = unhex("1003000002");
    let properties = Properties::decode(&bytes).unwrap();
    assert_eq!(properties.raw(), bytes);
    assert_eq!(properties.delivery_mode(), Some(2));
    let mut out = Vec::new();
    properties.with(&mut out, Property::Priority(5));
    assert_eq!(out, [0x18, 0, 2, 5]);
}

#[test]
fn kinds_are_in_the_order_of_their_flags() {
    let flags: Vec<u16> = PropertyKind::ALL.iter().map(|kind| kind.flag()).collect();
    let want: Vec<u16> = (2..=15).rev().map(|bit| 1 << bit).collect();
    assert_eq!(flags, want);
    assert_eq!(PropertyKind::ReplyTo.name(), "reply_to");
    assert_eq!(Properties::default(), Properties::EMPTY);
    assert_eq!(Properties::EMPTY.raw(), [0, 0]);
    assert_eq!(Properties::decode(&[0, 0]), Ok(Properties::EMPTY));
}
