//! `tanda backup` of a broker that goes on, and `tanda restore`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::broker::{Broker, Ran, run, tanda};

/// A directory that is removed when dropped.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> Self {
        let name = format!("tanda-backup-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn restore(file: &str, data_dir: &Path) -> Ran {
    let mut command = tanda();
    command.args(["restore", file, "--data-dir"]).arg(data_dir);
    run(command, b"")
}

fn lines(count: u32) -> String {
    (0..count).map(|n| format!("message {n}\n")).collect()
}

#[test]
fn a_restored_broker_holds_what_was_there_and_nothing_that_left() {
    let dir = TempDir::new("whole");
    let broker = Broker::start();
    broker.ok("queue create jobs");
    broker.ok("config set region eu");
    broker.ok_with("send jobs", &lines(3000));
    let taken = broker.ok("consume jobs --ack --count 10 --raw");
    assert_eq!(taken, lines(10));
    let file = dir.file("one.tanda");
    let said = broker.ok(&format!("backup {file}"));
    assert!(said.contains(&file), "{said}");
    // What comes later is not in it, and the broker is as it was.
    broker.ok_with("send jobs", "later\n");
    assert!(!Path::new(&format!("{file}.partial")).exists());

    let data_dir = dir.0.join("restored");
    let ran = restore(&file, &data_dir);
    assert_eq!(ran.code, 0, "{ran:?}");
    let restored = Broker::start_in(data_dir);
    assert_eq!(restored.ok("config get region").trim(), "eu");
    let all = restored.ok("consume jobs --ack --count 2990 --raw");
    assert_eq!(taken + &all, lines(3000));
    let left = restored.json("queue inspect jobs");
    assert_eq!(left["counts"]["depth"], 0, "{left}");
    let still = broker.json("queue inspect jobs");
    assert_eq!(still["counts"]["depth"], 2991, "{still}");
}

#[test]
fn nothing_is_overwritten_and_no_part_passes_for_a_backup() {
    let dir = TempDir::new("refused");
    let broker = Broker::start();
    broker.ok("queue create jobs");
    broker.ok_with("send jobs", &lines(100));
    let file = dir.file("one.tanda");
    broker.ok(&format!("backup {file}"));
    let again = broker.run(&format!("backup {file}"));
    assert_eq!(again.code, 2, "{again:?}");

    let full = dir.0.join("full");
    fs::create_dir_all(&full).unwrap();
    fs::write(full.join("mine"), "x").unwrap();
    let ran = restore(&file, &full);
    assert_eq!(
        (ran.code, ran.err.contains("not empty")),
        (1, true),
        "{ran:?}"
    );

    let whole = fs::read(&file).unwrap();
    for len in [0, 10, whole.len() / 2, whole.len() - 1] {
        let cut = dir.file("cut.tanda");
        fs::write(&cut, &whole[..len]).unwrap();
        let target = dir.0.join("from-cut");
        let ran = restore(&cut, &target);
        assert_eq!(ran.code, 1, "{len}: {ran:?}");
        assert!(!target.exists() && !dir.0.join("from-cut.restoring").exists());
    }
    let missing = restore(&dir.file("none"), &dir.0.join("new"));
    assert_eq!(missing.code, 1, "{missing:?}");
}
