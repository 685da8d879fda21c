//! From the protocol header to `connection.open-ok`.
//!
//! ```text
//! header ──► start ──► start-ok ──► (who is it?) ──► tune ──► tune-ok ──► open ──► open-ok
//! ```

use std::sync::Arc;

use tanda_engine::{AdminReply, AdminRequest, ConnLimits, Event, Millis, Request, VhostId};
use tanda_wire::amqp::frame::FRAME_MIN_SIZE;
use tanda_wire::amqp::{
    Arguments, Frame, FrameType, LongStr, Method, MethodId, ReplyCode, Scope, ShortStr, Table,
    TableWriter, Value, connection,
};

use super::fault::Fault;
use super::link::{Capabilities, DENIALS_MAX, Link};
use super::names;
use super::open::bad_method;
use super::pending::Waiting;
use super::sasl;
use crate::audit::{AuditEvent, AuditOutcome};
use crate::login::{Identity, LoginError};

/// Channels are at least allowed one.
const CHANNEL_MIN: u16 = 1;

/// What must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `connection.start-ok`.
    StartOk,
    /// The answer to who it is.
    Login,
    /// `connection.tune-ok`.
    TuneOk,
    /// `connection.open`.
    Open,
    /// The engine's answer to that.
    Vhost,
}

/// A connection that is not open yet.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) step: Step,
    /// When the peer has waited too long.
    pub(super) deadline: Millis,
    mechanism: &'static str,
    /// Who asked to be let in.
    account: String,
    heartbeat_ms: u64,
}

/// How a step went.
#[derive(Debug)]
pub(super) enum Turn {
    /// The next one follows.
    Goes,
    /// The connection is open; heartbeats come so often.
    Opened(u64),
    /// The peer gives up: nothing more is expected.
    GivenUp,
    /// It ends without a word.
    Silent,
    /// It ends with a `connection.close`.
    Failed(Fault),
}

impl Handshake {
    /// The protocol header was right.
    pub(super) fn begin(link: &mut Link, deadline: Millis, external: bool) -> Self {
        let properties = server_properties(link);
        let start = connection::Start {
            version_major: 0,
            version_minor: 9,
            server_properties: Table::new(&properties).unwrap_or_default(),
            mechanisms: LongStr::clip(sasl::offered(external)),
            locales: LongStr::clip("en_US"),
        };
        link.outbound.method(0, start);
        Self {
            step: Step::StartOk,
            deadline,
            mechanism: "",
            account: String::new(),
            heartbeat_ms: 0,
        }
    }

    /// Whether frames are taken now.
    pub(super) const fn takes_frames(&self) -> bool {
        match self.step {
            Step::StartOk | Step::TuneOk | Step::Open => true,
            Step::Login | Step::Vhost => false,
        }
    }

