//! Commands over TLS: whom they believe, what they show, and what they say when it fails.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::broker::{Broker, Ran, new_dir, run, tanda};

/// A folder with an authority, and certificates of it for the broker and a client.
struct Files(PathBuf);

impl Files {
    fn new() -> Self {
        let dir = new_dir();
        fs::create_dir_all(&dir).unwrap();
        let files = Self(dir);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        files.write("ca.pem", &authority.pem());
        for (file, name) in [("broker", "broker.example"), ("client", "client")] {
            let mut names = vec![name.to_owned()];
            if file == "broker" {
                names.push("127.0.0.1".to_owned());
            }
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(names).unwrap();
            let certificate = params.signed_by(&key, &authority).unwrap();
            files.write(&format!("{file}.pem"), &certificate.pem());
            files.write(&format!("{file}.key"), &key.serialize_pem());
        }
        files
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn broker(&self, options: &[&str]) -> Broker {
        let path = |name: &str| self.0.join(name).display().to_string();
        let (certificate, key) = (path("broker.pem"), path("broker.key"));
        let doors = [
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
        let files = ["--tls-certificate", &certificate, "--tls-key", &key];
        Broker::start_with(new_dir(), &[&doors[..], &files, options].concat())
    }

    /// Runs a command in the folder.
    fn run(&self, line: &str) -> Ran {
        run_in(&self.0, line)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn run_in(folder: &Path, line: &str) -> Ran {
    let mut command = tanda();
    command.args(line.split_whitespace()).current_dir(folder);
    run(command, b"")
}

#[test]
fn both_doors_speak_tls() {
    let files = Files::new();
    let broker = files.broker(&[]);
    let fila = format!("--addr {}", broker.door("fila tls"));
    let http = format!("--http https://{}", broker.door("http tls"));
    let amaquet = format!("--amaquet {}", broker.door("amaquet tls"));
    for line in [
        format!("queue create q {fila} --ca ca.pem"),
        format!("--ca ca.pem queue inspect q {fila} {http}"),
        format!("queue explain q --ca ca.pem {http}"),
        format!("queue list {fila} --ca ca.pem --server-name broker.example"),
        format!("amaquet server.ping {amaquet} --ca ca.pem"),
    ] {
        let ran = files.run(&line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    let mut command = tanda();
    command
        .args(["send", "q", "x"])
        .env("TANDA_ADDR", broker.door("fila tls"))
        .env("TANDA_CA", files.0.join("ca.pem"));
    let ran = run(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn what_fails_says_what_helps() {
    let files = Files::new();
    let broker = files.broker(&[]);
    let tls = broker.door("fila tls");
    let plain = &broker.addr;
    for (line, said) in [
        // A PEM file with another certificate than the authority's.
        (
            format!("queue list --addr {tls} --ca client.pem"),
            "--ca FILE",
        ),
        (
            format!("queue list --addr {tls} --ca ca.pem --server-name other"),
            "--server-name",
        ),
        (
            format!("queue list --addr {plain} --ca ca.pem"),
            "does not speak TLS",
        ),
        (format!("queue list --addr {tls}"), "--tls"),
        (
            format!(
                "amaquet server.ping --amaquet {} --ca client.pem",
                broker.door("amaquet tls")
            ),
            "--ca FILE",
        ),
        (
            format!(
                "amaquet server.ping --amaquet {} --ca ca.pem",
                broker.door("amaquet")
            ),
            "does not speak TLS",
        ),
    ] {
        let ran = files.run(&line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {ran:?}");
    }
    for (line, code, said) in [
        ("queue list --ca none.pem", 1, "none.pem"),
        ("queue list --ca broker.key", 2, "certificate authority"),
        ("queue list --cert client.pem", 2, "go together"),
        (
            "queue list --ca ca.pem --cert client.pem --key broker.key",
            2,
            "client.pem",
        ),
        ("queue list --tls --server-name a/b", 2, "a/b"),
    ] {
        let ran = files.run(line);
        assert_eq!(ran.code, code, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {ran:?}");
    }
}

#[test]
fn a_broker_that_wants_certificates_gets_one() {
    let files = Files::new();
    let ca = files.0.join("ca.pem").display().to_string();
    let broker = files.broker(&["--tls-client-ca", &ca]);
    let fila = format!("queue list --ca ca.pem --addr {}", broker.door("fila tls"));
    let ran = files.run(&format!("{fila} --cert client.pem --key client.key"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = files.run(&fila);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("--cert FILE and --key FILE"), "{ran:?}");
}
