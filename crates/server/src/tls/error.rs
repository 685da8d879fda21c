//! Why the files of TLS cannot be used.

use std::{fmt, io, path::PathBuf};

/// A file that cannot be used.
#[derive(Debug)]
pub struct TlsFileError {
    /// The option that names it.
    pub option: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: TlsFileProblem,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum TlsFileProblem {
    /// It cannot be read.
    Read(io::Error),
    /// It is larger than any such file, in bytes at most.
    TooLarge(u64),
    /// It is not PEM; what is wrong with it.
    NotPem(&'static str),
    /// It is PEM without a section of this name.
    Nothing(&'static str),
    /// The private key is encrypted, and nobody is there to type its password.
    Encrypted,
    /// A certificate in it cannot be used.
    Certificate(rustls::Error),
    /// The private key in it cannot be used.
    Key(rustls::Error),
    /// The private key belongs to another certificate than the one in this file.
    OtherKey(PathBuf),
    /// The authorities in it cannot be used.
    Authorities(String),
}

impl fmt::Display for TlsFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { option, path, .. } = self;
        write!(f, "{} (option {option}) ", path.display())?;
        match &self.problem {
            TlsFileProblem::Read(error) => write!(f, "cannot be read: {error}"),
            TlsFileProblem::TooLarge(max) => write!(f, "is larger than {max} bytes: no PEM file"),
            TlsFileProblem::NotPem(what) => write!(f, "is no PEM file: {what}"),
            TlsFileProblem::Nothing(name) => {
                write!(f, "has no \"-----BEGIN {name}-----\" in it: expected PEM")
            }
            TlsFileProblem::Encrypted => f.write_str(
                "holds an encrypted private key: decrypt it (openssl pkey -in ... -out ...) and \
                 let only the broker's user read it",
            ),
            TlsFileProblem::Certificate(error) => {
                write!(f, "holds a certificate that cannot be used: {error}")
            }
            TlsFileProblem::Key(error) => {
                write!(f, "holds a private key that cannot be used: {error}")
            }
            TlsFileProblem::OtherKey(certificate) => write!(
                f,
                "does not belong to the certificate {} (option tls.certificate; its own \
                 certificate must be the first in that file)",
                certificate.display()
            ),
            TlsFileProblem::Authorities(what) => {
                write!(f, "holds no usable certificate of an authority: {what}")
            }
        }
    }
}

impl std::error::Error for TlsFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            TlsFileProblem::Read(error) => Some(error),
            TlsFileProblem::Certificate(error) | TlsFileProblem::Key(error) => Some(error),
            TlsFileProblem::TooLarge(_)
            | TlsFileProblem::NotPem(_)
            | TlsFileProblem::Nothing(_)
            | TlsFileProblem::Encrypted
            | TlsFileProblem::OtherKey(_)
            | TlsFileProblem::Authorities(_) => None,
        }
    }
}
