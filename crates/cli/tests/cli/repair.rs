//! `tanda repair` on directories of the built binary and of an earlier build.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::broker::{Broker, Ran, run, tanda};

/// A directory that is removed when dropped.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> Self {
        let name = format!("tanda-repair-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn repair(args: &[&str], data_dir: &Path) -> Ran {
    let mut command = tanda();
    command.arg("repair").args(args);
    command.arg("--data-dir").arg(data_dir);
    run(command, b"")
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// All files with their contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(contents(&entry.path()));
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

fn flip(file: &Path, offset: usize) {
    let mut content = fs::read(file).unwrap();
    *content.get_mut(offset).unwrap() ^= 1;
    fs::write(file, content).unwrap();
}

#[test]
fn an_old_directory_is_shown_verified_and_salvaged_and_never_changed() {
    let dir = TempDir::new("old");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/fixtures/v1/queues");
    let data = dir.0.join("data");
    copy_dir(&fixture, &data);

    let before = contents(&data);
    let shown = repair(&["show", "--json"], &data);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!(json(&shown)["segment_bytes"], 16_384);
    assert_eq!(json(&shown)["records"]["Stored"]["count"], 69);
    let verified = repair(&["verify"], &data);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(
        verified.out.starts_with("sound: 48 messages"),
        "{verified:?}"
    );
    assert_eq!(contents(&data), before);

    let damaged = data.join("shard-0/000003.seg");
    flip(&damaged, 8_270);
    let before = contents(&data);
    let verified = repair(&["verify", "--json"], &data);
    assert_eq!(verified.code, 1, "{verified:?}");
    let found = json(&verified);
    assert_eq!(found["faults"][0]["file"], "000003.seg");
    assert_eq!(found["faults"][0]["offset"], 8_192);
    assert_eq!(found["messages"], 46);

    let new = dir.0.join("new");
    let to = new.to_str().unwrap();
    let salvaged = repair(&["salvage", "--to", to], &data);
    assert_eq!(salvaged.code, 0, "{salvaged:?}");
    assert!(salvaged.out.starts_with("46 messages"), "{salvaged:?}");
    assert!(salvaged.out.contains("000003.seg at byte 8192"));
    assert_eq!(repair(&["verify"], &new).code, 0);
    // What was made is not written over.
    let again = repair(&["salvage", "--to", to], &data);
    assert_eq!(again.code, 1, "{again:?}");
    assert_eq!(contents(&data), before, "the damaged directory was changed");
}

#[test]
fn what_a_damaged_broker_still_holds_is_served_from_the_new_directory() {
    let dir = TempDir::new("served");
    let broker = Broker::start();
    broker.ok("queue create q");
    for payload in ["one", "two", "three"] {
        broker.ok(&format!("send q {payload}"));
    }
    let used = repair(&["verify"], broker.data_dir());
    assert_eq!(used.code, 1);
    assert!(used.err.contains("a broker uses"), "{used:?}");
    let data = dir.0.join("data");
    copy_dir(broker.data_dir(), &data);
    drop(broker);

    // The third batch, after those of the user guest and of the queue: the first message.
    flip(&data.join("shard-0/000001.seg"), 12_288 + 80);
    let mut command = tanda();
    command.args([
        "serve",
        "--fila",
        "127.0.0.1:0",
        "--amqp",
        "127.0.0.1:0",
        "--firemq",
        "127.0.0.1:0",
        "--amaquet",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
    ]);
    command.arg("--data-dir").arg(&data);
    let refused = run(command, b"");
    assert_eq!(refused.code, 1, "{refused:?}");
    for part in ["000001.seg", "byte 12288", "tanda repair"] {
        assert!(refused.err.contains(part), "{part}: {refused:?}");
    }

    let new = dir.0.join("new");
    let salvaged = repair(&["salvage", "--to", new.to_str().unwrap()], &data);
    assert_eq!(salvaged.code, 0, "{salvaged:?}");
    assert!(salvaged.out.starts_with("2 messages"), "{salvaged:?}");
    let broker = Broker::start_in(new);
    let got = broker.ok("consume q --ack --count 2");
    assert!(got.contains("two") && got.contains("three"), "{got}");
}

#[test]
fn a_directory_that_is_none_is_told() {
    let dir = TempDir::new("none");
    for command in ["show", "verify"] {
        let ran = repair(&[command], &dir.0.join("nothing"));
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("nothing"), "{ran:?}");
    }
    assert!(!dir.0.join("nothing").exists());
}
