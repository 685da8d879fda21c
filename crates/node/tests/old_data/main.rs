//! Data directories that earlier builds wrote: this build opens them and finds everything.
//!
//! Version 2 adds what is declared without a Fila client; it was made by the build of the commit
//! that added it, in the same way.
//!
//! They lie in `crates/node/tests/fixtures`, each with a text of what it holds. The directories of
//! version 1 were made by the build of commit `6a17da3` with `cargo test -p tanda-node --test
//! old_data -- --ignored generate`, run there; they are never made again by a later build, which
//! would write its own format.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "tests stop at the first surprise"
)]

mod declared;
mod directory;
mod generate;
mod report;
mod scenes;
#[expect(
    dead_code,
    reason = "shared with the tests of the node, which use more of it"
)]
#[path = "../node/support.rs"]
mod support;

use std::sync::Arc;

use tanda_engine::Millis;
use tanda_node::{Node, NodeConfig, salvage};
use tanda_wal::mem_disk::MemDisk;

use support::{START, World};

/// The settings that the directories were made with.
fn config() -> NodeConfig {
    NodeConfig {
        log: tanda_wal::Config {
            segment_bytes: 16 << 10,
            chunk_bytes: 8 << 10,
            ..tanda_wal::Config::small(LOG_ID, 0)
        },
        ..NodeConfig::new(LOG_ID)
    }
}

const LOG_ID: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;

/// When the directories are looked at: later than anything in them.
const LATER: Millis = Millis(START.0 + 3_600_000);

/// Tells what a node holds.
type Describe = fn(World) -> String;

/// A directory, and what of it is described.
const DIRECTORIES: [(&str, Describe); 4] = [
    ("v1/queues", report::of),
    ("v1/truncated", report::of),
    ("v1/torn", report::of),
    ("v2/declared", declared::describe),
];

#[test]
fn old_directories_hold_what_they_held() {
    for (name, describe) in DIRECTORIES {
        let disk = directory::load(name);
        let found = describe(World::reopened(disk, LATER, config()));
        let expected = directory::text(&format!("{name}.txt"));
        assert_eq!(found, expected, "in {name}");
    }
}

#[test]
fn an_old_directory_survives_being_opened_again_and_again() {
    for (name, describe) in DIRECTORIES {
        let mut disk = directory::load(name);
        for round in 0..4 {
            let world = World::reopened(disk, LATER, config());
            drop(world.node);
            disk = if round % 2 == 0 {
                world.disk.crash()
            } else {
                world.disk.kill()
            };
        }
        let found = describe(World::reopened(disk, LATER, config()));
        let expected = directory::text(&format!("{name}.txt"));
        assert_eq!(found, expected, "in {name}");
    }
}

#[test]
fn an_old_directory_survives_a_crash_anywhere_in_its_first_opening() {
    for (name, describe) in DIRECTORIES {
        let expected = directory::text(&format!("{name}.txt"));
        for operations in (0..).step_by(3) {
            let disk = directory::load(name);
            disk.crash_after(operations);
            let opened = Node::open(Arc::new(disk.clone()), config(), LATER);
            let is_done = opened.is_ok() && !disk.is_down();
            drop(opened);
            let found = describe(World::reopened(disk.restart(), LATER, config()));
            assert_eq!(found, expected, "in {name} after {operations} operations");
            if is_done {
                break;
            }
        }
    }
}

#[test]
fn an_old_directory_can_be_salvaged_and_holds_the_same() {
    for (name, describe) in DIRECTORIES {
        let disk = directory::load(name);
        let to = MemDisk::new(9);
        let target = (Arc::new(to.clone()), config());
        let salvaged = salvage(&Arc::new(disk), Some(LOG_ID), target).unwrap();
        assert_eq!(salvaged.faults, [], "in {name}");
        assert_eq!(salvaged.skipped, [], "in {name}");
        assert!(salvaged.messages > 0 && salvaged.lost_contents == 0);
        let found = describe(World::reopened(to, LATER, config()));
        let expected = directory::text(&format!("{name}.txt"));
        assert_eq!(found, expected, "in {name}");
    }
}
