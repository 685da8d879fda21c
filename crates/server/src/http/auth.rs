//! Who asks over HTTP: the same keys as everywhere, as `Authorization: Bearer KEY`, or as the
//! password of `Basic` with any user, which browsers and `curl -u` speak; and users, with `Basic`.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Extension, FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tanda_engine::{Caller, CredentialError, Permission};
use tanda_session::{
    audit::{AuditEvent, AuditOutcome},
    fila::Authentication,
    login::{Login, LoginError, Password, Proof},
};
use tanda_wire::base64;

use super::{Door, problem::Problem, who::Who};

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
    let who = match door.authentication {
        Authentication::Off => Ok(Who::Caller(Caller::Anyone)),
        Authentication::On if request.uri().path() == OPEN_PATH => Ok(Who::Caller(Caller::Anyone)),
        Authentication::On => find(&door, peer, shown(request.headers())).await,
    };
    match who {
        Ok(who) => {
            let asking = Asking { door, peer, who };
            request.extensions_mut().insert(asking);
            next.run(request).await
        }
        Err(Turned::Away(error)) => {
            note_denial(&door, peer, &request, error);
            unauthorized(error)
        }
        Err(Turned::Overloaded) => Problem::busy().into_response(),
    }
}

/// Why a request does not pass.
enum Turned {
    Away(CredentialError),
    Overloaded,
}

/// Whose key or password it is.
async fn find(door: &Door, peer: Option<SocketAddr>, shown: Shown) -> Result<Who, Turned> {
    let keys = Arc::clone(&door.principals.borrow().keys);
    let secret = shown.secret.as_deref().map(str::as_bytes);
    let found = keys.authenticate(secret, door.clock.now());
    let error = match found.cloned() {
        Ok(key) => return Ok(Who::Caller(Caller::Key(key))),
        Err(error) => error,
    };
    let (Some(user), Some(secret)) = (shown.user, secret) else {
        return Err(Turned::Away(error));
    };
    let login = Login {
        mechanism: "HTTP",
        proof: Proof::Password {
            user,
            password: Password::new(secret.to_vec()),
        },
    };
    let admitted = match door.authenticator.admit(&login, peer).await {
        Ok(admitted) => admitted,
        Err(LoginError::Overloaded) => return Err(Turned::Overloaded),
        Err(LoginError::Refused | LoginError::LoopbackOnly) => return Err(Turned::Away(error)),
    };
    let user = admitted.user().cloned().ok_or(Turned::Away(error))?;
    let identity = admitted.identity;
    Ok(Who::User { user, identity })
}

fn note_denial(door: &Door, peer: Option<SocketAddr>, request: &Request, error: CredentialError) {
    let keys = Arc::clone(&door.principals.borrow().keys);
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
        "send `Authorization: Bearer KEY`, the key as the password of Basic with any user, or a \
         user's name and password",
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
    pub(super) who: Who,
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
    /// May do this with a queue of a virtual host.
    pub(super) fn needs_in(
        &self,
        permission: Permission,
        (vhost, queue): (&str, &str),
        action: &str,
    ) -> Result<(), Problem> {
        let may = self.who.may_in(permission, (vhost, queue));
        self.check(may, action, queue)
    }

    /// May look at what concerns the whole broker.
    pub(super) fn needs_all(&self, action: &str) -> Result<(), Problem> {
        self.check(self.who.may_look_at_all(), action, "")
    }

    /// May do everything.
    pub(super) fn needs_superadmin(&self, action: &str) -> Result<(), Problem> {
        self.check(self.who.is_superadmin(), action, "")
    }

    /// Writes down that something was done.
    pub(super) fn note_done(&self, action: &str, object: &str) {
        self.note(action, object, AuditOutcome::Done);
    }

    /// What can be asked again and again while an answer is sent: whether the key is still good
    /// for everything.
    pub(super) fn is_still_superadmin(&self) -> bool {
        let newest = self.door.principals.borrow();
        match &self.who {
            Who::Caller(Caller::Anyone) => true,
            Who::Caller(Caller::Key(key)) => {
                let now = self.door.clock.now();
                let key = newest.keys.find(key.id);
                key.is_some_and(|key| key.is_superadmin && !key.is_expired(now))
            }
            Who::User { user, .. } => {
                let now = newest.users.find(&user.name);
                let now = now.filter(|now| now.password_version == user.password_version);
                now.is_some_and(|now| now.has_tag("administrator"))
            }
        }
    }

    fn check(&self, may: bool, action: &str, object: &str) -> Result<(), Problem> {
        if may {
            return Ok(());
        }
        self.note(action, object, AuditOutcome::Forbidden);
        Err(forbidden(action))
    }

    fn note(&self, action: &str, object: &str, outcome: AuditOutcome) {
        let event = AuditEvent::new(self.who.key(), action, object, outcome);
        let event = event.by_user(self.who.user_name());
        self.door.audit.note(self.peer, &event);
    }
}

fn forbidden(action: &str) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        format!("you may not do that ({action})"),
        "a superadmin gives permissions to keys (tanda key --help), an administrator to users \
         (tanda user --help)",
    )
}

/// What a request shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    /// Of `Basic`, when there is one.
    user: Option<String>,
    secret: Option<String>,
}

fn shown(headers: &HeaderMap) -> Shown {
    read(headers).unwrap_or_default()
}

fn read(headers: &HeaderMap) -> Option<Shown> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        let secret = Some(rest.to_owned());
        return Some(Shown { user: None, secret });
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = String::from_utf8(base64::decode_leniently(rest)?).ok()?;
        let (user, secret) = pair.split_once(':')?;
        return Some(Shown {
            user: Some(user.to_owned()).filter(|user| !user.is_empty()),
            secret: Some(secret.to_owned()),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_as_bearer_or_as_a_password() {
        let secret = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            shown(&headers).secret
        };
        assert_eq!(secret("Bearer key").as_deref(), Some("key"));
        assert_eq!(secret("bearer  key ").as_deref(), Some("key"));
        // anybody:key, and :key
        assert_eq!(secret("Basic YW55Ym9keTprZXk=").as_deref(), Some("key"));
        assert_eq!(secret("basic OmtleQ==").as_deref(), Some("key"));
        for none in ["", "key", "Bearer", "Digest key", "Basic !", "Basic a2V5"] {
            assert_eq!(secret(none), None, "{none}");
        }
        assert_eq!(shown(&HeaderMap::new()), Shown::default());
    }
}
