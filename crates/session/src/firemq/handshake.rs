//! From the first frame to `welcome`.
//!
//! ```text
//! hello ──► (who is it?) ──► (which virtual host?) ──► welcome
//! ```
//!
//! Every failure here is fatal, also those that are not later: nothing can follow a `hello` that
//! was refused, not even another one.

use std::sync::Arc;

use tanda_engine::{AdminReply, AdminRequest, ConnLimits, Event, Millis, Request, VhostId};
use tanda_wire::firemq::frame::Frame;
use tanda_wire::firemq::session::{Auth, Hello, MECHANISM_PLAIN, ServerInfo, Welcome};
use tanda_wire::firemq::{Op, PROTOCOL_VERSION, ReplyCode, capability};

use super::fault::Fault;
use super::link::{DENIALS_MAX, Link};
use super::pending::Waiting;
use crate::audit::{AuditEvent, AuditOutcome};
use crate::login::{Identity, Login, LoginError, Password, Proof};

/// Longest name of a user, in bytes.
const USER_BYTES_MAX: usize = 255;
/// Longest password, in bytes: checking one takes memory and time.
const PASSWORD_BYTES_MAX: usize = 4096;
/// The mechanism of clients that show a certificate.
const MECHANISM_EXTERNAL: &str = "external";
/// The virtual host that an empty name means.
const VHOST_DEFAULT: &str = "/";

/// What must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// `hello`.
    Hello,
    /// The answer to who it is.
    Login,
    /// The engine's answer to which virtual host.
    Vhost,
}

/// A connection that is not open yet.
#[derive(Debug)]
pub(super) struct Handshake {
    step: Step,
    /// When the peer has waited too long.
    pub(super) deadline: Millis,
    /// Who asked to be let in.
    account: String,
    heartbeat_s: u64,
}

/// What came with the connection, before its first byte.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The name in the peer's certificate.
    pub(super) certificate: Option<String>,
    /// The virtual host in the URL of a WebSocket.
    pub(super) vhost: Option<String>,
}

/// How a step went.
#[derive(Debug)]
pub(super) enum Turn {
    /// The next one follows.
    Goes,
    /// The connection is open; heartbeats come so often, in milliseconds.
    Opened(u64),
    /// The peer closes.
    GivenUp,
    /// It ends with this error.
    Failed(Fault),
}

impl Handshake {
    pub(super) const fn new(deadline: Millis) -> Self {
        Self {
            step: Step::Hello,
            deadline,
            account: String::new(),
            heartbeat_s: 0,
        }
    }

    /// Whether frames are taken now.
    pub(super) fn takes_frames(&self) -> bool {
        self.step == Step::Hello
    }

    /// Takes one frame. Requests before `hello` are 503.
    pub(super) fn on_frame(&mut self, link: &mut Link, frame: &Frame<'_>, origin: &Origin) -> Turn {
        if frame.op == Op::Close {
            return Turn::GivenUp;
        }
        if frame.op != Op::Hello {
            let text = format!("{} before hello", frame.op.name());
            let rid = tanda_wire::firemq::peek_uint(frame.header, "rid").unwrap_or(0);
            return Turn::Failed(Fault::new(ReplyCode::CommandInvalid, text).of(rid));
        }
        let done = match Hello::decode(frame.header) {
            Ok(hello) => self.on_hello(link, &hello, origin),
            Err(error) => Err(Fault::of_header(&error)),
        };
        done.map_or_else(Turn::Failed, |()| Turn::Goes)
    }

    fn on_hello(
        &mut self,
        link: &mut Link,
        hello: &Hello<'_>,
        origin: &Origin,
    ) -> Result<(), Fault> {
        if hello.ver != PROTOCOL_VERSION {
            let text = format!(
                "version {} of the protocol is not spoken here, only {PROTOCOL_VERSION}",
                hello.ver
            );
            return Err(Fault::new(ReplyCode::NotImplemented, text));
        }
        link.vhost_name = vhost(hello.vhost, origin.vhost.as_deref())?.to_owned();
        let Some(login) = login(&hello.auth, origin.certificate.as_deref()) else {
            return Err(denied(link, "plain", "no user and password"));
        };
        self.account = login.account();
        link.login = Some(login);
        self.heartbeat_s = heartbeat_s(hello.heartbeat, link.config.heartbeat_s.into());
        self.step = Step::Login;
        Ok(())
    }

    /// It was found out who it is.
    pub(super) fn on_login(
        &mut self,
        link: &mut Link,
        answer: Result<Arc<dyn Identity>, LoginError>,
    ) -> Turn {
        if self.step != Step::Login {
            return Turn::Goes;
        }
        let reason = match answer {
            Ok(identity) => {
                link.identity = identity;
                self.open(link);
                return Turn::Goes;
            }
            Err(LoginError::Refused) => "wrong user or password",
            Err(LoginError::LoopbackOnly) => "this user may come from loopback only",
            Err(LoginError::Overloaded) => "too many logins are being checked",
        };
        Turn::Failed(denied(link, &self.account, reason))
    }

    fn open(&mut self, link: &mut Link) {
        let limits = ConnLimits {
            outbound_bytes_max: link.config.outbound_bytes_max,
            subscriptions_max: link.config.subscriptions_max,
        };
        link.requests.push(Request::Connect {
            conn: link.conn,
            limits,
        });
        link.is_connected = true;
        let name = link.vhost_name.clone();
        link.ask(Waiting::Vhost, AdminRequest::OpenVhost { name });
        self.step = Step::Vhost;
    }

