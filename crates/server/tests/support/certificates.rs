//! Certificates for tests, and clients that check and show them.

#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    reason = "helpers of tests; each test file uses a part, so `expect` would fail in some"
)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

use crate::support::{Peer, dial};

/// An authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for `localhost` and 127.0.0.1.
    pub fn issue(&self) -> Identity {
        self.issue_until(2090)
    }

    /// One whose last day is in this year.
    pub fn issue_until(&self, year: i32) -> Identity {
        self.issue_to("rcgen self signed cert", year)
    }

    /// One with this common name.
    pub fn issue_named(&self, name: &str) -> Identity {
        self.issue_to(name, 2090)
    }

    fn issue_to(&self, name: &str, year: i32) -> Identity {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// A client that trusts this authority.
    pub fn client(&self) -> Client {
        let certificate = CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        Client {
            roots,
            versions: rustls::DEFAULT_VERSIONS,
            identity: None,
        }
    }
}

/// What the AMQP door says to a client that wants to be let in by its certificate: the frame after
/// `connection.start`.
pub fn login_by_certificate(mut stream: TlsStream) -> Option<Vec<u8>> {
    let frame = |stream: &mut TlsStream| {
        let mut head = [0; 7];
        stream.read_exact(&mut head).ok()?;
        let len = u32::from_be_bytes(head[3..].try_into().unwrap());
        let mut payload = vec![0; len as usize + 1];
        stream.read_exact(&mut payload).ok()?;
        Some(payload)
    };
    stream.write_all(b"AMQP\0\0\x09\x01").unwrap();
    let start = frame(&mut stream).unwrap();
    let offered = start.windows(8).any(|bytes| bytes == b"EXTERNAL");
    assert!(offered, "the door does not offer EXTERNAL");
    let payload = b"\0\x0a\0\x0b\0\0\0\0\x08EXTERNAL\0\0\0\0\x05en_US";
    let mut start_ok = vec![1, 0, 0];
    start_ok.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    start_ok.extend(payload);
    start_ok.push(0xCE);
    stream.write_all(&start_ok).unwrap();
    frame(&mut stream)
}

impl Identity {
    /// Writes both files; returns the options that name them.
    pub fn write(&self, dir: &Path) -> [(&'static str, String); 2] {
        let certificate = write(dir, "server.pem", &self.certificate);
        let key = write(dir, "server.key", &self.key);
        [("tls.certificate", certificate), ("tls.key", key)]
    }
}

/// Writes a file as a whole: nobody sees half of it.
pub fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    let fresh: PathBuf = dir.join(format!("{name}.new"));
    std::fs::write(&fresh, text).unwrap();
    std::fs::rename(&fresh, &path).unwrap();
    path.display().to_string()
}

/// How a client connects.
#[derive(Clone)]
pub struct Client {
    roots: RootCertStore,
    versions: &'static [&'static SupportedProtocolVersion],
    identity: Option<Identity>,
}

pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl Client {
    pub fn speaking(mut self, versions: &'static [&'static SupportedProtocolVersion]) -> Self {
        self.versions = versions;
        self
    }

    pub fn showing(mut self, identity: &Identity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    /// The stream before its handshake, which the first read or write does.
    pub fn stream(&self, addr: SocketAddr) -> TlsStream {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
                builder
                    .with_client_auth_cert(vec![chain.unwrap()], key)
                    .unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(connection, dial(addr))
    }

    /// A connection after both handshakes.
    pub fn connect(&self, addr: SocketAddr) -> Peer<TlsStream> {
        let mut peer = Peer {
            stream: self.stream(addr),
        };
        peer.handshake();
        peer
    }

    /// Why there is no connection. Panics when there is one.
    pub fn refusal(&self, addr: SocketAddr) -> String {
        let mut stream = self.stream(addr);
        // In TLS 1.3 a client is done before the server has seen its certificate.
        let written = stream.write_all(&[0; 4]);
        let read = written.and_then(|()| stream.read(&mut [0]));
        read.unwrap_err().to_string()
    }
}