    /// Takes one frame.
    pub(super) fn on_frame(
        &mut self,
        link: &mut Link,
        frame: Frame<'_>,
        certificate: Option<&str>,
    ) -> Turn {
        if frame.frame_type == FrameType::Heartbeat && frame.channel == 0 {
            return Turn::Goes;
        }
        if frame.frame_type != FrameType::Method || frame.channel != 0 {
            return self.fail(Fault::new(
                ReplyCode::UnexpectedFrame,
                "a method was expected",
            ));
        }
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(error) => return self.fail(bad_method(&error)),
        };
        let Method::Connection(method) = method else {
            return self.fail(unexpected(method.id()));
        };
        match (self.step, method) {
            (_, connection::Method::Close(_)) => {
                link.outbound.method(0, connection::CloseOk {});
                Turn::GivenUp
            }
            (Step::StartOk, connection::Method::StartOk(it)) => {
                self.on_start_ok(link, &it, certificate)
            }
            (Step::TuneOk, connection::Method::TuneOk(it)) => self.on_tune_ok(link, it),
            (Step::Open, connection::Method::Open(it)) => self.on_open(link, it),
            (_, method) => self.fail(unexpected(method.id())),
        }
    }

    /// Who has not logged in is told nothing.
    pub(super) const fn says_why(&self) -> bool {
        match self.step {
            Step::StartOk | Step::Login => false,
            Step::TuneOk | Step::Open | Step::Vhost => true,
        }
    }

    fn fail(&self, fault: Fault) -> Turn {
        if self.says_why() {
            Turn::Failed(fault)
        } else {
            Turn::Silent
        }
    }

    fn on_start_ok(
        &mut self,
        link: &mut Link,
        start_ok: &connection::StartOk<'_>,
        certificate: Option<&str>,
    ) -> Turn {
        if start_ok.client_properties.validate().is_err() {
            return Turn::Silent;
        }
        link.capabilities = capabilities(start_ok.client_properties);
        let login = sasl::login(start_ok.mechanism, start_ok.response, certificate);
        match login {
            Ok(login) => {
                self.mechanism = login.mechanism;
                self.account = login.account();
                link.login = Some(login);
                self.step = Step::Login;
                Turn::Goes
            }
            Err(sasl::NoLogin::UnknownMechanism) => Turn::Silent,
            Err(sasl::NoLogin::BadResponse) => {
                self.mechanism = "PLAIN";
                self.refuse(link)
            }
        }
    }

    fn refuse(&self, link: &Link) -> Turn {
        if !link.capabilities.authentication_failure_close {
            return Turn::Silent;
        }
        let mechanism = self.mechanism;
        let text = format!(
            "Login was refused using authentication mechanism {mechanism}. \
             For details see the broker logfile."
        );
        Turn::Failed(Fault::new(ReplyCode::AccessRefused, text).fatal())
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
        match answer {
            Ok(identity) => link.identity = identity,
            Err(error) => {
                let reason = match error {
                    LoginError::Refused => "wrong user or password",
                    LoginError::LoopbackOnly => "this user may come from loopback only",
                    LoginError::Overloaded => "too many logins are being checked",
                };
                if link.audit.len() < DENIALS_MAX {
                    let outcome = AuditOutcome::Refused(reason);
                    link.audit
                        .push(AuditEvent::new(None, "login", &self.account, outcome));
                }
                return self.refuse(link);
            }
        }
        let tune = connection::Tune {
            channel_max: link.config.channel_max,
            frame_max: link.config.frame_max.max(FRAME_MIN_SIZE),
            heartbeat: link.config.heartbeat_s,
        };
        link.outbound.method(0, tune);
        self.step = Step::TuneOk;
        Turn::Goes
    }

    fn on_tune_ok(&mut self, link: &mut Link, tune_ok: connection::TuneOk) -> Turn {
        let frame_max = Negotiated {
            name: "frame_max",
            min: FRAME_MIN_SIZE,
            max: link.config.frame_max.max(FRAME_MIN_SIZE),
            asked: tune_ok.frame_max,
        };
        let channel_max = Negotiated {
            name: "channel_max",
            min: u32::from(CHANNEL_MIN),
            max: u32::from(link.config.channel_max),
            asked: u32::from(tune_ok.channel_max),
        };
        for negotiated in [frame_max, channel_max] {
            if let Err(fault) = negotiated.check() {
                return Turn::Failed(fault.by(connection::Tune::ID));
            }
        }
        link.frame_max = tanda_wire::amqp::frame::effective_frame_max(tune_ok.frame_max);
        link.channel_max = match tune_ok.channel_max {
            0 => u16::MAX,
            max => max,
        };
        self.heartbeat_ms = u64::from(tune_ok.heartbeat) * 1_000;
        self.step = Step::Open;
        Turn::Goes
    }

    fn on_open(&mut self, link: &mut Link, open: connection::Open<'_>) -> Turn {
        let name = match names::text(open.virtual_host) {
            Ok(name) => name.to_owned(),
            Err(fault) => return Turn::Failed(fault),
        };
        let limits = ConnLimits {
            outbound_bytes_max: link.config.outbound_bytes_max,
            subscriptions_max: link.config.consumers_max,
        };
        link.requests.push(Request::Connect {
            conn: link.conn,
            limits,
        });
        link.is_connected = true;
        link.vhost_name.clone_from(&name);
        link.ask(Waiting::Vhost, AdminRequest::OpenVhost { name });
        self.step = Step::Vhost;
        Turn::Goes
    }

    /// The engine answers.
    pub(super) fn on_event(&mut self, link: &mut Link, event: Event) -> Turn {
        let (token, vhost) = match event {
            Event::Admin { token, reply } => {
                let AdminReply::Vhost(vhost) = *reply else {
                    return Turn::Goes;
                };
                (token, vhost)
            }
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
            | Event::Got { .. }
            | Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. } => return Turn::Goes,
        };
        if !matches!(link.pending.remove(token), Some(Waiting::Vhost)) {
            return Turn::Goes;
        }
        let result = vhost.map_err(|error| {
            let fault = Fault::of_topology(error);
            match fault.code.scope() {
                // Of what concerns channels elsewhere, the connection has nothing.
                Scope::Channel | Scope::None => Fault::new(ReplyCode::NotAllowed, fault.text),
                Scope::Connection => fault,
            }
        });
        match result.and_then(|vhost| enter(link, vhost)) {
            Ok(()) => {
                link.outbound.method(0, connection::OpenOk {});
                Turn::Opened(self.heartbeat_ms)
            }
            Err(fault) => Turn::Failed(fault.fatal().by(connection::Open::ID)),
        }
    }
}

