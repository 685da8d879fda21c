//! `tanda serve` and `tanda check-config` as processes.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A directory that is removed when dropped. Programs run in it, so that no file of the place where
/// the tests were started is read.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tanda-cli-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn tanda(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tanda"));
    command.args(args).current_dir(dir);
    command
}

fn output(dir: &Path, args: &[&str]) -> Output {
    tanda(dir, args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running broker; killed when dropped.
struct Broker {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Broker {
    fn start(dir: &Path, args: &[&str]) -> Self {
        Self::start_with_stderr(dir, args, Stdio::null())
    }

    fn start_with_stderr(dir: &Path, args: &[&str], stderr: Stdio) -> Self {
        let args = [&["serve"], args].concat();
        let mut command = tanda(dir, &args);
        command.stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The address of the next announced door.
    fn address(&mut self, door: &str) -> String {
        let line = self.line();
        let address = line.strip_prefix(&format!("{door} listening on "));
        address.unwrap_or_else(|| panic!("{line:?}")).to_owned()
    }

    fn ready(&mut self) {
        let line = self.line();
        assert!(
            line.starts_with("ready in ") && line.ends_with(" ms"),
            "{line:?}"
        );
    }

    /// Memory that it has written to and that stands in no file.
    fn anonymous_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    fn send(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Sends a signal that ends it and returns the exit code.
    fn signal(mut self, signal: &str) -> Option<i32> {
        self.send(signal);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const DOORS: [&str; 5] = ["fila", "amqp", "firemq", "amaquet", "http"];

const FREE_PORTS: [&str; 10] = [
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
];

#[test]
fn announces_its_doors_and_ends_well_on_a_signal() {
    for signal in ["-TERM", "-INT"] {
        let dir = TempDir::new();
        let mut broker = Broker::start(&dir.0, &FREE_PORTS);
        let doors = DOORS.map(|door| broker.address(door));
        let [fila, ..] = &doors;
        broker.ready();
        assert!(!doors.iter().any(|addr| addr.ends_with(":0")));
        let mut peer = TcpStream::connect(fila).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        peer.write_all(&[0, 0, 0, 13, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1])
            .unwrap();
        let mut answer = [0; 28];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(answer[4], 2, "HandshakeOk");
        assert_eq!(broker.signal(signal), Some(0), "{signal}");
        let mut goodbye = Vec::new();
        peer.read_to_end(&mut goodbye).unwrap();
        assert_eq!(goodbye.get(4), Some(&5), "Disconnect");
    }
}

#[test]
fn the_memory_that_a_first_start_took_is_given_back() {
    // What the hash of a password takes, alone.
    const HASH_KIB: u64 = 19 << 10;
    let dir = TempDir::new();
    let mut broker = Broker::start(&dir.0, &FREE_PORTS);
    for door in DOORS {
        drop(broker.address(door));
    }
    broker.ready();
    let rests = |_| {
        std::thread::sleep(Duration::from_millis(100));
        broker.anonymous_kib() < HASH_KIB
    };
    assert!((0..600).any(rests), "{} KiB", broker.anonymous_kib());
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_the_broker() {
    let dir = TempDir::new();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut broker = Broker::start_with_stderr(&dir.0, &FREE_PORTS, full.into());
    for door in DOORS {
        drop(broker.address(door));
    }
    broker.ready();
    assert_eq!(broker.signal("-TERM"), Some(0));
}

/// Writes a certificate that signs itself, and its key.
fn write_certificate(dir: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

const TLS_FILES: [&str; 4] = ["--tls-certificate", "cert.pem", "--tls-key", "key.pem"];

#[test]
fn announces_its_doors_with_tls_and_reads_the_files_again_on_hangup() {
    let dir = TempDir::new();
    write_certificate(&dir.0);
    let tls = [
        "--fila-tls",
        "127.0.0.1:0",
        "--amqp-tls",
        "127.0.0.1:0",
        "--firemq-tls",
        "127.0.0.1:0",
        "--amaquet-tls",
        "127.0.0.1:0",
        "--http-tls",
        "127.0.0.1:0",
    ];
    let args = [&FREE_PORTS[..], &tls, &TLS_FILES].concat();
    let mut broker = Broker::start_with_stderr(&dir.0, &args, Stdio::piped());
    for door in DOORS {
        assert!(!broker.address(door).ends_with(":0"));
        let door = format!("{door} tls");
        assert!(!broker.address(&door).ends_with(":0"));
    }
    broker.ready();
    let mut log = BufReader::new(broker.child.stderr.take().unwrap()).lines();
    let mut until = |what: &str| {
        let line = log
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(what));
        line.unwrap_or_else(|| panic!("no {what:?} in the log"))
    };
    write_certificate(&dir.0);
    broker.send("-HUP");
    until("SIGHUP");
    until("new TLS connections use the certificate that was read again");
    std::fs::write(dir.0.join("key.pem"), "nonsense").unwrap();
    broker.send("-HUP");
    let line = until("the certificate of before stays");
    assert!(line.contains("key.pem (option tls.key)"), "{line}");
    assert_eq!(broker.signal("-TERM"), Some(0));
}

#[test]
fn a_hangup_without_tls_ends_nothing() {
    let dir = TempDir::new();
    let mut broker = Broker::start(&dir.0, &FREE_PORTS);
    for door in DOORS {
        drop(broker.address(door));
    }
    broker.ready();
    broker.send("-HUP");
    assert_eq!(broker.signal("-TERM"), Some(0));
}

#[test]
fn serve_and_check_config_name_a_file_of_tls_that_cannot_be_used() {
    let dir = TempDir::new();
    write_certificate(&dir.0);
    let checked = output(&dir.0, &[&["check-config"], &TLS_FILES[..]].concat());
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(stderr(&checked).contains("warning: every user of this machine"));
    std::fs::write(dir.0.join("key.pem"), "").unwrap();
    for command in ["check-config", "serve"] {
        let refused = output(&dir.0, &[&[command], &TLS_FILES[..]].concat());
        assert_eq!(refused.status.code(), Some(1), "{command}");
        assert!(
            stderr(&refused).contains("key.pem (option tls.key) has no"),
            "{}",
            stderr(&refused)
        );
    }
}

#[test]
fn a_closed_door_is_not_announced() {
    let dir = TempDir::new();
    let closed = ["--no-amqp", "--no-firemq", "--no-amaquet", "--no-http"];
    let mut broker = Broker::start(&dir.0, &[&["--fila", "127.0.0.1:0"], &closed[..]].concat());
    broker.address("fila");
    broker.ready();
}

#[test]
fn the_default_data_directory_is_made_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new();
    let mut broker = Broker::start(&dir.0, &FREE_PORTS);
    broker.address("fila");
    let mode = std::fs::metadata(dir.0.join("tanda-data"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn an_address_in_use_is_named_with_its_option() {
    let dir = TempDir::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = output(
        &dir.0,
        &[
            "serve",
            "--no-amaquet",
            "--fila",
            &addr,
            "--http",
            "127.0.0.1:0",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains(&addr) && text.contains("--fila"), "{text}");
    assert!(output.stdout.is_empty(), "nothing is announced");
}

#[test]
fn a_data_directory_in_use_is_named() {
    let dir = TempDir::new();
    let mut broker = Broker::start(&dir.0, &FREE_PORTS);
    broker.address("fila");
    let args = [&["serve"], &FREE_PORTS[..]].concat();
    let second = output(&dir.0, &args);
    assert_eq!(second.status.code(), Some(1));
    let text = stderr(&second);
    assert!(
        text.contains("another tanda process") && text.contains("tanda-data"),
        "{text}"
    );
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let dir = TempDir::new();
    let data = dir.0.join("tanda-data");
    std::fs::create_dir_all(data.join("shard-0")).unwrap();
    let args = [&["serve"], &FREE_PORTS[..]].concat();
    let refused = output(&dir.0, &args);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("identity"),
        "{}",
        stderr(&refused)
    );
    assert!(!data.join("identity").exists());
}

#[test]
fn mistakes_are_all_named_and_end_the_program() {
    let dir = TempDir::new();
    std::fs::write(dir.0.join("tanda.toml"), "data_dri = \"x\"\n").unwrap();
    for command in ["serve", "check-config"] {
        let output = output(&dir.0, &[command, "--fila", "nowhere"]);
        assert_eq!(output.status.code(), Some(1));
        let text = stderr(&output);
        assert!(text.contains("2 mistakes"), "{text}");
        assert!(
            text.contains("data_dir") && text.contains("nowhere"),
            "{text}"
        );
    }
}

#[test]
fn check_config_shows_values_and_where_they_come_from() {
    let dir = TempDir::new();
    std::fs::write(dir.0.join("named.toml"), "[limits]\nconnections_max = 7\n").unwrap();
    let checked = tanda(
        &dir.0,
        &["check-config", "--config", "named.toml", "--no-http"],
    )
    .env("TANDA_FILA", "127.0.0.1:9")
    .output()
    .unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    let text = String::from_utf8(checked.stdout).unwrap();
    for line in [
        "fila = \"127.0.0.1:9\"  # TANDA_FILA",
        "no_http = \"true\"  # --no-http",
        "limits.connections_max = \"7\"  # named.toml",
        "data_dir = \"tanda-data\"  # default",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!dir.0.join("tanda-data").exists(), "nothing was started");
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    let dir = TempDir::new();
    let output = output(&dir.0, &["check-config", "--config", "none.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("none.toml"));
}
