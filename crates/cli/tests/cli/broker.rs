//! A broker of the built binary, and a way to run commands against it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

pub(crate) const TANDA: &str = env!("CARGO_BIN_EXE_tanda");

static NEWEST: AtomicU32 = AtomicU32::new(0);

/// A running `tanda serve`; killed, and its data removed, when dropped.
pub(crate) struct Broker {
    child: Child,
    data_dir: PathBuf,
    doors: Vec<String>,
    pub(crate) addr: String,
    pub(crate) http: String,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary without what the environment of the tests may say to it.
pub(crate) fn tanda() -> Command {
    clean(TANDA)
}

fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TANDA_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end, with `input` on its standard input.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that does not read its input ends, which closes the pipe.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder for a broker of its own, which does not exist yet.
pub(crate) fn new_dir() -> PathBuf {
    let number = NEWEST.fetch_add(1, Ordering::Relaxed);
    let name = format!("tanda-cli-test-{}-{number}", std::process::id());
    std::env::temp_dir().join(name)
}

impl Broker {
    pub(crate) fn start() -> Self {
        Self::start_in(new_dir())
    }

    pub(crate) fn start_in(data_dir: PathBuf) -> Self {
        Self::start_with(data_dir, &[])
    }

    /// One with more options.
    pub(crate) fn start_with(data_dir: PathBuf, options: &[&str]) -> Self {
        let mut child = tanda()
            .args([
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
            ])
            .args(["--log-level", "error", "--data-dir"])
            .arg(&data_dir)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut doors = Vec::new();
        loop {
            let line = lines
                .next()
                .expect("serve ended before it was ready")
                .unwrap();
            if line.starts_with("ready in ") {
                break;
            }
            doors.push(line);
        }
        let mut broker = Self {
            addr: String::new(),
            http: String::new(),
            doors,
            child,
            data_dir,
        };
        broker.addr = broker.door("fila");
        broker.http = format!("http://{}", broker.door("http"));
        broker
    }

    /// SIGKILL, and a start on what is on disk.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let fresh = Self::start_in(self.data_dir.clone());
        let mut old = std::mem::replace(self, fresh);
        // It is another's now.
        old.data_dir = PathBuf::new();
    }

    /// Ends it, and starts another on what is on disk.
    pub(crate) fn stop_and_start(mut self, options: &[&str]) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Self::start_with(std::mem::take(&mut self.data_dir), options)
    }

    /// Ends it. What one says on what is on disk that must not start.
    pub(crate) fn refuses_to_start(mut self, options: &[&str]) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut command = tanda();
        command.args([
            "serve",
            "--no-fila",
            "--no-amqp",
            "--no-firemq",
            "--no-amaquet",
        ]);
        command
            .args(["--http", "127.0.0.1:0", "--data-dir"])
            .arg(&self.data_dir);
        let ran = {
            command.args(options);
            run(command, b"")
        };
        assert_ne!(ran.code, 0, "{ran:?}");
        ran.err
    }

    /// Where a door is.
    pub(crate) fn door(&self, name: &str) -> String {
        let prefix = format!("{name} listening on ");
        let found = self
            .doors
            .iter()
            .find_map(|line| line.strip_prefix(&prefix));
        found
            .unwrap_or_else(|| panic!("no {name} door in {:?}", self.doors))
            .to_owned()
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// A program that finds this broker in its environment.
    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = clean(program);
        command
            .env("TANDA_ADDR", &self.addr)
            .env("TANDA_HTTP", &self.http)
            .env("TANDA_FIREMQ", format!("fire://{}", self.door("firemq")));
        command
    }

    /// A command for this broker; the arguments are separated by spaces.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.command_of(TANDA);
        command.args(line.split_whitespace());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        run(self.command(line), b"")
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, line: &str) -> String {
        self.ok_with(line, "")
    }

    pub(crate) fn ok_with(&self, line: &str, input: &str) -> String {
        let ran = run(self.command(line), input.as_bytes());
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        ran.out
    }

    /// Runs a command that must succeed and print one JSON document.
    pub(crate) fn json(&self, line: &str) -> Value {
        let out = self.ok(&format!("{line} --json"));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error} in {out}"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.data_dir));
    }
}