/// The virtual host exists; may the peer enter it?
fn enter(link: &mut Link, vhost: VhostId) -> Result<(), Fault> {
    let name = &link.vhost_name;
    if !link.identity.may_open(name) {
        let user = link.identity.name();
        let text = format!("access to vhost '{name}' refused for user '{user}'");
        return Err(Fault::new(ReplyCode::NotAllowed, text));
    }
    link.vhost = vhost;
    Ok(())
}

fn unexpected(method: MethodId) -> Fault {
    let text = "unexpected method in connection state opening";
    Fault::new(ReplyCode::ChannelError, text).by(method)
}

/// A number that both sides have to agree on.
struct Negotiated {
    name: &'static str,
    min: u32,
    /// 0: no limit.
    max: u32,
    asked: u32,
}

impl Negotiated {
    fn check(&self) -> Result<(), Fault> {
        let Self {
            name,
            min,
            max,
            asked,
        } = self;
        let detail = if *asked == 0 { " (no limit)" } else { "" };
        let text = if *asked != 0 && asked < min {
            format!("negotiated {name} = {asked} is lower than the minimum allowed value ({min})")
        } else if *max != 0 && (*asked == 0 || asked > max) {
            format!(
                "negotiated {name} = {asked}{detail} is higher than the maximum allowed value \
                 ({max})"
            )
        } else {
            return Ok(());
        };
        Err(Fault::new(ReplyCode::NotAllowed, text))
    }
}

/// What the server says of itself.
fn server_properties(link: &Link) -> Vec<u8> {
    const CAPABILITIES: &[&str] = &[
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ];
    let config = &link.config;
    let mut entries = Vec::new();
    let mut writer = TableWriter::new(&mut entries);
    writer.table(ShortStr::clip("capabilities"), |table| {
        for name in CAPABILITIES {
            table.value(ShortStr::clip(name), &Value::Bool(true));
        }
    });
    let texts = [
        ("cluster_name", config.cluster_name.as_str()),
        ("information", "Speaks AMQP 0-9-1 as RabbitMQ does"),
        ("platform", config.platform.as_str()),
        ("product", config.product.as_str()),
        ("version", config.version.as_str()),
    ];
    for (name, text) in texts {
        writer.value(ShortStr::clip(name), &Value::text(text));
    }
    entries
}

/// What the client's properties say it can bear.
fn capabilities(properties: Table<'_>) -> Capabilities {
    let Ok(Some(Value::Table(table))) = properties.find(b"capabilities") else {
        return Capabilities::default();
    };
    let has = |name: &[u8]| matches!(table.find(name), Ok(Some(Value::Bool(true))));
    Capabilities {
        authentication_failure_close: has(b"authentication_failure_close"),
        consumer_cancel_notify: has(b"consumer_cancel_notify"),
        connection_blocked: has(b"connection.blocked"),
    }
}
