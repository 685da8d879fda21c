//! Clients of others against the binary, each check of theirs a test.
//!
//! The clients are what `make clients` installs from their packages, pinned in `tests/clients`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests outside of a test function"
)]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// A running broker, killed when dropped.
struct Broker {
    child: Child,
    /// Open as long as the broker runs: it announces more than is read here.
    _stdout: BufReader<ChildStdout>,
    data_dir: PathBuf,
    port: String,
}

impl Broker {
    fn start(name: &str) -> Self {
        let folder = format!("tanda-clients-{}-{name}", std::process::id());
        let data_dir = std::env::temp_dir().join(folder);
        let mut child = Command::new(env!("CARGO_BIN_EXE_tanda"))
            .args(["serve", "--no-fila", "--no-http", "--amqp", "127.0.0.1:0"])
            .args(["--log-level", "error", "--data-dir"])
            .arg(&data_dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addr = line.strip_prefix("amqp listening on ").expect(&line);
        let port = addr.trim().rsplit(':').next().unwrap().to_owned();
        Self {
            child,
            _stdout: stdout,
            data_dir,
            port,
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::fs::remove_dir_all(&self.data_dir).unwrap();
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs one check of a script of `tests/clients` against a broker of its own.
fn check(script: &str, name: &str) {
    let clients = repository().join("target/clients");
    assert!(
        clients.join("installed").exists(),
        "{} is missing: run `make clients` first (`make test` does)",
        clients.display()
    );
    let is_python = Path::new(script).extension() == Some("py".as_ref());
    let interpreter = if is_python {
        clients.join("bin/python")
    } else {
        "node".into()
    };
    let broker = Broker::start(name);
    let output = Command::new(interpreter)
        .arg(repository().join("tests/clients").join(script))
        .args([broker.port.as_str(), name])
        .env("NODE_PATH", clients.join("node_modules"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} {name}: {said}");
}

macro_rules! checks {
    ($module:ident, $script:literal: $($name:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    super::check($script, stringify!($name));
                }
            )+
        }
    };
}

checks! { pika_blocking, "pika_blocking.py":
    publish_confirm_consume
    requeue_keeps_the_place
    messages_expire_into_the_dead_letter_exchange
    higher_priority_goes_first
    mandatory_messages_come_back
    a_deleted_queue_cancels_its_consumer
    what_a_lost_connection_held_comes_back
    a_refused_request_closes_its_channel_only
    exchanges_route
    a_wrong_password_is_refused
    transactions
    turns_by_a_header
}

checks! { amqplib, "amqplib/check.js":
    publish_confirm_consume
    requeue_and_dead_letters
    mandatory_comes_back_before_its_confirm
    a_refusal_closes_its_channel_only
}

checks! { kombu, "kombu_pool.py":
    publishes_and_consumes
}

checks! { celery, "celery_app.py":
    a_worker_runs_tasks_and_answers
}
