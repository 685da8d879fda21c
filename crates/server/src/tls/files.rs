//! The PEM files: where they are, what they hold, whether they changed.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    InconsistentKeys, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer, UnixTime,
        pem::{Error as PemError, PemObject},
    },
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::{
    error::{TlsFileError, TlsFileProblem},
    validity::doubts,
};
use crate::config::{ClientAuth, Config};

/// No certificate chain, key or list of authorities is larger.
const FILE_BYTES_MAX: u64 = 4 << 20;

const CERTIFICATE: &str = "tls.certificate";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "tls.client_ca";

/// The files that the options name.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_auth: ClientAuth,
}

/// What the files hold.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) warnings: Vec<String>,
}

/// By what a change of the files is noticed: modification time in ns, length, inode, device of
/// each. A link that is pointed elsewhere shows too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamps([Option<(i128, u64, u64, u64)>; 3]);

impl TlsFiles {
    /// The files that the configuration names; `None` when it names no certificate.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        Some(Self {
            certificate: config.tls_certificate.clone()?,
            key: config.tls_key.clone()?,
            client_ca: config.tls_client_ca.clone(),
            client_auth: config.tls_client_auth,
        })
    }

    /// Reads all and checks that they fit together.
    ///
    /// # Errors
    /// The first file that cannot be used, and why.
    pub(crate) fn load(&self) -> Result<Loaded, TlsFileError> {
        let provider = Arc::new(ring::default_provider());
        let mut warnings = Vec::new();
        let certified = self.certified(&provider, &mut warnings)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| self.about_certificate(TlsFileProblem::Certificate(error)))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(self.verifier(path, provider)?),
        };
        let config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        Ok(Loaded {
            config: Arc::new(config),
            warnings,
        })
    }

    pub(super) fn stamps(&self) -> Stamps {
        let stamp = |path: Option<&Path>| {
            let meta = fs::metadata(path?).ok()?;
            let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
            Some((modified, meta.len(), meta.ino(), meta.dev()))
        };
        Stamps([
            stamp(Some(&self.certificate)),
            stamp(Some(&self.key)),
            stamp(self.client_ca.as_deref()),
        ])
    }

    fn certified(
        &self,
        provider: &CryptoProvider,
        warnings: &mut Vec<String>,
    ) -> Result<CertifiedKey, TlsFileError> {
        let chain = certificates(CERTIFICATE, &self.certificate)?;
        if let Some(own) = chain.first()
            && let Some(doubt) = doubts(own, provider, UnixTime::now())
        {
            let path = self.certificate.display();
            warnings.push(format!("the certificate {path}: {doubt}"));
        }
        warnings.extend(readable_by_others(&self.key));
        let key = private_key(&self.key)?;
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|error| fault(KEY, &self.key, TlsFileProblem::Key(error)))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                Ok(certified)
            }
            Err(rustls::Error::InconsistentKeys(_)) => {
                let problem = TlsFileProblem::OtherKey(self.certificate.clone());
                Err(fault(KEY, &self.key, problem))
            }
            Err(error) => Err(self.about_certificate(TlsFileProblem::Certificate(error))),
        }
    }

    fn verifier(
        &self,
        path: &Path,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsFileError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(CLIENT_CA, path)? {
            roots.add(certificate).map_err(|error| {
                fault(
                    CLIENT_CA,
                    path,
                    TlsFileProblem::Authorities(error.to_string()),
                )
            })?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = match self.client_auth {
            ClientAuth::Required => builder,
            ClientAuth::Optional => builder.allow_unauthenticated(),
        };
        builder.build().map_err(|error| {
            fault(
                CLIENT_CA,
                path,
                TlsFileProblem::Authorities(error.to_string()),
            )
        })
    }

    fn about_certificate(&self, problem: TlsFileProblem) -> TlsFileError {
        fault(CERTIFICATE, &self.certificate, problem)
    }
}

fn fault(option: &'static str, path: &Path, problem: TlsFileProblem) -> TlsFileError {
    TlsFileError {
        option,
        path: path.to_owned(),
        problem,
    }
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| fault(option, path, TlsFileProblem::Read(error)))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fault(
            option,
            path,
            TlsFileProblem::TooLarge(FILE_BYTES_MAX),
        ));
    }
    Ok(bytes)
}

/// All certificates of a file; at least one.
fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let bytes = read(option, path)?;
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| fault(option, path, TlsFileProblem::NotPem(why(&error))))?;
    if found.is_empty() {
        let problem = TlsFileProblem::Nothing("CERTIFICATE");
        return Err(fault(option, path, problem));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let bytes = read(KEY, path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        let encrypted = |line: &[u8]| {
            line.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY")
                || line.starts_with(b"Proc-Type: 4,ENCRYPTED")
        };
        let problem = if bytes.split(|byte| *byte == b'\n').any(encrypted) {
            TlsFileProblem::Encrypted
        } else if matches!(error, PemError::NoItemsFound) {
            TlsFileProblem::Nothing("PRIVATE KEY")
        } else {
            TlsFileProblem::NotPem(why(&error))
        };
        fault(KEY, path, problem)
    })
}

/// Without what the file holds: it may be a key.
fn why(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "a section has no end",
        PemError::IllegalSectionStart { .. } => "the first line of a section cannot be read",
        PemError::Base64Decode(_) => "a section is not base64",
        PemError::NoItemsFound => "it has no sections",
        PemError::Io(_) | PemError::SectionTooLarge | _ => "it cannot be read",
    }
}

fn readable_by_others(key: &Path) -> Option<String> {
    let mode = fs::metadata(key).ok()?.mode();
    (mode & 0o007 != 0).then(|| {
        format!(
            "every user of this machine may open the private key {} (mode {:o}): chmod o= it",
            key.display(),
            mode & 0o777
        )
    })
}
