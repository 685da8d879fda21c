//! Files of TLS that cannot be used, or should not be.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

#[path = "support/certificates.rs"]
mod certificates;
mod support;

use std::path::{Path, PathBuf};

use certificates::{Authority, write};
use support::TempDir;

/// A good certificate and key, and room for worse.
struct Files {
    dir: TempDir,
    authority: Authority,
    certificate: String,
    key: String,
}

impl Files {
    fn new() -> Self {
        let dir = TempDir::new();
        let authority = Authority::new("ours");
        let [(_, certificate), (_, key)] = authority.issue().write(dir.path());
        Self {
            dir,
            authority,
            certificate,
            key,
        }
    }

    fn write(&self, text: &str) -> String {
        write(self.dir.path(), "bad", text)
    }

    /// What both a start and a check say of these files.
    fn refusal(&self, certificate: &str, key: &str, client_ca: &str) -> String {
        let options = [
            ("tls.certificate", certificate),
            ("tls.key", key),
            ("tls.client_ca", client_ca),
            ("fila_tls", "127.0.0.1:0"),
            ("amqp_tls", "127.0.0.1:0"),
            ("firemq_tls", "127.0.0.1:0"),
            ("amaquet_tls", "127.0.0.1:0"),
            ("http_tls", "127.0.0.1:0"),
        ];
        let config = support::config(&self.dir.path().join("data"), &options);
        let checked = tanda_server::check_tls_files(&config).unwrap_err();
        let said = support::start_error(config);
        assert_eq!(said, checked.to_string());
        said
    }
}

fn pem(section: &str) -> String {
    format!("-----BEGIN {section}-----\nAAAA\n-----END {section}-----\n")
}

#[test]
fn a_bad_certificate_is_named_with_what_is_wrong() {
    let files = Files::new();
    let missing: PathBuf = files.dir.path().join("missing");
    let folder = files.dir.path();
    let unreadable: [(&Path, &str); 2] = [
        (
            &missing,
            "missing (option tls.certificate) cannot be read: No such file",
        ),
        (
            folder,
            "(option tls.certificate) cannot be read: Is a directory",
        ),
    ];
    for (path, expected) in unreadable {
        let said = files.refusal(path.to_str().unwrap(), &files.key, "");
        assert!(said.contains(expected), "{said}");
    }
    let unusable = [
        (
            String::new(),
            "has no \"-----BEGIN CERTIFICATE-----\" in it: expected PEM",
        ),
        (
            pem("PRIVATE KEY"),
            "has no \"-----BEGIN CERTIFICATE-----\" in it: expected PEM",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAA".to_owned(),
            "is no PEM file: a section has no end",
        ),
        (
            pem("CERTIFICATE"),
            "holds a certificate that cannot be used: ",
        ),
        ("x".repeat(5 << 20), "is larger than 4194304 bytes"),
    ];
    for (text, expected) in unusable {
        let said = files.refusal(&files.write(&text), &files.key, "");
        let expected = format!("bad (option tls.certificate) {expected}");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_bad_key_is_named_with_what_is_wrong() {
    let files = Files::new();
    let cases = [
        (
            String::new(),
            "has no \"-----BEGIN PRIVATE KEY-----\" in it",
        ),
        (
            pem("CERTIFICATE"),
            "has no \"-----BEGIN PRIVATE KEY-----\" in it",
        ),
        (
            pem("ENCRYPTED PRIVATE KEY"),
            "holds an encrypted private key: decrypt it",
        ),
        (
            pem("PRIVATE KEY"),
            "holds a private key that cannot be used",
        ),
        (
            files.authority.issue().key,
            "does not belong to the certificate ",
        ),
    ];
    for (text, expected) in cases {
        let said = files.refusal(&files.certificate, &files.write(&text), "");
        let expected = format!("bad (option tls.key) {expected}");
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("AAAA"), "a key is told: {said}");
    }
}

#[test]
fn bad_authorities_are_named_with_what_is_wrong() {
    let files = Files::new();
    let cases = [
        (
            String::new(),
            "has no \"-----BEGIN CERTIFICATE-----\" in it",
        ),
        (
            pem("CERTIFICATE"),
            "holds no usable certificate of an authority",
        ),
    ];
    for (text, expected) in cases {
        let said = files.refusal(&files.certificate, &files.key, &files.write(&text));
        let expected = format!("bad (option tls.client_ca) {expected}");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn suspicious_files_are_warned_of() {
    let files = Files::new();
    let options = [
        ("tls.certificate", files.certificate.as_str()),
        ("tls.key", files.key.as_str()),
    ];
    let config = support::config(files.dir.path(), &options);
    let warnings = || tanda_server::check_tls_files(&config).unwrap();
    permit(&files.key, 0o640);
    assert!(warnings().is_empty());
    permit(&files.key, 0o644);
    let said = warnings();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("mode 644"), "{said:?}");
    files.authority.issue_until(2001).write(files.dir.path());
    permit(&files.key, 0o600);
    let said = warnings();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("it expired "), "{said:?}");
}

fn permit(path: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
