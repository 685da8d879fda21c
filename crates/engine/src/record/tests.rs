use super::*;
use crate::queue::page_ref::PageRef;
use crate::{PageSlot, SegmentUse};

fn positions_of(list: &[u64]) -> (Vec<u64>, usize) {
    let mut out = Vec::new();
    put_positions(&mut out, list);
    (Reader::new(&out).positions().unwrap(), out.len())
}

#[test]
fn positions_come_back_in_their_order() {
    let lists: [&[u64]; 6] = [
        &[],
        &[7],
        &[1, 2, 3, 4],
        &[9, 8, 7],
        &[5, 6, 1, 2, u64::MAX - 2],
        &[0, 1 << 40, (1 << 40) + 1, 3],
    ];
    for list in lists {
        assert_eq!(positions_of(list).0, list);
    }
}

#[test]
fn a_thousand_acks_in_order_are_one_run() {
    let list: Vec<u64> = (1_000_000..1_001_000).collect();
    assert!(
        positions_of(&list).1 <= 4 + 4 + 2,
        "{} bytes",
        positions_of(&list).1
    );
}

/// What is known of an unclassified message.
fn known() -> UnclassifiedFields<'static> {
    UnclassifiedFields {
        tries: 300,
        timeouts: 2,
        version: u64::MAX - 7,
        dedup: Some(u128::MAX - 3),
        idempotency_key: b"again",
    }
}