    /// The engine answers.
    pub(super) fn on_event(&mut self, link: &mut Link, event: Event) -> Turn {
        let (token, reply) = match event {
            Event::Admin { token, reply } => (token, reply),
            Event::StorageFailed { .. } => {
                return Turn::Failed(Fault::new(ReplyCode::InternalError, "the log failed"));
            }
            Event::Published { .. }
            | Event::Settled { .. }
            | Event::Subscribed { .. }
            | Event::SubscribeFailed { .. }
            | Event::Delivery { .. }
            | Event::SubscriptionEnded { .. }
            | Event::Committed { .. }
            | Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. }
            | Event::Got { .. } => return Turn::Goes,
        };
        let AdminReply::Vhost(vhost) = *reply else {
            return Turn::Goes;
        };
        if !matches!(link.pending.remove(token), Some(Waiting::Vhost)) {
            return Turn::Goes;
        }
        // Whatever keeps a virtual host from being opened: it is not allowed.
        let vhost = vhost.map_err(|error| Fault::new(ReplyCode::NotAllowed, error.text));
        match vhost.and_then(|vhost| enter(link, vhost)) {
            Ok(()) => {
                self.welcome(link);
                Turn::Opened(self.heartbeat_s.saturating_mul(1_000))
            }
            Err(fault) => Turn::Failed(fault),
        }
    }

    fn welcome(&self, link: &mut Link) {
        let config = Arc::clone(&link.config);
        let conn_id = link.conn.0.to_string();
        link.outbound.frame(&Welcome {
            ver: PROTOCOL_VERSION,
            server: ServerInfo {
                name: &config.server_name,
                version: &config.server_version,
            },
            conn_id: &conn_id,
            heartbeat: self.heartbeat_s,
            max_frame: config.max_frame.into(),
            caps: capability::VERSION_1.to_vec(),
        });
        link.frame_max = config.max_frame;
    }
}

/// The virtual host of a connection. One in the URL stands for an empty one in `hello`.
fn vhost<'a>(asked: &'a str, of_url: Option<&'a str>) -> Result<&'a str, Fault> {
    let of_url = of_url.filter(|name| !name.is_empty());
    match (asked, of_url) {
        ("", None) => Ok(VHOST_DEFAULT),
        ("", Some(name)) => Ok(name),
        (name, Some(other)) if name != other => {
            let text = format!("hello names the vhost '{name}', and the URL '{other}'");
            Err(Fault::new(ReplyCode::NotAllowed, text))
        }
        (name, _) => Ok(name),
    }
}

/// What can be checked; `None` when it is nothing that anybody could be let in with.
fn login(auth: &Auth<'_>, certificate: Option<&str>) -> Option<Login> {
    let (mechanism, proof) = match (auth.mech, certificate) {
        (MECHANISM_PLAIN, _) => {
            if auth.user.len() > USER_BYTES_MAX || auth.pass.len() > PASSWORD_BYTES_MAX {
                return None;
            }
            let proof = Proof::Password {
                user: auth.user.to_owned(),
                password: Password::new(auth.pass.as_bytes().to_vec()),
            };
            (MECHANISM_PLAIN, proof)
        }
        (MECHANISM_EXTERNAL, Some(name)) => {
            let name = name.to_owned();
            (MECHANISM_EXTERNAL, Proof::Certificate { name })
        }
        _ => return None,
    };
    Some(Login { mechanism, proof })
}

/// Who was turned away is not told why; the operator is.
fn denied(link: &mut Link, account: &str, reason: &'static str) -> Fault {
    if link.audit.len() < DENIALS_MAX {
        let outcome = AuditOutcome::Refused(reason);
        link.audit
            .push(AuditEvent::new(None, "login", account, outcome));
    }
    Fault::refused("the login was refused: see the broker's log for the reason")
}

/// None when the client wants none; else the smaller of what both want, 0 being no wish.
fn heartbeat_s(client: u64, server: u64) -> u64 {
    match (client, server) {
        (0, _) => 0,
        (client, 0) => client,
        (client, server) => client.min(server),
    }
}

/// The virtual host exists; may the peer enter it?
fn enter(link: &mut Link, vhost: VhostId) -> Result<(), Fault> {
    let name = &link.vhost_name;
    if !link.identity.may_open(name) {
        let user = link.identity.name();
        let text = format!("access to vhost '{name}' refused for user '{user}'");
        return Err(Fault::refused(text));
    }
    link.vhost = vhost;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heartbeat_is_the_smaller_one_and_none_for_who_wants_none() {
        let all = [(0, 60), (0, 0), (30, 60), (90, 60), (90, 0)];
        let agreed = all.map(|(client, server)| heartbeat_s(client, server));
        assert_eq!(agreed, [0, 0, 30, 60, 90]);
    }

    #[test]
    fn the_url_names_the_virtual_host_when_hello_does_not() {
        assert_eq!(vhost("", None).unwrap(), "/");
        assert_eq!(vhost("", Some("")).unwrap(), "/");
        assert_eq!(vhost("", Some("dev")).unwrap(), "dev");
        assert_eq!(vhost("dev", Some("dev")).unwrap(), "dev");
        assert_eq!(vhost("dev", None).unwrap(), "dev");
        let fault = vhost("dev", Some("prod")).unwrap_err();
        assert_eq!(fault.code, ReplyCode::NotAllowed);
    }
}
