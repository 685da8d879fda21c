//! Making the fixtures; kept to show how they were made.

use tanda_wal::mem_disk::MemDisk;

use crate::support::World;
use crate::{DIRECTORIES, LATER, LOG_ID, config, declared, directory, scenes};

/// What was done to the directories of one version.
type Scenes = [(&'static str, fn() -> MemDisk)];

#[test]
#[ignore = "writes the fixtures; run it at the commit that the module head names"]
fn generate_1() {
    generate(&[
        ("v1/queues", scenes::queues),
        ("v1/truncated", scenes::truncated),
        ("v1/torn", scenes::torn),
    ]);
}

#[test]
#[ignore = "writes the fixtures; run it at the commit that the module head names"]
fn generate_2() {
    generate(&[("v2/declared", declared::scene)]);
}

fn generate(scenes: &Scenes) {
    for (name, scene) in scenes {
        let (_, describe) = DIRECTORIES.iter().find(|(it, _)| it == name).unwrap();
        let disk = scene();
        let copy = MemDisk::new(1);
        for file in disk.names() {
            copy.set_content(&file, &disk.content(&file).unwrap());
        }
        let holds = describe(World::reopened(copy, LATER, config()));
        directory::save(name, LOG_ID, &disk, &holds);
    }
}
