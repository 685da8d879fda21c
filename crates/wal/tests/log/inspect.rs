//! Damaged directories: refused with file, offset and the command that helps; a survey finds the
//! same place, and everything else in them.

use tanda_wal::OpenError;
use tanda_wal::inspect::{FileState, Survey};
use tanda_wal::mem_disk::MemDisk;

use crate::support::{
    Draw, commit, config, contents, copy_of, idle, live_segments, open, record, tiny,
};

/// Several segments by two runs, with a marker at the end.
fn written() -> (MemDisk, Vec<Vec<u8>>) {
    let mut disk = MemDisk::new(1);
    let mut written = Vec::new();
    for _ in 0..2 {
        let (mut log, _) = open(&disk, &tiny()).unwrap();
        for _ in 0..8 {
            written.push(record(written.len(), 30));
            commit(&mut log, written.last().unwrap());
        }
        idle(&mut log).unwrap();
        drop(log);
        disk = disk.kill();
    }
    (disk, written)
}

fn survey(disk: &MemDisk) -> Survey<MemDisk> {
    Survey::of(disk, Some(tiny().log_id)).unwrap()
}

fn replayed(survey: &Survey<MemDisk>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    survey.replay(false, &mut |at, record| {
        let len = u32::try_from(record.len()).unwrap();
        assert_eq!(survey.reader().read(at, len), Some(record));
        found.push(record.to_vec());
    });
    found
}

