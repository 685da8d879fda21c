//! The real binary on a directory of its own.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) amaquet: String,
}

/// An empty directory under the target directory.
pub(crate) fn fresh_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    dir
}

impl Server {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tanda"))
            .args([
                "serve",
                "--no-firemq",
                "--no-http",
                "--amaquet",
                "127.0.0.1:0",
                "--fila",
                "127.0.0.1:0",
                "--amqp",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = None;
        let mut amaquet = None;
        for line in lines {
            let line = line.unwrap();
            if let Some(rest) = line.strip_prefix("fila listening on ") {
                address = Some(rest.to_owned());
            }
            if let Some(rest) = line.strip_prefix("amaquet listening on ") {
                amaquet = Some(rest.to_owned());
            }
            if line.starts_with("ready in ") {
                break;
            }
        }
        Self {
            child,
            address: address.unwrap(),
            amaquet: amaquet.unwrap(),
        }
    }

    /// SIGKILL: no time to write anything.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
