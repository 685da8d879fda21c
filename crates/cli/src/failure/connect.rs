//! Why there is no connection to the Fila door, and what to do.

use std::fmt;

use tanda_client::{ConnectError, ErrorCode, TlsProblem};

use super::IS_IT_RUNNING;
use crate::credentials::HOW_TO_GIVE;

pub(super) fn explain(
    f: &mut fmt::Formatter<'_>,
    addr: &str,
    has_key: bool,
    error: &ConnectError,
) -> fmt::Result {
    if let ConnectError::Rejected(rejection) = error
        && rejection.code == ErrorCode::Unauthorized
    {
        let what = if has_key {
            "it does not know the API key, or the key has expired or was revoked"
        } else {
            "it asks for an API key"
        };
        return write!(
            f,
            "the broker at {addr} refused the connection: {what}; give one by {HOW_TO_GIVE} \
             ({rejection})"
        );
    }
    write!(f, "cannot reach the Fila door at {addr}: ")?;
    if let ConnectError::Io(source) = error
        && error.tls_problem().is_none()
    {
        // The error without a second "cannot connect".
        write!(f, "{source}")?;
    } else {
        write!(f, "{error}")?;
    }
    match remedy(error) {
        Some(remedy) => write!(f, "; {remedy}"),
        None if error.retryable() => write!(
            f,
            "; {IS_IT_RUNNING} --addr HOST:PORT (or TANDA_ADDR) names another place"
        ),
        None => Ok(()),
    }
}

fn remedy(error: &ConnectError) -> Option<&'static str> {
    if matches!(error, ConnectError::NotFila { .. }) {
        return Some(
            "another program listens there, or it is another door; when it is the door for TLS, \
             say --tls",
        );
    }
    match error.tls_problem()? {
        TlsProblem::NotTls => Some(
            "it does not speak TLS: name the door for TLS by --addr, or leave out --tls and what \
             implies it",
        ),
        TlsProblem::UnknownAuthority => Some(
            "nobody whom this client trusts has signed the broker's certificate: --ca FILE names \
             the authority that did",
        ),
        TlsProblem::WrongName => Some(
            "the broker's certificate is for another name: call it by that in --addr, or give the \
             name by --server-name",
        ),
        TlsProblem::NotValidNow => {
            Some("renew the broker's certificate, or set the clock of this machine")
        }
        TlsProblem::ClientCertificate => Some(
            "the broker wants a certificate of an authority that it trusts: --cert FILE and --key \
             FILE give one",
        ),
        TlsProblem::Other | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tanda_client::Rejection;

    use super::super::Failure;
    use super::*;

    fn text(has_key: bool, source: ConnectError) -> String {
        let addr = "127.0.0.1:1".to_owned();
        Failure::Connect {
            addr,
            has_key,
            source,
        }
        .to_string()
    }

    #[test]
    fn a_refused_connection_names_the_address_and_the_likely_reason() {
        let source = ConnectError::Io(io::ErrorKind::ConnectionRefused.into());
        let text = text(false, source);
        assert!(
            text.contains("127.0.0.1:1") && text.contains(IS_IT_RUNNING),
            "{text}"
        );
    }

    #[test]
    fn a_missing_key_and_a_wrong_one_are_told_apart() {
        let refused = || ConnectError::Rejected(Rejection::from_code(ErrorCode::Unauthorized));
        let without = text(false, refused());
        assert!(without.contains("it asks for an API key"), "{without}");
        let with = text(true, refused());
        assert!(with.contains("has expired or was revoked"), "{with}");
        for text in [with, without] {
            assert!(text.contains("--api-key-file"), "{text}");
        }
    }

    #[test]
    fn a_door_for_tls_is_guessed() {
        let source = ConnectError::NotFila {
            reason: "a frame of 352 MB".to_owned(),
        };
        let text = text(false, source);
        assert!(text.contains("--tls"), "{text}");
    }
}
