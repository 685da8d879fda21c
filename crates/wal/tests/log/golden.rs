//! The bytes of a small log, made by hand after `docs/formats/log.md` (with a separate encoder and
//! CRC32C), so that neither the writer nor the reader can drift from the document.

use tanda_wal::mem_disk::MemDisk;

use crate::support::{config, contents, flush, idle, live_segments, open};

#[test]
fn a_small_log_has_the_documented_bytes() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, &config()).unwrap();
    for record in RECORDS {
        log.append(record).unwrap();
    }
    flush(&mut log).unwrap();
    idle(&mut log).unwrap();
    let (_, name) = live_segments(&disk).pop().unwrap();
    assert_eq!(name, "000001.seg");
    assert_eq!(disk.content(&name).unwrap(), segment());
    assert_eq!(disk.names(), ["000001.seg", "000002.seg", "000003.seg"]);
    for spare in ["000002.seg", "000003.seg"] {
        assert_eq!(disk.content(spare).unwrap(), with_blocks(&[(0, SPARE)]));
    }
}

#[test]
fn the_documented_bytes_are_read() {
    let disk = MemDisk::new(1);
    disk.set_content("000001.seg", &segment());
    let (log, replayed) = open(&disk, &config()).unwrap();
    assert_eq!(contents(&replayed), RECORDS);
    assert_eq!(replayed[0].0.0, 0x11000 + 64 + 4);
    assert_eq!(log.oldest().0, 0x10000);
}

const RECORDS: [&[u8]; 3] = [b"hello", b"", b"world!"];

fn segment() -> Vec<u8> {
    with_blocks(&[(0, HEADER), (4096, FIRST), (8192, MARKER)])
}

/// A file of 64 KiB of zeros with these bytes in it.
fn with_blocks(blocks: &[(usize, &str)]) -> Vec<u8> {
    let mut file = vec![0; 65536];
    for (offset, hex) in blocks {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        for (at, pair) in digits.chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).unwrap();
            file[offset + at] = u8::from_str_radix(pair, 16).unwrap();
        }
    }
    file
}

const HEADER: &str = "
    54 41 4e 44 41 4c 4f 47 01 00 02 00 03 00 00 00
    61 64 6e 61 74 00 00 00 00 00 00 00 00 00 00 00
    01 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00
    01 00 00 00 00 00 00 00 01 00 00 00 10 00 00 00
    00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 f3 8b b1 5e
";

const FIRST: &str = "
    54 42 41 54 01 00 00 00 01 00 00 00 00 00 00 00
    00 10 01 00 00 00 00 00 17 00 00 00 03 00 00 00
    00 10 01 00 00 00 00 00 00 00 01 00 00 00 00 00
    00 00 00 00 00 00 00 00 1c 96 e3 f1 d4 c9 89 36
    05 00 00 00 68 65 6c 6c 6f 00 00 00 00 06 00 00
    00 77 6f 72 6c 64 21
";

const MARKER: &str = "
    54 42 41 54 01 00 00 00 01 00 00 00 00 00 00 00
    00 20 01 00 00 00 00 00 00 00 00 00 00 00 00 00
    00 20 01 00 00 00 00 00 00 00 01 00 00 00 00 00
    00 00 00 00 00 00 00 00 28 37 72 b4 b8 dd e3 f6
";

const SPARE: &str = "
    54 41 4e 44 41 4c 4f 47 01 00 01 00 03 00 00 00
    61 64 6e 61 74 00 00 00 00 00 00 00 00 00 00 00
    01 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 10 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
    00 00 00 00 00 00 00 00 00 00 00 00 77 fc c4 ad
";
