//! TLS: whom the client believes, and what it shows of itself.
//!
//! Owns: turning PEM texts into the settings of rustls, and the name that the server's certificate
//! must carry. Refuses to know: files, and what is sent over the stream.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Settings with which streams are encrypted: TLS 1.2 or 1.3. Cheap to clone.
///
/// ```no_run
/// use tanda_client::{Client, Tls};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::builder().ca_pem(std::fs::read("ca.pem")?).build()?;
/// let client = Client::builder().address("broker.example:5556").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl Tls {
    /// Begins settings that trust the certificate authorities of the system.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::default()
    }

    /// Encrypts a stream to a server; `host` is the name or IP address by which it was reached.
    ///
    /// # Errors
    /// When the two do not agree, or the server does not prove to be the one that was called. The
    /// error then holds a rustls error.
    pub async fn encrypt<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => server_name(host).map_err(io::Error::other)?,
        };
        TlsConnector::from(Arc::clone(&self.config))
            .connect(name, stream)
            .await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings hold a private key.
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// Settings of [`Tls`] that are being made.
#[derive(Clone, Default)]
#[must_use = "build() makes the settings"]
pub struct TlsBuilder {
    ca: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    server_name: Option<String>,
}

impl TlsBuilder {
    /// Trusts these certificate authorities, one or more in PEM form, and no others.
    pub fn ca_pem(mut self, certificates: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(certificates.into());
        self
    }

    /// Shows a certificate of its own to a server that asks for one: the certificate first, then
    /// those between it and the authority, and its private key, both in PEM form.
    pub fn identity_pem(
        mut self,
        certificates: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.identity = Some((certificates.into(), key.into()));
        self
    }

    /// The name or IP address that the server's certificate must carry, if not the one by which it
    /// is reached.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Reads the certificates and the key.
    ///
    /// # Errors
    /// Which of them cannot be used, and why.
    pub fn build(self) -> Result<Tls, TlsError> {
        let server_name = self.server_name.as_deref().map(server_name).transpose()?;
        let roots = match self.ca {
            Some(pem) => given_roots(&pem)?,
            None => system_roots()?,
        };
        let provider = Arc::new(ring::default_provider());
        let config = config(provider, roots, self.identity)?;
        Ok(Tls {
            config: Arc::new(config),
            server_name,
        })
    }
}

impl fmt::Debug for TlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsBuilder")
            .field("has_ca", &self.ca.is_some())
            .field("has_identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
}

fn config(
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
    identity: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<ClientConfig, TlsError> {
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| TlsError::Ca(error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Identity(error.to_string()))?
        .with_webpki_verifier(verifier);
    let Some((certificates, key)) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let certificates = certificates_of(&certificates).map_err(TlsError::Identity)?;
    let key = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|error| TlsError::Key(format!("no private key in PEM form: {error}")))?;
    builder
        .with_client_auth_cert(certificates, key)
        .map_err(|error| TlsError::Identity(error.to_string()))
}

fn given_roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_of(pem).map_err(TlsError::Ca)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::Ca(error.to_string()))?;
    }
    Ok(roots)
}

/// What the system trusts. Single certificates that cannot be used are passed over, as other
/// programs do.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = found.errors.first().map(ToString::to_string);
        return Err(TlsError::NoSystemRoots(reason.unwrap_or_default()));
    }
    Ok(roots)
}

fn certificates_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("no PEM form: {error}"))?;
    if certificates.is_empty() {
        return Err("no certificate in PEM form in it".to_owned());
    }
    Ok(certificates)
}

fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let name = ServerName::try_from(bare.unwrap_or(host).to_owned());
    name.map_err(|_invalid| TlsError::ServerName(host.to_owned()))
}

/// What of the settings for TLS cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// The system trusts no certificate authority, or they cannot be read.
    NoSystemRoots(String),
    /// The certificate authorities.
    Ca(String),
    /// The own certificate, or it does not belong to the key.
    Identity(String),
    /// The private key.
    Key(String),
    /// The name is neither a DNS name nor an IP address.
    ServerName(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSystemRoots(reason) => write!(
                f,
                "the system has no certificate authorities to trust; name one ({reason})"
            ),
            Self::Ca(reason) => write!(f, "the certificate authority cannot be used: {reason}"),
            Self::Identity(reason) => write!(f, "the own certificate cannot be used: {reason}"),
            Self::Key(reason) => write!(f, "the private key cannot be used: {reason}"),
            Self::ServerName(name) => {
                write!(f, "{name:?} is neither a DNS name nor an IP address")
            }
        }
    }
}

impl std::error::Error for TlsError {}

/// Why two sides that can reach each other have no TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The server does not answer in TLS.
    NotTls,
    /// No trusted authority has signed the server's certificate.
    UnknownAuthority,
    /// The server's certificate is for another name or address.
    WrongName,
    /// The server's certificate has expired, or is not valid yet.
    NotValidNow,
    /// The server wants another certificate of this client, or wants one at all.
    ClientCertificate,
    /// Something else; the error's text says what.
    Other,
}

impl TlsProblem {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the enums of rustls are open, and only some of their errors have a remedy"
    )]
    pub(crate) const fn of(error: &rustls::Error) -> Self {
        use rustls::{AlertDescription, CertificateError, Error};
        match error {
            Error::InvalidMessage(_) => Self::NotTls,
            Error::InvalidCertificate(error) => match error {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    Self::UnknownAuthority
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => Self::WrongName,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::NotValidNow,
                _ => Self::Other,
            },
            Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied,
            ) => Self::ClientCertificate,
            _ => Self::Other,
        }
    }
}

/// What TLS said when a stream could not be encrypted; `None` for errors of the network.
pub(crate) fn problem(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
