//! Keys by the command line, and that no secret is ever in the broker's log.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Stdio},
};

use crate::broker::{Ran, new_dir, run, tanda};

const BOOTSTRAP: &str = "bootstrap-secret-of-the-command-line-tests";

/// A broker whose log is read.
struct Broker {
    child: Child,
    folder: PathBuf,
    addr: String,
    http: String,
}

impl Broker {
    fn start() -> Self {
        let folder = new_dir();
        fs::create_dir_all(&folder).unwrap();
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
            .args(["--log-level", "trace", "--data-dir"])
            .arg(folder.join("data"))
            .env("TANDA_AUTH_BOOTSTRAP_APIKEY", BOOTSTRAP)
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut door = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            let addr = line.strip_prefix(&format!("{name} listening on "));
            addr.unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let doors = ["fila", "amqp", "firemq", "amaquet", "http"];
        let [addr, _, _, _, http] = doors.map(&mut door);
        // A broker whose announcements nobody reads to the end would end.
        assert!(lines.next().unwrap().unwrap().starts_with("ready in "));
        Self {
            child,
            folder,
            addr,
            http,
        }
    }

    /// Sends one request as it stands and returns the whole answer.
    fn http(&self, authorization: &str) -> String {
        self.request("GET /api/tanda/node", authorization)
    }

    fn request(&self, what: &str, authorization: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        let request = format!(
            "{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: {authorization}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn ask(broker: &Broker, key: &str, line: &str) -> Ran {
    let mut command = tanda();
    command
        .args(line.split_whitespace())
        .args(["--addr", &broker.addr])
        .env("TANDA_API_KEY", key);
    run(command, b"")
}

/// What it prints, without the end of the line.
fn told(ran: &Ran) -> String {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out.trim_end().to_owned()
}

#[test]
fn the_log_says_what_happened_to_keys_and_no_secret() {
    let broker = Broker::start();
    let worker = told(&ask(
        &broker,
        BOOTSTRAP,
        "key create worker --grant produce:orders.*",
    ));
    let second = told(&ask(&broker, BOOTSTRAP, "key create second --superadmin"));
    told(&ask(
        &broker,
        BOOTSTRAP,
        "acl set k2 produce:orders.* admin:q",
    ));
    told(&ask(&broker, &second, "queue create orders.eu"));
    let listed = told(&ask(&broker, &second, "key list"));
    assert!(!listed.contains(&worker) && !listed.contains(BOOTSTRAP));
    let forbidden = ask(&broker, &worker, "queue create other");
    assert_ne!(forbidden.code, 0);
    told(&ask(&broker, &second, "key revoke k1"));
    let wrong = "tanda_0000000000000000000000000000000000000000000";
    for key in [BOOTSTRAP, wrong] {
        assert_ne!(ask(&broker, key, "queue list").code, 0);
    }
    assert!(
        broker
            .http(&format!("Bearer {second}"))
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        broker
            .http(&format!("Bearer {worker}"))
            .starts_with("HTTP/1.1 403")
    );
    let basic = "Basic YWRtaW46dGhlLXdyb25nLXBhc3N3b3Jk";
    assert!(broker.http(basic).starts_with("HTTP/1.1 401"));

    let log = broker.log();
    let secrets = [
        BOOTSTRAP, wrong, &worker, &second, "Bearer", basic, "YWRtaW46",
    ];
    for secret in secrets {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
    for line in [
        "audit: made the bootstrap key",
        "audit: CreateApiKey",
        "k2 worker",
        "superadmin k3 second",
        "audit: SetAcl",
        "audit: RevokeApiKey",
        "k1 bootstrap",
        "audit: CreateQueue",
        "outcome=\"forbidden\"",
        "audit: Handshake",
        "reason=\"unknown\"",
        "audit: HTTP GET",
    ] {
        assert!(log.contains(line), "{line} is not in the log:\n{log}");
    }
}

#[test]
fn changes_over_http_name_the_user() {
    let broker = Broker::start();
    for user in ["anna --tag administrator", "bert --tag management"] {
        let http = format!("http://{}", broker.http);
        let line = format!("user add {user} --password pw-of-both --http {http}");
        told(&ask(&broker, BOOTSTRAP, &line));
    }
    // anna:pw-of-both, bert:pw-of-both
    let (anna, bert) = ("Basic YW5uYTpwdy1vZi1ib3Ro", "Basic YmVydDpwdy1vZi1ib3Ro");
    let made = broker.request("PUT /api/vhosts/shop", anna);
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    let refused = broker.request("DELETE /api/vhosts/shop", bert);
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let log = broker.log();
    let line = |action: &str, by: &str| {
        let mut lines = log.lines().filter(|line| line.contains("audit: "));
        let said = lines.any(|line| line.contains(action) && line.contains(by));
        assert!(said, "{action} {by} is not in the log:\n{log}");
    };
    line("PutUser", "key=\"k1\" name=\"bootstrap\" user=\"\"");
    line(
        "CreateVhost",
        "key=\"-\" name=\"\" user=\"anna\" object=\"shop\"",
    );
    line(
        "DeleteVhost",
        "user=\"bert\" object=\"\" outcome=\"forbidden\"",
    );
    assert!(!log.contains("pw-of-both"), "{log}");
}

#[test]
fn check_config_shows_no_secret() {
    let dir = new_dir();
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("tanda.toml");
    fs::write(
        &file,
        format!("[auth]\nbootstrap_apikey = \"{BOOTSTRAP}\"\n"),
    )
    .unwrap();
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        let mut command = tanda();
        command.arg("check-config").arg("--config").arg(&file);
        run(command, b"")
    };
    let good = check(&format!("[auth]\nbootstrap_apikey = \"{BOOTSTRAP}\"\n"));
    assert_eq!(good.code, 0, "{good:?}");
    assert!(good.out.contains("auth.bootstrap_apikey"), "{good:?}");
    let bad = check(&format!("[auth]\nbootstrap_apikey = \"{BOOTSTRAP}\n"));
    assert_ne!(bad.code, 0);
    for ran in [&good, &bad] {
        assert!(
            !ran.out.contains(BOOTSTRAP) && !ran.err.contains(BOOTSTRAP),
            "{ran:?}"
        );
    }
    fs::remove_dir_all(&dir).unwrap();
}