#[test]
fn what_scripts_said_comes_back_and_cut_records_are_errors() {
    let failed = FailedTry {
        version: 9,
        timed_out: true,
    };
    let done = ClassifiedFields {
        key: "tenant",
        weight: 7,
        group: Some(1),
        dedup: Some(2),
        attributes: true,
        content: Some((0, b"content")),
    };
    let entries = [
        Classified::Failed(failed),
        Classified::Done(done),
        Classified::Done(ClassifiedFields {
            weight: 1,
            ..ClassifiedFields::default()
        }),
    ];
    let mut out = Vec::new();
    begin_counted(&mut out, Kind::Classified, QueueId(3), Millis(9));
    let offsets = [1, 2, 3].map(|n| {
        let entry = &entries[usize::try_from(n).unwrap() - 1];
        add_classified(&mut out, n, entry)
    });
    finish_counted(&mut out, 3);
    type Read<'a> = (Kind, u32, Option<(usize, &'a [u8])>, String);
    fn read(bytes: &[u8]) -> Result<Read<'_>, crate::ReplayError> {
        let mut reader = Reader::new(bytes);
        let kind = reader.header()?.kind;
        let count = reader.u32()?;
        let entries = [
            reader.classified()?,
            reader.classified()?,
            reader.classified()?,
        ];
        let content = match entries[1].1 {
            Classified::Done(done) => done.content,
            Classified::Failed(_) => None,
        };
        Ok((kind, count, content, format!("{entries:?}")))
    }
    let at = offsets[1].unwrap();
    let mut expected = entries;
    expected[1] = Classified::Done(ClassifiedFields {
        content: Some((at, b"content")),
        ..done
    });
    let expected = [(1, expected[0]), (2, expected[1]), (3, expected[2])];
    let whole = (
        Kind::Classified,
        3,
        Some((at, &b"content"[..])),
        format!("{expected:?}"),
    );
    assert_eq!(read(&out), Ok(whole));
    assert_eq!((offsets[0], offsets[2]), (None, None));
    for cut in 0..out.len() {
        assert!(read(&out[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn records_cut_anywhere_are_errors() {
    let mut out = Vec::new();
    begin_stored(&mut out, QueueId(3), Millis(9));
    let fields = StoredFields {
        key: b"tenant",
        weight: 5,
        due: Some(Millis(77)),
        dedup: Some(1),
        group: Some(2),
        priority: 4,
        unclassified: Some(known()),
        expires: Some(Millis(1_234_567)),
        form: Form::Amqp,
    };
    let here = StoredContent::Here {
        content: b"content",
        attributes: b"attributes",
    };
    let start = add_stored(&mut out, &fields, here);
    assert_eq!(&out[start..], b"contentattributes");
    let elsewhere = StoredContent::Elsewhere {
        at: Lsn(12),
        len: 3,
    };
    add_stored(&mut out, &StoredFields::default(), elsewhere);
    finish_stored(&mut out, 11, MessageId(12), 2);

    let read = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let header = reader.header()?;
        let head = reader.stored_head()?;
        let m = reader.stored_message()?;
        let more = (m.attributes, m.unclassified == Some(known()));
        let first = (m.key.len(), m.weight, m.due, m.content, more);
        let second = reader.stored_message().map(|m| (m.len, m.content))?;
        Ok::<_, crate::ReplayError>((header, head, first, second))
    };
    let header = Header {
        kind: Kind::Stored,
        queue: QueueId(3),
        time: Millis(9),
    };
    let first = (6, 5, Some(Millis(77)), Ok(start), (true, true));
    let whole = (header, (11, MessageId(12), 2), first, (3, Err(Lsn(12))));
    assert_eq!(read(&out), Ok(whole));
    for cut in 0..out.len() {
        assert!(read(&out[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn every_kind_has_its_byte() {
    for byte in 0..=255 {
        if let Some(kind) = Kind::from_byte(byte) {
            assert_eq!(kind as u8, byte);
        }
    }
    assert_eq!((0..=255).filter_map(Kind::from_byte).count(), 28);
}

#[test]
fn lying_position_runs_are_errors() {
    let mut out = Vec::new();
    put_len(&mut out, 2);
    put_varint(&mut out, 2);
    put_varint(&mut out, 3);
    assert!(
        Reader::new(&out).positions().is_err(),
        "a run longer than the count"
    );
    let mut out = Vec::new();
    put_len(&mut out, usize::MAX);
    assert!(
        Reader::new(&out).positions().is_err(),
        "a count without runs"
    );
    let mut out = Vec::new();
    put_len(&mut out, POSITIONS_MAX + 1);
    put_varint(&mut out, 0);
    put_varint(&mut out, POSITIONS_MAX as u64 + 1);
    assert!(
        Reader::new(&out).positions().is_err(),
        "more than a record holds"
    );
}

fn image(n: u64) -> Image<'static> {
    let plain = n == 0;
    Image {
        position: 7 + n,
        id: MessageId(u128::from(n) << 80),
        content: ImageContent::At {
            at: Lsn(1 << 63 | n),
            len: 9,
        },
        key: if plain { "" } else { "tenant" },
        priority: if plain { 0 } else { 3 },
        weight: if plain { 1 } else { 2 },
        key_weight: if plain { 1 } else { 5 },
        deliveries: if plain { 0 } else { u32::MAX },
        failures: if plain { 0 } else { 300 },
        redrives: if plain { 0 } else { 2 },
        due: (!plain).then_some(Millis(50)),
        lease: (!plain).then_some(Millis(u64::MAX)),
        group: (!plain).then_some(u128::MAX - 1),
        dedup: !plain,
        attributes: !plain,
        unclassified: (!plain).then(known),
        expires: (!plain).then_some(Millis(77)),
        form: if plain { Form::Fila } else { Form::Fire },
    }
}

#[test]
fn images_come_back_whole_and_cut_ones_are_errors() {
    let mut out = Vec::new();
    begin_counted(&mut out, Kind::Image, QueueId(3), Millis(9));
    image(0).encode(&mut out);
    image(1).encode(&mut out);
    let start = out.len();
    let here = Image {
        content: ImageContent::Here {
            offset: 0,
            bytes: b"content",
        },
        ..image(0)
    };
    here.encode(&mut out);
    finish_counted(&mut out, 3);
    let offset = out.len() - 7;
    assert!(start < offset);
    let read = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let header = reader.header()?;
        let count = reader.u32()?;
        let (first, second, third) = (reader.image()?, reader.image()?, reader.image()?);
        let first = (first == image(0), second == image(1));
        let ImageContent::Here { offset, bytes } = third.content else {
            return Err(reader.problem("not here"));
        };
        Ok::<_, crate::ReplayError>((header.kind, count, first, offset, bytes == b"content"))
    };
    assert_eq!(read(&out), Ok((Kind::Image, 3, (true, true), offset, true)));
    for cut in 0..out.len() {
        assert!(read(&out[..cut]).is_err(), "cut at {cut}");
    }
    // A field that this build does not know.
    out[30] |= 8;
    assert!(read(&out).is_err());
}

#[test]
fn pages_and_keys_come_back_whole_and_cut_ones_are_errors() {
    let needed = |messages| SegmentUse {
        messages,
        bytes: messages * 100,
    };
    let page = |id| PageRef {
        id,
        slot: PageSlot(3),
        count: 12,
        first: 40,
        last: 90,
        bytes: 1_200,
        segments: [(4, needed(2)), (1 << 37, needed(10))].into(),
        is_odd: false,
    };
    let lane = PagedLane {
        key: "tenant",
        priority: 2,
        weight: 4,
    };
    let mut out = Vec::new();
    encode_pages(
        &mut out,
        (QueueId(3), Millis(9)),
        lane,
        &[&page(8), &page(9)],
    );
    let read = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let header = reader.header()?;
        let (lane, count) = reader.paged_lane()?;
        let lane = (lane.key.to_owned(), lane.priority, lane.weight);
        Ok::<_, crate::ReplayError>((header, lane, count, reader.page()?, reader.page()?))
    };
    let (header, read_lane, count, first, second) = read(&out).unwrap();
    assert_eq!((header.kind, header.queue), (Kind::Pages, QueueId(3)));
    assert_eq!((read_lane, count), (("tenant".to_owned(), 2, 4), 2));
    assert_eq!((first, second), (page(8), page(9)));
    for cut in 0..out.len() {
        assert!(read(&out[..cut]).is_err(), "cut at {cut}");
    }
    let lying = PageRef {
        count: 11,
        ..page(8)
    };
    encode_pages(&mut out, (QueueId(3), Millis(9)), lane, &[&lying, &page(9)]);
    assert!(read(&out).is_err(), "its segments hold more than it");

    encode_page_loaded(&mut out, QueueId(3), Millis(9), 8);
    let mut reader = Reader::new(&out);
    assert_eq!(reader.header().unwrap().kind, Kind::PageLoaded);
    assert_eq!(reader.u64().unwrap(), 8);

    let keys = [None, Some(Millis(5))].map(|left| KeyImage {
        key: 1 << 100,
        id: MessageId(6),
        left,
    });
    begin_counted(&mut out, Kind::Remembered, QueueId(3), Millis(9));
    keys.iter().for_each(|key| key.encode(&mut out));
    finish_counted(&mut out, 2);
    let read = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let header = reader.header()?;
        let count = reader.u32()?;
        let read = [reader.key_image()?, reader.key_image()?];
        Ok::<_, crate::ReplayError>((header.kind, count, read))
    };
    assert_eq!(read(&out), Ok((Kind::Remembered, 2, keys)));
    for cut in 0..out.len() {
        assert!(read(&out[..cut]).is_err(), "cut at {cut}");
    }
}
