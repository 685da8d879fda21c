//! Who asks over HTTP: the same keys as everywhere, as `Authorization: Bearer KEY`, or as the
//! password of `Basic` with any user, which browsers and `curl -u` speak.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Extension, FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tanda_engine::{ApiKeyId, Caller, CredentialError, Permission};
use tanda_session::{
    audit::{AuditEvent, AuditOutcome},
    fila::Authentication,
};

use super::{Door, problem::Problem};

/// Whoever looks after the process asks for this, without a key.
pub(super) const OPEN_PATH: &str = "/api/tanda/health";

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) Option<SocketAddr>);

/// Lets a request pass with its [`Asking`], or answers why not.
pub(super) async fn authenticate(
    State(door): State<Arc<Door>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match door.authentication {
        Authentication::Off => Ok(Caller::Anyone),
        Authentication::On if request.uri().path() == OPEN_PATH => Ok(Caller::Anyone),
        Authentication::On => {
            let keys = Arc::clone(&door.keys.borrow());
            let secret = secret_of(request.headers());
            let secret = secret.as_deref().map(str::as_bytes);
            let found = keys.authenticate(secret, door.clock.now());
            found.cloned().map(Caller::Key)
        }
    };
    match caller {
        Ok(caller) => {
            let asking = Asking { door, peer, caller };
            request.extensions_mut().insert(asking);
            next.run(request).await
        }
        Err(error) => {
            note_denial(&door, peer, &request, error);
            unauthorized(error)
        }
    }
}

fn note_denial(door: &Door, peer: Option<SocketAddr>, request: &Request, error: CredentialError) {
    let keys = Arc::clone(&door.keys.borrow());
    let by = error.key().and_then(|key| keys.find(key));
    let action = format!("HTTP {}", request.method());
    let outcome = AuditOutcome::Denied(error);
    let event = AuditEvent::new(by, action, request.uri().path(), outcome);
    door.audit.note(peer, &event);
}

/// Closes the connection: each guess costs a new one.
fn unauthorized(error: CredentialError) -> Response {
    let problem = Problem::new(
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        error.to_string(),
        "send `Authorization: Bearer KEY`, or the key as the password of Basic with any user",
    );
    let mut response = problem.into_response();
    let headers = response.headers_mut();
    for scheme in ["Bearer realm=\"tanda\"", "Basic realm=\"tanda\""] {
        headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A request that may ask; what for is checked where it is known.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    door: Arc<Door>,
    peer: Option<SocketAddr>,
    pub(super) caller: Caller,
}

impl<S: Sync> FromRequestParts<S> for Asking {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Put there by `authenticate`; without it nobody is anybody.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| forbidden("this"))
    }
}

impl Asking {
    /// May do this with a queue.
    pub(super) fn needs(
        &self,
        permission: Permission,
        queue: &str,
        action: &str,
    ) -> Result<(), Problem> {
        self.check(self.caller.may(permission, queue), action, queue)
    }

    /// May do what concerns the whole broker.
    pub(super) fn needs_all(&self, action: &str) -> Result<(), Problem> {
        self.check(self.caller.may_administer_all(), action, "")
    }

    /// May do everything.
    pub(super) fn needs_superadmin(&self, action: &str) -> Result<(), Problem> {
        self.check(self.caller.is_superadmin(), action, "")
    }

    /// Writes down that something was done.
    pub(super) fn note_done(&self, action: &str, object: &str) {
        self.note(action, object, AuditOutcome::Done);
    }

    /// What can be asked again and again while an answer is sent: whether the key is still good
    /// for everything.
    pub(super) fn is_still_superadmin(&self) -> bool {
        let Some(key) = self.caller.key() else {
            return true;
        };
        self.is_good(key.id)
    }

    fn is_good(&self, id: ApiKeyId) -> bool {
        let now = self.door.clock.now();
        let keys = self.door.keys.borrow();
        keys.find(id)
            .is_some_and(|key| key.is_superadmin && !key.is_expired(now))
    }

    fn check(&self, may: bool, action: &str, object: &str) -> Result<(), Problem> {
        if may {
            return Ok(());
        }
        self.note(action, object, AuditOutcome::Forbidden);
        Err(forbidden(action))
    }

    fn note(&self, action: &str, object: &str, outcome: AuditOutcome) {
        let event = AuditEvent::new(self.caller.key(), action, object, outcome);
        self.door.audit.note(self.peer, &event);
    }
}

fn forbidden(action: &str) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        format!("this key may not do that ({action})"),
        "a superadmin gives permissions to keys: tanda key --help",
    )
}

/// The key in the headers of a request.
fn secret_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = String::from_utf8(base64(rest)?).ok()?;
        return pair.split_once(':').map(|(_user, key)| key.to_owned());
    }
    None
}

/// Decodes base64 (RFC 4648, section 4) with or without padding; `None` when it is none.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut word = 0_u32;
        for digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(value);
        }
        let whole = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            // Six bits are no byte.
            _ => return None,
        };
        let [_, three @ ..] = (word << (6 * (4 - group.len()))).to_be_bytes();
        bytes.extend(three.iter().take(whole));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_by_the_examples_of_its_standard() {
        // RFC 4648, section 10.
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
            ("Zm9vYmE", "fooba"),
        ] {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(base64("+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
        for bad in ["Z", "Zm9vY", "Zm9 v", "Z-==", "\u{e9}"] {
            assert_eq!(base64(bad), None, "{bad}");
        }
    }

    #[test]
    fn keys_come_as_bearer_or_as_a_password() {
        let secret = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            secret_of(&headers)
        };
        assert_eq!(secret("Bearer key").as_deref(), Some("key"));
        assert_eq!(secret("bearer  key ").as_deref(), Some("key"));
        // anybody:key, and :key
        assert_eq!(secret("Basic YW55Ym9keTprZXk=").as_deref(), Some("key"));
        assert_eq!(secret("basic OmtleQ==").as_deref(), Some("key"));
        for none in ["", "key", "Bearer", "Digest key", "Basic !", "Basic a2V5"] {
            assert_eq!(secret(none), None, "{none}");
        }
        assert_eq!(secret_of(&HeaderMap::new()), None);
    }
}
