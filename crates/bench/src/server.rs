//! The server under measurement.
//!
//! Owns: finding its binary, starting it on a fresh directory, its death, and the directory.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::process::Process;

/// A server that is not ready by then has failed. Some start on a large directory.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running server. One that was started here is killed, and its data removed, when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its Fila door.
    pub(crate) addr: SocketAddr,
    /// All its doors by name.
    doors: Vec<(String, SocketAddr)>,
    /// Its process, when known.
    pub(crate) process: Option<Process>,
    /// From starting the process to its line `ready in ..`; zero for one that ran already.
    pub(crate) ready: Duration,
    started: Option<Started>,
}

#[derive(Debug)]
struct Started {
    child: Child,
    dir: PathBuf,
    binary: PathBuf,
    options: Vec<String>,
}

impl Server {
    /// A server that runs already.
    pub(crate) const fn running(addr: SocketAddr, process: Option<Process>) -> Self {
        Self {
            addr,
            doors: Vec::new(),
            process,
            ready: Duration::ZERO,
            started: None,
        }
    }

    /// The address of a door other than Fila's.
    pub(crate) fn door(&self, name: &str) -> Result<SocketAddr, BenchError> {
        let found = self.doors.iter().find(|(door, _)| door == name);
        found.map(|(_, addr)| *addr).ok_or_else(|| {
            BenchError::Server(format!(
                "it has no door named {name}, or was not started by this program"
            ))
        })
    }

    /// Starts `binary` on an empty directory, which is made at `dir`, with these options beside
    /// the usual ones.
    pub(crate) fn start(
        binary: &Path,
        dir: PathBuf,
        options: &[String],
    ) -> Result<Self, BenchError> {
        fs::create_dir_all(&dir).map_err(BenchError::io("making the data directory"))?;
        let at = Instant::now();
        let child = spawn(binary, &dir, options)?;
        let started = Started {
            child,
            dir,
            binary: binary.to_owned(),
            options: options.to_vec(),
        };
        Self::of(started, at)
    }

    fn of(mut started: Started, at: Instant) -> Result<Self, BenchError> {
        let process = Some(Process::new(started.child.id()));
        let doors = started.wait_until_ready()?;
        let fila = doors.iter().find(|(name, _)| name == "fila");
        let addr = fila.ok_or_else(|| started.did_not_start())?.1;
        Ok(Self {
            addr,
            doors,
            process,
            ready: at.elapsed(),
            started: Some(started),
        })
    }

    /// Kills it without warning and starts it again on the same directory.
    pub(crate) fn kill_and_restart(&mut self) -> Result<(), BenchError> {
        let Some(mut started) = self.started.take() else {
            return Err(BenchError::Server("it was not started here".to_owned()));
        };
        // Gone already is as good.
        drop(started.child.kill());
        drop(started.child.wait());
        let at = Instant::now();
        started.child = spawn(&started.binary, &started.dir, &started.options)?;
        *self = Self::of(started, at)?;
        Ok(())
    }

    /// Bytes that its directory takes on the disk, as allocated.
    pub(crate) fn disk_bytes(&self) -> Option<u64> {
        let started = self.started.as_ref()?;
        Some(allocated_bytes(&started.dir.join("data")))
    }
}

fn spawn(binary: &Path, dir: &Path, options: &[String]) -> Result<Child, BenchError> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(dir.join("server.log"))
        .map_err(BenchError::io("making the server's log file"))?;
    Command::new(binary)
        .arg("serve")
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args([
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
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|e| BenchError::Server(format!("cannot run {}: {e}", binary.display())))
}

/// Files that vanish meanwhile count for nothing.
fn allocated_bytes(dir: &Path) -> u64 {
    const BLOCK_BYTES: u64 = 512;
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some(if metadata.is_dir() {
                allocated_bytes(&entry.path())
            } else {
                metadata.blocks() * BLOCK_BYTES
            })
        })
        .sum()
}

impl Started {
    /// Reads stdout up to `ready in ..`, and goes on reading it, so that the pipe never fills up.
    fn wait_until_ready(&mut self) -> Result<Vec<(String, SocketAddr)>, BenchError> {
        let stdout = self.child.stdout.take();
        let (lines, incoming) = mpsc::channel();
        thread::spawn(move || {
            let reader = stdout.map(BufReader::new);
            for line in reader.into_iter().flat_map(BufRead::lines) {
                // Nobody listens any more once the server is ready.
                let Ok(line) = line else { break };
                drop(lines.send(line));
            }
        });
        let deadline = Instant::now() + START_TIMEOUT;
        let mut doors = Vec::new();
        loop {
            let wait = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = incoming.recv_timeout(wait) else {
                return Err(self.did_not_start());
            };
            if let Some((name, addr)) = line.split_once(" listening on ")
                && let Ok(addr) = addr.trim().parse()
            {
                doors.push((name.to_owned(), addr));
            }
            if line.starts_with("ready in ") {
                return Ok(doors);
            }
        }
    }

    fn did_not_start(&self) -> BenchError {
        let log = fs::read_to_string(self.dir.join("server.log")).unwrap_or_default();
        BenchError::Server(format!(
            "the server did not say `fila listening on ..` and `ready in ..`; its log:\n{log}"
        ))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may be gone already, and a directory that stays behind harms no measurement.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.dir));
    }
}

/// The binary to measure: the one named, else the one beside this program, which is built first
/// when this program was started by cargo.
pub(crate) fn find_binary(named: Option<PathBuf>) -> Result<PathBuf, BenchError> {
    if let Some(path) = named {
        return Ok(path);
    }
    let own = env::current_exe().map_err(BenchError::io("finding this program"))?;
    if let Some(cargo) = env::var_os("CARGO") {
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        let status = Command::new(cargo)
            .args(["build", "-p", "tanda-cli", "--profile", profile])
            .status()
            .map_err(BenchError::io("building the server"))?;
        if !status.success() {
            return Err(BenchError::Server("the server does not build".to_owned()));
        }
    }
    let path = own.with_file_name("tanda");
    if path.exists() {
        Ok(path)
    } else {
        Err(BenchError::Server(format!(
            "there is no {}; build it with `cargo build --release`, or name it with --server",
            path.display()
        )))
    }
}
