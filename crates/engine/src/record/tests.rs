use super::*;

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
    };
    let start = add_stored(&mut out, &fields, StoredContent::Here(b"content"));
    assert_eq!(&out[start..], b"content");
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
        let first = reader
            .stored_message()
            .map(|m| (m.key.len(), m.weight, m.due, m.content))?;
        let second = reader.stored_message().map(|m| (m.len, m.content))?;
        Ok::<_, crate::ReplayError>((header, head, first, second))
    };
    let header = Header {
        kind: Kind::Stored,
        queue: QueueId(3),
        time: Millis(9),
    };
    let first = (6, 5, Some(Millis(77)), Ok(start));
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
    assert_eq!((0..=255).filter_map(Kind::from_byte).count(), 13);
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
