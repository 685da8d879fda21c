//! What clients will think of a certificate.

use std::time::Duration;

use rustls::{
    crypto::CryptoProvider,
    pki_types::{CertificateDer, UnixTime},
};
use webpki::{EndEntityCert, Error, KeyUsage};

/// How long before its end a certificate is warned of.
const SOON: Duration = Duration::from_hours(14 * 24);
const DAY_SECS: u64 = 24 * 60 * 60;

/// What is suspicious about the certificate of a server; `None` when nothing is.
pub(super) fn doubts(
    certificate: &CertificateDer<'_>,
    provider: &CryptoProvider,
    now: UnixTime,
) -> Option<String> {
    let certificate = match EndEntityCert::try_from(certificate) {
        Ok(certificate) => certificate,
        Err(error) => return Some(format!("clients may refuse it: {error}")),
    };
    if let Some(doubt) = doubt_at(&certificate, provider, now) {
        return Some(doubt);
    }
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + SOON);
    let Error::CertExpired { not_after, .. } = verify(&certificate, provider, soon) else {
        return None;
    };
    let left = not_after.as_secs().saturating_sub(now.as_secs()) / DAY_SECS;
    Some(format!("it expires in {left} days"))
}

fn doubt_at(
    certificate: &EndEntityCert<'_>,
    provider: &CryptoProvider,
    now: UnixTime,
) -> Option<String> {
    let error = verify(certificate, provider, now);
    // The issuer is asked for last, so nothing else is wrong.
    if error == Error::UnknownIssuer {
        return None;
    }
    if let Error::CertExpired { not_after, .. } = error {
        let ago = now.as_secs().saturating_sub(not_after.as_secs()) / DAY_SECS;
        return Some(format!("it expired {ago} days ago: clients will refuse it"));
    }
    if let Error::CertNotValidYet { not_before, .. } = error {
        let ahead = not_before.as_secs().saturating_sub(now.as_secs()) / DAY_SECS;
        return Some(format!(
            "it is not valid yet, but in {ahead} days: clients will refuse it"
        ));
    }
    Some(format!("clients may refuse it: {error}"))
}

/// Looks at what the certificate says of itself. No issuer is known, so this always ends in an
/// error; `UnknownIssuer` when all else is well.
fn verify(certificate: &EndEntityCert<'_>, provider: &CryptoProvider, at: UnixTime) -> Error {
    let algorithms = provider.signature_verification_algorithms.all;
    let usage = KeyUsage::server_auth();
    certificate
        .verify_for_usage(algorithms, &[], &[], at, usage, None, None)
        .err()
        .unwrap_or(Error::UnknownIssuer)
}
