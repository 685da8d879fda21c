use tanda_engine::Lsn;

use super::*;

const HEADER: StreamHeader = StreamHeader {
    kind: StreamKind::Backup,
    sequence: 3,
    taken_at_ms: 1_700_000_000_000,
    log_id: 7,
    at: Lsn(4096),
};

fn records() -> Vec<Vec<u8>> {
    let large = vec![3; CHUNK_BYTES + 10];
    vec![b"one".to_vec(), Vec::new(), large, b"four".to_vec()]
}

fn stream(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = StreamWriter::new(HEADER, &mut out);
    for record in records {
        writer.push(record, &mut out);
    }
    writer.finish(&mut out);
    out
}

fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Result<(), StreamError>) {
    let mut found = Vec::new();
    let mut reader = match StreamReader::open(bytes) {
        Ok(reader) => reader,
        Err(error) => return (found, Err(error)),
    };
    assert_eq!(reader.header(), HEADER);
    loop {
        match reader.next_record() {
            Ok(Some(record)) => found.push(record.to_vec()),
            Ok(None) => return (found, Ok(())),
            Err(error) => return (found, Err(error)),
        }
    }
}

#[test]
fn what_was_written_is_read() {
    for count in 0..=records().len() {
        let records = &records()[..count];
        let (found, ended) = read(&stream(records));
        ended.unwrap();
        assert_eq!(found, records);
    }
}

#[test]
fn its_first_bytes_are_as_documented() {
    let bytes = stream(&[b"ab".to_vec()]);
    assert_eq!(&bytes[..12], b"TANDARS\x02\0\x01\0\0");
    assert_eq!(bytes.len(), HEADER_BYTES + 8 + 4 + 2 + 8 + 8);
}

#[test]
fn a_stream_cut_anywhere_says_so() {
    let small: Vec<_> = records().into_iter().filter(|r| r.len() < 10).collect();
    let whole = stream(&small);
    for len in 0..whole.len() {
        let (found, ended) = read(&whole[..len]);
        assert!(found.len() <= small.len());
        match ended {
            Err(StreamError::NotAStream) => assert_eq!(len, 0),
            Err(StreamError::CutOff { at }) => assert!(at <= len as u64),
            other => panic!("cut at {len}: {other:?}"),
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_seen() {
    let small: Vec<_> = records().into_iter().filter(|r| r.len() < 10).collect();
    let whole = stream(&small);
    for place in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[place / 8] ^= 1 << (place % 8);
        assert!(read_quietly(&bytes).is_err(), "bit {place}");
    }
}

#[test]
fn what_follows_the_end_is_no_part_of_it() {
    let mut bytes = stream(&records());
    bytes.push(0);
    assert!(matches!(read(&bytes).1, Err(StreamError::Trailing { .. })));
}

#[test]
fn chunks_of_two_streams_do_not_mix() {
    let first = stream(&[b"aaaa".to_vec()]);
    let mut second = Vec::new();
    let other = StreamHeader {
        log_id: 8,
        ..HEADER
    };
    let mut writer = StreamWriter::new(other, &mut second);
    writer.push(b"bbbb", &mut second);
    writer.finish(&mut second);
    let mut mixed = first[..HEADER_BYTES].to_vec();
    mixed.extend_from_slice(&second[HEADER_BYTES..]);
    assert!(matches!(read(&mixed).1, Err(StreamError::Damaged { .. })));
}

#[test]
fn a_snapshot_may_have_old_bytes_behind_its_end() {
    let header = StreamHeader {
        kind: StreamKind::Snapshot,
        ..HEADER
    };
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::new(header, &mut bytes);
    writer.push(b"one", &mut bytes);
    writer.finish(&mut bytes);
    bytes.extend_from_slice(&stream(&records()));
    read_quietly(&bytes).unwrap();
}

fn read_quietly(bytes: &[u8]) -> Result<(), StreamError> {
    let mut reader = StreamReader::open(bytes)?;
    while reader.next_record()?.is_some() {}
    Ok(())
}