fn changed(disk: &MemDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> MemDisk {
    let copy = copy_of(disk);
    let mut content = copy.content(name).unwrap();
    change(&mut content);
    copy.set_content(name, &content);
    copy
}

fn refusal(disk: &MemDisk) -> OpenError {
    open(&copy_of(disk), &tiny()).map(drop).unwrap_err()
}

#[test]
fn a_sound_log_has_no_faults() {
    let (disk, written) = written();
    let found = survey(&disk);
    assert_eq!(found.faults(), []);
    assert_eq!(replayed(&found), written);
    assert_eq!(found.segment_bytes(), tiny().segment_bytes);
    // Without the identity, the files say whose they are.
    assert_eq!(Survey::of(&disk, None).unwrap().log_id(), tiny().log_id);
    let (_, records) = open(&disk, &tiny()).unwrap();
    assert_eq!(contents(&records), written);
}

#[test]
fn a_flipped_bit_is_found_where_the_log_finds_it() {
    let (disk, written) = written();
    let live = live_segments(&disk);
    for (_, name) in &live[..live.len() - 1] {
        for offset in [20, 4096 + 10, 4096 + 40, 4096 + 70, 8192 + 70] {
            let damaged = changed(&disk, name, |content| content[offset] ^= 8);
            let found = survey(&damaged);
            let OpenError::Corrupt(corruption) = refusal(&damaged) else {
                panic!("{name} {offset}: {}", refusal(&damaged));
            };
            assert!(corruption.to_string().contains("`tanda repair`"));
            assert_eq!(corruption.file, *name);
            let is_there = found.faults().iter().any(|fault| {
                (fault.file.as_str(), fault.offset) == (name.as_str(), corruption.offset)
            });
            assert!(is_there, "{corruption}: {:?}", found.faults());
            // A header says nothing that the batches do not say too.
            let lost = usize::from(offset >= 4096);
            let rest = replayed(&found);
            assert!(rest.len() + lost >= written.len(), "{name} {offset}");
            assert!(rest.iter().all(|record| written.contains(record)));
        }
    }
}

#[test]
fn a_missing_segment_is_named_by_the_one_behind_it() {
    let (disk, _) = written();
    let live = live_segments(&disk);
    for (number, (_, name)) in live.iter().enumerate().take(live.len() - 1) {
        let copy = MemDisk::new(0);
        for other in disk.names().iter().filter(|other| *other != name) {
            copy.set_content(other, &disk.content(other).unwrap());
        }
        let error = refusal(&copy);
        assert!(matches!(error, OpenError::MissingSegment { .. }), "{error}");
        assert!(error.to_string().contains("`tanda repair`"), "{error}");
        let found = survey(&copy);
        assert!(
            found
                .faults()
                .iter()
                .any(|it| it.file == live[number + 1].1)
        );
        assert!(!replayed(&found).is_empty());
    }
}

#[test]
fn a_cut_file_loses_what_was_cut_off() {
    let (disk, written) = written();
    let (_, name) = &live_segments(&disk)[0];
    let damaged = changed(&disk, name, |content| content.truncate(8192 + 50));
    let error = refusal(&damaged);
    assert!(matches!(error, OpenError::Corrupt(_)), "{error}");
    let found = survey(&damaged);
    let fault = &found.faults()[0];
    assert_eq!((fault.file.as_str(), fault.offset), (name.as_str(), 8192));
    let rest = replayed(&found);
    assert_eq!(rest[0], written[0]);
    assert!(rest.len() < written.len() && rest.last() == written.last());
}

#[test]
fn files_of_another_log_and_of_a_newer_build_are_told() {
    let (disk, written) = written();
    let foreign = MemDisk::new(9);
    let other = tanda_wal::Config {
        log_id: 99,
        ..tiny()
    };
    drop(open(&foreign, &other).unwrap());
    let content = foreign.content(&foreign.names()[0]).unwrap();
    let damaged = copy_of(&disk);
    damaged.set_content("000077.seg", &content);
    let error = refusal(&damaged);
    assert!(matches!(error, OpenError::WrongLog { .. }), "{error}");
    let found = survey(&damaged);
    assert_eq!(found.faults()[0].file, "000077.seg");
    assert_eq!(replayed(&found), written);

    let (_, name) = &live_segments(&disk)[1];
    let damaged = changed(&disk, name, |content| content[8] = 2);
    let error = refusal(&damaged);
    assert!(matches!(error, OpenError::UnknownVersion { .. }), "{error}");
    let found = survey(&damaged);
    assert_eq!(found.faults()[0].file, *name);
    assert_eq!(replayed(&found), written);
}

#[test]
fn names_of_slots_mean_nothing_and_other_files_are_none_of_the_logs() {
    let (disk, written) = written();
    let live = live_segments(&disk);
    let swapped = copy_of(&disk);
    swapped.set_content(&live[0].1, &disk.content(&live[2].1).unwrap());
    swapped.set_content(&live[2].1, &disk.content(&live[0].1).unwrap());
    swapped.set_content("notes.txt", b"hello");
    let found = survey(&swapped);
    assert_eq!(found.faults(), []);
    assert_eq!(replayed(&found), written);
    let (_, records) = open(&swapped, &tiny()).unwrap();
    assert_eq!(contents(&records), written);
    // A file over another one is one too many and one too few.
    let doubled = copy_of(&disk);
    doubled.set_content(&live[0].1, &disk.content(&live[1].1).unwrap());
    assert!(!survey(&doubled).faults().is_empty());
    assert!(open(&doubled, &tiny()).is_err());
}

#[test]
fn whatever_the_log_refuses_the_survey_finds_too() {
    let (disk, written) = written();
    let names = disk.names();
    for seed in 0..600 {
        let mut draw = Draw::new(seed);
        let name = &names[draw.size(names.len())];
        let damaged = changed(&disk, name, |content| {
            let at = draw.size(content.len());
            let byte = u8::try_from(draw.below(255)).unwrap() + 1;
            for it in content.iter_mut().skip(at).take(1 + draw.size(6000)) {
                *it ^= byte;
            }
        });
        let found = survey(&damaged);
        let rest = replayed(&found);
        assert!(rest.iter().all(|record| written.contains(record)), "{seed}");
        match open(&copy_of(&damaged), &tiny()) {
            Ok((_, records)) => assert_eq!(contents(&records), rest, "{seed}"),
            Err(error) => assert!(!found.faults().is_empty(), "{seed}: {error}"),
        }
    }
}

#[test]
fn a_large_record_is_surveyed_like_any_other() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let large = record(1, 300_000);
    commit(&mut log, b"before");
    let at = commit(&mut log, &large);
    commit(&mut log, b"after");
    idle(&mut log).unwrap();
    drop(log);
    let found = Survey::of(&disk, Some(config().log_id)).unwrap();
    assert_eq!(found.faults(), []);
    assert_eq!(found.reader().read(at, 300_000), Some(large.as_slice()));
    let is_large = |state: &FileState| state.segment().is_some_and(|it| it.windows > 1);
    assert!(found.files().iter().any(|file| is_large(&file.state)));
}
