//! Whether and how a command encrypts what it sends: the settings for TLS of both doors.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use tanda_client::Tls;

use crate::failure::Failure;

const TLS_ENV: &str = "TANDA_TLS";
const CA_ENV: &str = "TANDA_CA";
const CERT_ENV: &str = "TANDA_CLIENT_CERT";
const KEY_ENV: &str = "TANDA_CLIENT_KEY";
const NAME_ENV: &str = "TANDA_SERVER_NAME";

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsArgs {
    /// Speak TLS with the Fila door, which must be one for TLS; implied by the other flags about
    /// TLS. Without --ca the authorities of the system are trusted [env: TANDA_TLS=1]
    #[arg(long)]
    tls: bool,
    /// Trust the certificate authorities in this PEM file, and no others [env: TANDA_CA]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate to show to the broker, a PEM file; needs --key [env: TANDA_CLIENT_CERT]
    #[arg(long = "cert", id = "tls_cert", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of --cert, a PEM file [env: TANDA_CLIENT_KEY]
    #[arg(long = "key", id = "tls_key", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Name in the broker's certificate, if it is not the host of --addr [env: TANDA_SERVER_NAME]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
}

/// How streams are to be encrypted, if they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encryption {
    is_asked: bool,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    server_name: Option<String>,
}

impl TlsArgs {
    /// These flags, which win, those that stood before the command, and the environment.
    pub(crate) fn or(self, before: Self) -> Encryption {
        let path = |given: Option<PathBuf>, name| given.or_else(|| set(name).map(PathBuf::from));
        let ca = path(self.ca.or(before.ca), CA_ENV);
        let cert = path(self.cert.or(before.cert), CERT_ENV);
        let key = path(self.key.or(before.key), KEY_ENV);
        let name = self.server_name.or(before.server_name);
        let server_name = name.or_else(|| set(NAME_ENV));
        let is_set = set(TLS_ENV).is_some_and(|text| text != "0" && text != "false");
        let is_asked = self.tls
            || before.tls
            || is_set
            || ca.is_some()
            || cert.is_some()
            || key.is_some()
            || server_name.is_some();
        Encryption {
            is_asked,
            ca,
            cert,
            key,
            server_name,
        }
    }
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

impl Encryption {
    /// Whether anything says that the Fila door speaks TLS.
    pub(crate) const fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Reads the files.
    pub(crate) fn load(&self) -> Result<Tls, Failure> {
        let mut builder = Tls::builder();
        if let Some(ca) = &self.ca {
            builder = builder.ca_pem(read(ca, "certificate authority")?);
        }
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let cert = read(cert, "certificate")?;
                builder = builder.identity_pem(cert, read(key, "private key")?);
            }
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                let text = "--cert and --key go together: the certificate that is shown to the \
                            broker, and its private key";
                return Err(Failure::Usage(text.to_owned()));
            }
        }
        if let Some(name) = &self.server_name {
            builder = builder.server_name(name);
        }
        builder.build().map_err(|error| {
            let files = [
                ("--ca", &self.ca),
                ("--cert", &self.cert),
                ("--key", &self.key),
            ];
            let given = |(flag, path): &(&str, &Option<PathBuf>)| {
                Some(format!("{flag} {}", path.as_ref()?.display()))
            };
            let given: Vec<String> = files.iter().filter_map(given).collect();
            let given = if given.is_empty() {
                "--tls without --ca".to_owned()
            } else {
                given.join(" ")
            };
            Failure::Usage(format!("{error} ({given})"))
        })
    }
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| Failure::io(format!("read the {what} in {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_asks_for_tls() {
        assert!(!TlsArgs::default().or(TlsArgs::default()).is_asked());
        let tls = TlsArgs {
            tls: true,
            ..TlsArgs::default()
        };
        let ca = TlsArgs {
            ca: Some("x".into()),
            ..TlsArgs::default()
        };
        for args in [tls, ca] {
            assert!(args.clone().or(TlsArgs::default()).is_asked());
            assert!(TlsArgs::default().or(args).is_asked());
        }
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let args = TlsArgs {
            cert: Some("x".into()),
            ..TlsArgs::default()
        };
        let error = args.or(TlsArgs::default()).load().unwrap_err();
        // The files are not read before it is known that both are named.
        assert!(error.to_string().contains("go together"), "{error}");
    }
}
