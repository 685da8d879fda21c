//! The fixtures as files.
#![expect(
    clippy::disallowed_methods,
    reason = "fixtures are real files; the node sees them through a memory disk"
)]

use std::fs;
use std::path::{Path, PathBuf};

use tanda_wal::mem_disk::MemDisk;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// A copy in memory of the log in the data directory `name`.
pub(crate) fn load(name: &str) -> MemDisk {
    let disk = MemDisk::new(1);
    for entry in fs::read_dir(path(name).join("shard-0")).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        disk.set_content(&file, &fs::read(entry.path()).unwrap());
    }
    assert!(!disk.names().is_empty());
    disk
}

/// Writes a data directory and the text of what it holds.
pub(crate) fn save(name: &str, log_id: u128, disk: &MemDisk, holds: &str) {
    let shard = path(name).join("shard-0");
    fs::create_dir_all(&shard).unwrap();
    let identity = format!("tanda data directory, version 1\nlog {log_id:032x}\n");
    fs::write(path(name).join("identity"), identity).unwrap();
    for file in disk.names() {
        fs::write(shard.join(&file), disk.content(&file).unwrap()).unwrap();
    }
    fs::write(path(&format!("{name}.txt")), holds).unwrap();
}
