//! Runs a page in an empty folder against a broker of its own.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    time::{Duration, Instant},
};

use std::os::unix::{fs::symlink, process::CommandExt};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    page::{Command, Page, Step},
    text::matches,
};
use crate::broker::{Broker, TANDA};

/// How long a command that only looks may be repeated until it shows what the page shows: workers
/// in the background need their time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Commands that change nothing.
const LOOKS: [&str; 6] = [
    "tanda queue explain",
    "tanda queue inspect",
    "tanda queue list",
    "tanda throttle",
    "tanda key list",
    "tanda acl get",
];

pub(super) fn run(page: &Page) {
    let broker = Broker::start();
    let folder = folder(broker.data_dir());
    let mut shell = Shell {
        workers: Vec::new(),
        broker,
        folder,
    };
    for step in &page.steps {
        match step {
            Step::File { name, text } => fs::write(shell.folder.join(name), text).unwrap(),
            Step::Run(command) => shell.run(&page.path, command),
            Step::Start(command) => shell.start(command),
        }
    }
    shell.stop(&page.path);
}

/// An empty folder, with the binary in one beside it.
fn folder(data_dir: &Path) -> PathBuf {
    let bin = data_dir.join("page-bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(TANDA, bin.join("tanda")).unwrap();
    let folder = data_dir.join("page");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where the commands of a page run.
struct Shell {
    /// Ended before the broker, which they would look for.
    workers: Vec<Worker>,
    broker: Broker,
    folder: PathBuf,
}

/// A command in the background.
struct Worker {
    line: String,
    expected: String,
    output: PathBuf,
    child: Child,
}

impl Shell {
    fn process(&self, line: &str, output: &Path) -> Process {
        let bin = self.broker.data_dir().join("page-bin");
        let path = std::env::var("PATH").unwrap();
        let mut process = self.broker.command_of("sh");
        let file = File::create(output).unwrap();
        process
            .arg("-c")
            .arg(line)
            .env("PATH", format!("{}:{path}", bin.display()))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        process
    }

    fn run(&self, page: &str, command: &Command) {
        let is_look = LOOKS.iter().any(|look| command.line.starts_with(look));
        let begun = Instant::now();
        loop {
            let (is_success, shown) = self.show(&command.line);
            let is_right = if command.shown.is_empty() {
                is_success && shown.is_empty()
            } else {
                matches(&command.shown, &shown)
            };
            if is_right {
                return;
            }
            assert!(
                is_look && begun.elapsed() < PATIENCE,
                "{page}: $ {}\n--- the page shows\n{}--- the command shows\n{shown}---",
                command.line,
                command.shown,
            );
        }
    }

    fn show(&self, line: &str) -> (bool, String) {
        let output = self.broker.data_dir().join("page-output");
        let status = self.process(line, &output).status().unwrap();
        (status.success(), fs::read_to_string(output).unwrap())
    }

    fn start(&mut self, command: &Command) {
        let name = format!("page-worker-{}", self.workers.len());
        let output = self.broker.data_dir().join(name);
        // A group of its own, so that all that the line starts can be ended.
        let child = self
            .process(&command.line, &output)
            .process_group(0)
            .spawn()
            .unwrap();
        self.workers.push(Worker {
            line: command.line.clone(),
            expected: command.shown.clone(),
            output,
            child,
        });
    }

    /// Ends the workers once they have shown what the page shows.
    fn stop(mut self, page: &str) {
        for worker in &mut self.workers {
            let begun = Instant::now();
            loop {
                let shown = fs::read_to_string(&worker.output).unwrap();
                if worker.expected.is_empty() || matches(&worker.expected, &shown) {
                    break;
                }
                assert!(
                    begun.elapsed() < PATIENCE,
                    "{page}: $ {}\n--- the page shows\n{}--- the worker shows\n{shown}---",
                    worker.line,
                    worker.expected,
                );
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).unwrap();
        let group = Pid::from_raw(id).unwrap();
        // The first signal asks `tanda consume` to finish what runs, the second to stop it. The
        // shell that started it may be gone before it.
        while kill_process_group(group, Signal::TERM).is_ok() {
            drop(self.child.try_wait());
            std::thread::yield_now();
        }
        drop(self.child.wait());
    }
}
