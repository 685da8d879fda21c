//! Making the fixtures; kept to show how they were made.

use tanda_wal::mem_disk::MemDisk;

use crate::report;
use crate::support::World;
use crate::{LATER, LOG_ID, NAMES, config, directory, scenes};

#[test]
#[ignore = "writes the fixtures; run it at the commit that the module head names"]
fn generate() {
    for (name, scene) in NAMES.iter().zip([
        scenes::queues as fn() -> MemDisk,
        scenes::truncated,
        scenes::torn,
    ]) {
        let disk = scene();
        let copy = MemDisk::new(1);
        for file in disk.names() {
            copy.set_content(&file, &disk.content(&file).unwrap());
        }
        let holds = report::of(World::reopened(copy, LATER, config()));
        directory::save(&format!("v1/{name}"), LOG_ID, &disk, &holds);
    }
}
