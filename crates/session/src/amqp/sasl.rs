//! Mechanisms of authentication: what clients send, as something that can be checked.

use tanda_wire::amqp::{LongStr, ShortStr, Table};

use crate::login::{Login, Password, Proof};

/// Longest name of a user, in bytes.
const USER_BYTES_MAX: usize = 255;
/// Longest password, in bytes: checking one takes memory and time.
const PASSWORD_BYTES_MAX: usize = 4096;

/// Why a response is no login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoLogin {
    /// The server does not offer this mechanism.
    UnknownMechanism,
    /// The response is not one of the mechanism.
    BadResponse,
}

/// The names of what the server offers.
pub(super) const fn offered(external: bool) -> &'static str {
    if external {
        "PLAIN AMQPLAIN EXTERNAL"
    } else {
        "PLAIN AMQPLAIN"
    }
}

/// Reads a response. `certificate` is the name in the peer's certificate, when there is one and
/// `EXTERNAL` is offered.
pub(super) fn login(
    mechanism: ShortStr<'_>,
    response: LongStr<'_>,
    certificate: Option<&str>,
) -> Result<Login, NoLogin> {
    let response = response.as_bytes();
    let (mechanism, proof) = match mechanism.as_bytes() {
        b"PLAIN" => ("PLAIN", plain(response)),
        b"AMQPLAIN" => ("AMQPLAIN", amqplain(response)),
        b"EXTERNAL" => {
            let name = certificate.ok_or(NoLogin::UnknownMechanism)?.to_owned();
            ("EXTERNAL", Some(Proof::Certificate { name }))
        }
        _ => return Err(NoLogin::UnknownMechanism),
    };
    let proof = proof.ok_or(NoLogin::BadResponse)?;
    Ok(Login { mechanism, proof })
}

/// RFC 4616: an identity to act as (which is not offered), a name, a password.
fn plain(response: &[u8]) -> Option<Proof> {
    let mut parts = response.splitn(3, |byte| *byte == 0);
    let (act_as, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    if !act_as.is_empty() && act_as != user {
        return None;
    }
    password_proof(user, password)
}

/// A table without its length: `LOGIN` and `PASSWORD`.
fn amqplain(response: &[u8]) -> Option<Proof> {
    let table = Table::new(response).ok()?;
    let text = |key: &[u8]| table.find(key).ok()??.as_long_string();
    password_proof(text(b"LOGIN")?, text(b"PASSWORD")?)
}

fn password_proof(user: &[u8], password: &[u8]) -> Option<Proof> {
    if user.len() > USER_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    Some(Proof::Password {
        user: core::str::from_utf8(user).ok()?.to_owned(),
        password: Password::new(password.to_vec()),
    })
}

/// The question whether a new secret belongs to somebody who logged in before. One that is too long
/// is nobody's.
pub(super) fn renewal(user: &str, secret: LongStr<'_>) -> Login {
    let secret = secret.as_bytes();
    let secret = secret.get(..PASSWORD_BYTES_MAX + 1).unwrap_or(secret);
    let proof = Proof::Password {
        user: user.to_owned(),
        password: Password::new(secret.to_vec()),
    };
    let mechanism = "update-secret";
    Login { mechanism, proof }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mechanism: &str, response: &[u8], certificate: Option<&str>) -> Result<Login, NoLogin> {
        let response = LongStr::new(response).unwrap();
        login(ShortStr::clip(mechanism), response, certificate)
    }

    fn user(login: Result<Login, NoLogin>) -> (String, Vec<u8>) {
        let Ok(Login {
            proof: Proof::Password { user, password },
            ..
        }) = login
        else {
            panic!("{login:?}")
        };
        (user, password.reveal().to_vec())
    }

    #[test]
    fn pitfall_3_plain_amqplain_and_external() {
        let anna = ("anna".to_owned(), b"pw".to_vec());
        assert_eq!(user(read("PLAIN", b"\0anna\0pw", None)), anna);
        assert_eq!(user(read("PLAIN", b"anna\0anna\0pw", None)), anna);
        let table = b"\x05LOGINS\0\0\0\x04anna\x08PASSWORDS\0\0\0\x02pw";
        assert_eq!(user(read("AMQPLAIN", table, None)), anna);
        let external = read("EXTERNAL", b"", Some("CN=anna")).unwrap();
        let name = "CN=anna".to_owned();
        assert_eq!(external.proof, Proof::Certificate { name });
        let unknown = Err(NoLogin::UnknownMechanism);
        assert_eq!(read("EXTERNAL", b"", None), unknown);
        assert_eq!(read("SCRAM-SHA-256", b"", None), unknown);
    }

    #[test]
    fn what_is_no_response_is_refused() {
        let bad = Err(NoLogin::BadResponse);
        for response in [
            &b""[..],
            b"anna",
            b"\0anna",
            b"eve\0anna\0pw",
            b"\0\xFF\0pw",
        ] {
            assert_eq!(read("PLAIN", response, None), bad, "{response:?}");
        }
        let long = [b"\0a\0".to_vec(), vec![b'x'; 5_000]].concat();
        assert_eq!(read("PLAIN", &long, None), bad);
        let table = b"\x05LOGINS\0\0\0\x04anna\x08PASSWORDS\0\0\0\x02pw";
        for len in 0..table.len() {
            assert_eq!(read("AMQPLAIN", &table[..len], None), bad, "{len}");
        }
    }
}
