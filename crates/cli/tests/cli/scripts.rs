//! Scripts from files: what they do, what is said of those that cannot be used, and where they are
//! shown. What a script may do is tested where it runs.

use std::{fs, path::PathBuf};

use crate::broker::{Broker, Ran, new_dir, run};

/// A folder with scripts, from which commands are run.
struct Folder {
    broker: Broker,
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let path = new_dir();
        fs::create_dir_all(&path).unwrap();
        Self {
            broker: Broker::start(),
            path,
        }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path.join(name), text).unwrap();
    }

    fn run(&self, line: &str) -> Ran {
        let mut command = self.broker.command(line);
        command.current_dir(&self.path);
        run(command, b"")
    }

    fn ok(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        ran.out
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

const TENANT: &str =
    "function on_enqueue(msg)\n  return { fairness_key = msg.headers.t:upper() }\nend\n";

#[test]
fn a_script_that_cannot_be_used_is_named_with_its_line() {
    let folder = Folder::new();
    folder.write("bad.lua", "function on_enqueue(msg)\n  return {{\nend\n");
    folder.write("other.lua", "function on_failure(msg) end\n");
    folder.write("good.lua", TENANT);
    let ran = folder.run("queue create q --on-enqueue bad.lua");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("on_enqueue:3:"), "{ran:?}");
    let ran = folder.run("queue create q --on-enqueue other.lua");
    assert!(ran.err.contains("on_enqueue"), "{ran:?}");
    assert_eq!(folder.run("queue create q --on-enqueue none.lua").code, 1);

    folder.ok("queue create q --on-enqueue good.lua");
    let ran = folder.run("queue update q --on-failure bad.lua");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("on_failure:3:"), "{ran:?}");
    let ran = folder.run("queue update q --on-enqueue good.lua --remove-on-enqueue");
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn scripts_are_shown_and_taken_away() {
    let folder = Folder::new();
    folder.write("tenant.lua", TENANT);
    folder.ok("queue create q --on-enqueue tenant.lua --script-failure park");
    let details = folder.broker.json("queue inspect q");
    assert_eq!(details["config"]["on_enqueue"]["text"], TENANT);
    let text = folder.ok("queue inspect q --show-scripts");
    assert!(
        text.contains("on_enqueue            79 bytes, sha256 "),
        "{text}"
    );
    assert!(
        text.ends_with(&format!("--- on_enqueue\n{TENANT}")),
        "{text}"
    );

    folder.ok("send q --header t=a --quiet x");
    let ids = folder.ok("send q without-tenant");
    let id = ids.trim();
    let why = folder.ok("queue explain q");
    assert!(why.contains("1 ready, 1 parked"), "{why}");
    assert!(why.contains("--on-enqueue FILE"), "{why}");
    let why = folder.ok(&format!("queue explain q {id}"));
    assert!(
        why.contains("is parked: the on_enqueue script failed on it 1 time ("),
        "{why}"
    );
    assert!(why.contains("when the script changes"), "{why}");

    folder.ok("queue update q --remove-on-enqueue");
    let shown = folder.ok("consume q --ack --count 2");
    assert!(shown.contains("without-tenant"), "{shown}");
    assert!(shown.contains("  A  "), "{shown}");
    let details = folder.broker.json("queue inspect q");
    assert!(details["config"]["on_enqueue"].is_null(), "{details}");
}

#[test]
fn a_message_that_a_script_rejects_names_the_script() {
    let folder = Folder::new();
    folder.write("tenant.lua", TENANT);
    folder.ok("queue create q --on-enqueue tenant.lua");
    let ran = folder.run("send q x");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err.contains("on_enqueue script") && ran.err.contains("ScriptError"),
        "{ran:?}"
    );
}
