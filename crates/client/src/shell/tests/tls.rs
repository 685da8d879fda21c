//! Connections over TLS: whom the client believes, and what it shows of itself.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::{Peer, handshake_ok};
use crate::{Client, ConnectError, Tls, TlsError, TlsProblem};

/// A certificate authority, and what it has signed, as PEM.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a name, and its key.
    fn sign(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// A server with a certificate for `name`; with `clients`, one that asks for certificates of that
/// authority.
struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Server {
    async fn start(authority: &Authority, name: &str, clients: Option<&Authority>) -> Self {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone()).unwrap();
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let (certificate, key) = authority.sign(name);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = builder.with_single_cert(vec![certificate], key).unwrap();
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    }

    fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// Accepts a connection and shakes hands; `None` when the client does not like it.
    async fn accept(&self) -> Option<Peer<TlsStream<TcpStream>>> {
        let (stream, _) = self.listener.accept().await.unwrap();
        let stream = self.acceptor.accept(stream).await.ok()?;
        let mut peer = Peer::over(stream);
        peer.next().await?;
        peer.send(0, &handshake_ok()).await;
        Some(peer)
    }

    /// What becomes of a client with these settings.
    async fn meet(&self, tls: Tls) -> Result<(), ConnectError> {
        let builder = Client::builder().address(self.address()).tls(tls);
        let (client, peer) = tokio::join!(builder.connect(), self.accept());
        let client = client?;
        assert!(peer.is_some(), "connected to nobody");
        // The task must end with the client, not with the peer.
        drop(client);
        assert!(peer.unwrap().stream.read(&mut [0; 64]).await.is_ok());
        Ok(())
    }
}

#[tokio::test]
async fn a_server_proves_its_name_or_address() {
    let authority = Authority::new();
    let trusting = || Tls::builder().ca_pem(authority.pem());

    let by_address = Server::start(&authority, "127.0.0.1", None).await;
    by_address.meet(trusting().build().unwrap()).await.unwrap();

    let by_name = Server::start(&authority, "broker.example", None).await;
    let named = trusting().server_name("broker.example").build().unwrap();
    by_name.meet(named).await.unwrap();

    let error = by_name.meet(trusting().build().unwrap()).await.unwrap_err();
    assert_eq!(error.tls_problem(), Some(TlsProblem::WrongName));
    assert!(!error.retryable(), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_server_of_another_authority_is_refused() {
    let server = Server::start(&Authority::new(), "127.0.0.1", None).await;
    let other = Tls::builder().ca_pem(Authority::new().pem()).build();
    let error = server.meet(other.unwrap()).await.unwrap_err();
    assert_eq!(error.tls_problem(), Some(TlsProblem::UnknownAuthority));
    assert!(!error.retryable(), "{error}");
    assert!(
        error.to_string().starts_with("no TLS connection: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let authority = Authority::new();
    let server = Server::start(&authority, "127.0.0.1", Some(&authority)).await;
    let (certificate, key) = authority.sign("client");
    let trusting = || Tls::builder().ca_pem(authority.pem());
    let with = trusting().identity_pem(certificate, key).build().unwrap();
    server.meet(with).await.unwrap();

    let error = server.meet(trusting().build().unwrap()).await.unwrap_err();
    assert_eq!(
        error.tls_problem(),
        Some(TlsProblem::ClientCertificate),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let tls = Tls::builder().ca_pem(Authority::new().pem()).build();
    let builder = Client::builder().address(address).tls(tls.unwrap());
    let answering = async {
        let (stream, _) = listener.accept().await.unwrap();
        // What a Fila server says to bytes that are no handshake.
        Peer::over(stream).send(0, &handshake_ok()).await;
    };
    let (client, ()) = tokio::join!(builder.connect(), answering);
    let error = client.unwrap_err();
    assert_eq!(error.tls_problem(), Some(TlsProblem::NotTls), "{error}");
}

#[test]
fn what_cannot_be_used_is_named() {
    let authority = Authority::new();
    let pem = authority.pem();
    let (certificate, _) = authority.sign("client");
    let (_, other_key) = authority.sign("client");
    let building = |builder: crate::TlsBuilder| builder.build().unwrap_err();
    let trusting = || Tls::builder().ca_pem(pem.as_str());
    assert!(matches!(
        building(Tls::builder().ca_pem("")),
        TlsError::Ca(_)
    ));
    assert!(matches!(
        building(trusting().identity_pem("", other_key.as_str())),
        TlsError::Identity(_)
    ));
    assert!(matches!(
        building(trusting().identity_pem(certificate.as_str(), pem.as_str())),
        TlsError::Key(_)
    ));
    assert!(matches!(
        building(trusting().identity_pem(certificate, other_key)),
        TlsError::Identity(_)
    ));
    assert_eq!(
        building(trusting().server_name("no name")),
        TlsError::ServerName("no name".to_owned())
    );
}

#[test]
fn secrets_are_not_shown() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("client");
    let builder = Tls::builder()
        .identity_pem(certificate, key)
        .ca_pem(authority.pem());
    let client = Client::builder()
        .api_key("secret-key")
        .tls(builder.clone().build().unwrap());
    let shown = format!("{builder:?} {client:?}");
    assert!(
        !shown.contains("secret-key") && !shown.contains("PRIVATE"),
        "{shown}"
    );
}
