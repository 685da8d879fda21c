//! Clients of others against the binary, each check of theirs a test.
//!
//! The clients are what `make clients` installs from their packages, pinned in `tests/clients`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests outside of a test function"
)]

use std::{
    collections::HashMap,
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// A running broker, killed when dropped.
struct Broker {
    child: Child,
    /// Open as long as the broker runs: nobody wants it to die of what it says.
    _stdout: BufReader<ChildStdout>,
    data_dir: PathBuf,
    /// The open doors by name, with their ports.
    ports: HashMap<String, String>,
}

impl Broker {
    fn start(name: &str, options: &[&str]) -> Self {
        let folder = format!("tanda-clients-{}-{name}", std::process::id());
        let data_dir = std::env::temp_dir().join(folder);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tanda"));
        command.arg("serve");
        for door in ["fila", "amqp", "firemq", "amaquet", "http"] {
            for option in [format!("--{door}"), format!("--{door}-tls")] {
                command.args([&option, "127.0.0.1:0"]);
            }
        }
        std::fs::create_dir_all(&data_dir).unwrap();
        write_certificate(&data_dir);
        let mut child = command
            .arg("--tls-certificate")
            .arg(data_dir.join("cert.pem"))
            .arg("--tls-key")
            .arg(data_dir.join("key.pem"))
            .args(["--firemq-ws-origins", "https://shop.example"])
            .args(options)
            .args(["--log-level", "error", "--data-dir"])
            .arg(data_dir.join("data"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ports = HashMap::new();
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            if line.starts_with("ready in ") {
                break;
            }
            let (door, addr) = line.split_once(" listening on ").expect(&line);
            let port = addr.trim().rsplit(':').next().unwrap();
            ports.insert(door.to_owned(), port.to_owned());
        }
        Self {
            child,
            _stdout: stdout,
            data_dir,
            ports,
        }
    }

    /// Where a script of tests connects: a port for AMQP, a URL for FireMQ.
    fn target(&self, over: &str) -> String {
        let port = |door: &str| &self.ports[door];
        match over {
            "fire" => format!("fire://127.0.0.1:{}", port("firemq")),
            "fires" => format!("fires://127.0.0.1:{}", port("firemq tls")),
            "ws" => format!("ws://127.0.0.1:{}/fire", port("http")),
            "wss" => format!("wss://127.0.0.1:{}/fire", port("http tls")),
            door => port(door).clone(),
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

/// Writes a certificate that signs itself, and its key.
fn write_certificate(dir: &Path) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs one check against a broker of its own: of a script of `tests/clients`, or of a program that
/// `make clients` built in `target/clients`.
fn check(script: &str, over: &str, name: &str) {
    check_with(script, over, name, &[]);
}

/// The same, with more options for the broker.
fn check_with(script: &str, over: &str, name: &str, options: &[&str]) {
    let clients = repository().join("target/clients");
    assert!(
        clients.join("installed").exists(),
        "{} is missing: run `make clients` first (`make test` does)",
        clients.display()
    );
    let file = repository().join("tests/clients").join(script);
    let mut command = match file.extension().and_then(OsStr::to_str) {
        Some("py") => Command::new(clients.join("bin/python")),
        // A WebSocket without being asked for it has been in Node.js since 22.
        Some("js") => {
            let mut node = Command::new("node");
            node.arg("--experimental-websocket");
            node
        }
        _ => Command::new(clients.join(script)),
    };
    if file.exists() {
        command.arg(file);
    }
    let broker = Broker::start(&format!("{over}-{name}"), options);
    let output = command
        .args([broker.target(over).as_str(), name])
        .env("NODE_PATH", clients.join("node_modules"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TANDA", env!("CARGO_BIN_EXE_tanda"))
        .env("AMQP", &broker.ports["amqp"])
        .env("FILA", &broker.ports["fila"])
        .env("FIREMQ", &broker.ports["firemq"])
        .envs(over.ends_with(" tls").then_some(("TLS", "1")))
        .envs(key_file(options))
        .env("WS", broker.target("ws"))
        .env("CA", broker.data_dir.join("cert.pem"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} {name}: {said}");
}

/// A check of a broker that asks for API keys finds the first one where commands look for it.
fn key_file<'a>(options: &[&'a str]) -> Option<(&'static str, &'a str)> {
    match options {
        ["--auth-bootstrap-apikey-file", path] => Some(("TANDA_API_KEY_FILE", path)),
        _ => None,
    }
}

macro_rules! checks {
    ($module:ident, $script:literal over $over:literal: $($name:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    super::check($script, $over, stringify!($name));
                }
            )+
        }
    };
}

checks! { pika_blocking, "pika_blocking.py" over "amqp":
    publish_confirm_consume
    requeue_keeps_the_place
    messages_expire_into_the_dead_letter_exchange
    higher_priority_goes_first
    consumers_of_higher_priority_are_served_first
    mandatory_messages_come_back
    a_deleted_queue_cancels_its_consumer
    what_a_lost_connection_held_comes_back
    a_refused_request_closes_its_channel_only
    exchanges_route
    a_wrong_password_is_refused
    transactions
    turns_by_a_header
}

mod pika_alarm {
    #[test]
    fn publishers_wait_while_memory_is_short() {
        let options = ["--memory-limit", "8MiB"];
        super::check_with("pika_alarm.py", "amqp", "publishers_wait", &options);
    }
}

checks! { amqplib, "amqplib/check.js" over "amqp":
    publish_confirm_consume
    requeue_and_dead_letters
    mandatory_comes_back_before_its_confirm
    a_refusal_closes_its_channel_only
}

checks! { kombu, "kombu_pool.py" over "amqp":
    publishes_and_consumes
}

checks! { celery, "celery_app.py" over "amqp":
    a_worker_runs_tasks_and_answers
}

checks! { together, "together.py" over "amqp":
    all_three_work
}

checks! { fire, "fire_checks.py" over "fire":
    publish_confirm_consume
    settling
    expiry_and_dead_letters
    consumers_of_higher_priority_are_served_first
    priority_and_limits
    routing
    queues_live_and_die
    what_a_lost_connection_held_comes_back
    credit_is_kept
    errors_and_limits
    heartbeats
    between_fire_and_amqp
    between_fire_and_fila
    scheduling_by_headers
}

checks! { fire_tls, "fire_checks.py" over "fires":
    publish_confirm_consume
    errors_and_limits
}

checks! { fire_over_web, "fire_checks.py" over "ws":
    publish_confirm_consume
    settling
    expiry_and_dead_letters
    priority_and_limits
    routing
    queues_live_and_die
    what_a_lost_connection_held_comes_back
    credit_is_kept
    errors_and_limits
    heartbeats
}

checks! { fire_over_web_tls, "fire_checks.py" over "wss":
    publish_confirm_consume
    errors_and_limits
}

checks! { fire_websocket, "fire_websocket.py" over "ws":
    fragments_and_pings
    what_is_no_frame_is_refused
    broken_frames_end_the_connection
    a_goodbye_right_behind_a_request_is_seen
    a_slow_reader_holds_up_nobody
    pages_of_others_need_a_user
    the_url_names_the_virtual_host
    other_requests_are_told_what_to_do
}

mod fire_alarm {
    const OPTIONS: [&str; 2] = ["--memory-limit", "8MiB"];

    #[test]
    fn publishers_wait_while_memory_is_short() {
        super::check_with("fire_alarm.py", "fire", "publishers_wait", &OPTIONS);
    }

    #[test]
    fn publishers_over_web_wait_while_memory_is_short() {
        super::check_with("fire_alarm.py", "ws", "publishers_wait", &OPTIONS);
    }
}

checks! { amaquet, "amaquet_checks.py" over "amaquet":
    greeting
    values
    counters
    maps
    lists
    sets
    rankings
    locks
    keys
    queues
    channels
    slow_subscribers_lose_events_and_are_told
    answers_come_out_of_order
    what_a_lost_client_waited_for_stays
    broken_frames
    the_table_tells_all
    other_doors
    connections_end
}

checks! { amaquet_tls, "amaquet_checks.py" over "amaquet tls":
    greeting
    lists
    channels
}

mod amaquet_with_keys {
    #[test]
    fn api_keys() {
        let name = format!("tanda-clients-{}-amaquet.key", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "0123456789-0123456789-0123456789\n").unwrap();
        let options = ["--auth-bootstrap-apikey-file", path.to_str().unwrap()];
        super::check_with("amaquet_checks.py", "amaquet", "api_keys", &options);
        std::fs::remove_file(&path).unwrap();
    }
}

checks! { amaquet_abuse, "amaquet_abuse.py" over "amaquet":
    connections
    keys
    payloads
}

checks! { amaquet_shell, "amaquet_shell.py" over "amaquet":
    commands_are_typed
    tab_completes
    ctrl_c_cancels_what_runs
    events_are_printed_meanwhile
    lines_are_kept_for_this_user_only
    a_lost_connection_is_told_and_opened_again
}

checks! { page, "page.js" over "ws":
    publishes_and_consumes
    refusals_are_told
    message_pack
}

checks! { pika_asyncio, "pika_asyncio.py" over "amqp":
    publish_confirm_consume
    settling
    expiry_and_dead_letters
    priority_and_mandatory
    a_deleted_queue_cancels_its_consumer
}

checks! { aio_pika, "aio_pika_client.py" over "amqp":
    publish_confirm_consume
    settling
    expiry_and_dead_letters
    priority_and_mandatory
    a_deleted_queue_cancels_its_consumer
}

checks! { lapin, "lapin/debug/lapin-checks" over "amqp":
    publish_confirm_consume
    settling
    expiry_and_dead_letters
    priority_and_mandatory
    a_deleted_queue_cancels_its_consumer
}

checks! { kill9, "kill9.py" over "amqp":
    confirmed_messages_survive
    what_was_received_is_redelivered
}
