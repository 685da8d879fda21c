//! A broker with queues `q1` to `q4`, and shorthands for its exchanges and bindings.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, BindingSpec, Destination, EngineConfig, Event, ExchangeSpec, Form,
    Lsn, Output, PublishBatch, PublishItem, PublishResult, PublishTarget, ReplyTo, Request, Span,
    TopologyCode, TopologyError, VhostId,
};
use tanda_wire::amqp::{PropertyValues, ShortStr, Table, TableWriter, Value};

use crate::harness::{CONN, Harness};

/// What requests came to: nothing, or code and text.
pub(crate) type Done = Result<(), (TopologyCode, String)>;

/// A message: exchange, key, headers, more keys.
#[derive(Clone, Copy, Default)]
pub(crate) struct Msg<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) key: &'a str,
    pub(crate) headers: &'a [(&'a str, Value<'a>)],
    pub(crate) extra: &'a [&'a str],
    pub(crate) vhost: VhostId,
    pub(crate) transient: bool,
    pub(crate) target: PublishTarget,
    /// FireMQ's headers, a MessagePack map, instead of AMQP's.
    pub(crate) fire: Option<&'a [u8]>,
}

pub(crate) struct World {
    pub(crate) h: Harness,
}

pub(crate) const QUEUES: [&str; 4] = ["q1", "q2", "q3", "q4"];

impl World {
    pub(crate) fn new() -> Self {
        Self::with(EngineConfig {
            segment_shift: 16,
            ..EngineConfig::default()
        })
    }

    pub(crate) fn with(config: EngineConfig) -> Self {
        let mut h = Harness::with_config(config);
        for name in QUEUES {
            h.create_plain(name);
        }
        Self { h }
    }

    pub(crate) fn ask(&mut self, request: AdminRequest) -> Done {
        let result = match self.h.admin(request) {
            AdminReply::VhostChanged(result)
            | AdminReply::ExchangeDeclared(result)
            | AdminReply::ExchangeDeleted(result)
            | AdminReply::Bound(result)
            | AdminReply::Unbound(result) => result,
            AdminReply::VhostDeleted(result) => result.map(drop),
            other => panic!("{other:?}"),
        };
        result.map_err(|TopologyError { code, text }| (code, text))
    }

    /// Declares a durable exchange.
    pub(crate) fn exchange(&mut self, name: &str, kind: &str) {
        assert_eq!(self.declare(durable(name, kind)), Ok(()));
    }

    pub(crate) fn declare(&mut self, spec: ExchangeSpec) -> Done {
        self.ask(AdminRequest::DeclareExchange(Box::new(spec)))
    }

    pub(crate) fn delete(&mut self, name: &str, if_unused: bool) -> Done {
        self.ask(AdminRequest::DeleteExchange {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
            if_unused,
        })
    }

    pub(crate) fn bind(&mut self, source: &str, to: &str, key: &str) {
        assert_eq!(self.try_bind(source, to, key, &[]), Ok(()));
    }

    /// A name that begins with `q` is a queue's.
    pub(crate) fn try_bind(
        &mut self,
        source: &str,
        to: &str,
        key: &str,
        args: &[(&str, Value<'_>)],
    ) -> Done {
        self.ask(AdminRequest::Bind(binding(source, to, key, args)))
    }

    pub(crate) fn unbind(
        &mut self,
        source: &str,
        to: &str,
        key: &str,
        args: &[(&str, Value<'_>)],
    ) -> Done {
        self.ask(AdminRequest::Unbind(binding(source, to, key, args)))
    }

    pub(crate) fn delete_queue(&mut self, name: &str) {
        let name = name.to_owned();
        let reply = self.h.admin(AdminRequest::DeleteQueue {
            vhost: VhostId::DEFAULT,
            name,
        });
        assert_eq!(reply, AdminReply::Deleted(Ok(())));
    }

    /// Publishes a message; the result and what it waits for.
    pub(crate) fn publish(&mut self, msg: &Msg<'_>) -> (PublishResult, Lsn) {
        let output = self.publish_all(msg).pop().unwrap();
        match output.event {
            Event::Published { results, .. } => (results[0], output.after),
            other => panic!("{other:?}"),
        }
    }

    /// Publishes a message; all that is said.
    pub(crate) fn publish_all(&mut self, msg: &Msg<'_>) -> Vec<Output> {
        let (data, content, extra_keys) = message(msg);
        let item = PublishItem {
            target: msg.target,
            content,
            form: if msg.fire.is_some() {
                Form::Fire
            } else {
                Form::Amqp
            },
            extra_keys: Span {
                start: 0,
                len: u32::try_from(extra_keys.len()).unwrap(),
            },
            transient: msg.transient,
            ..PublishItem::default()
        };
        let reply = ReplyTo {
            conn: CONN,
            token: self.h.token(),
        };
        let batch = PublishBatch {
            vhost: msg.vhost,
            data,
            items: vec![item],
            extra_keys,
            ..PublishBatch::default()
        };
        self.h.handle(Request::Publish { reply, batch })
    }

    /// Messages that each of the queues has got since the last call.
    pub(crate) fn depths(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        for name in QUEUES {
            let name = name.to_owned();
            let reply = self.h.admin(AdminRequest::InspectQueue {
                vhost: VhostId::DEFAULT,
                name,
            });
            all.push(match reply {
                AdminReply::Inspected(Ok(details)) => details.counts.depth,
                AdminReply::Inspected(Err(_)) => 0,
                other => panic!("{other:?}"),
            });
        }
        all
    }

    /// The queues that a message goes to, by their numbers.
    pub(crate) fn route(&mut self, msg: &Msg<'_>) -> Vec<usize> {
        let before = self.depths();
        let (result, _) = self.publish(msg);
        let after = self.depths();
        let mut got = Vec::new();
        for n in 0..QUEUES.len() {
            match after[n] - before[n] {
                0 => {}
                1 => got.push(n + 1),
                more => panic!("q{} got it {more} times", n + 1),
            }
        }
        match result {
            PublishResult::Stored(_) => assert!(!got.is_empty(), "stored nowhere"),
            PublishResult::Unroutable => assert!(got.is_empty(), "{got:?} got it"),
            other => panic!("{other:?}"),
        }
        got
    }

    pub(crate) fn to(&mut self, exchange: &str, key: &str) -> Vec<usize> {
        self.route(&Msg {
            exchange,
            key,
            ..Msg::default()
        })
    }

    /// All exchanges that somebody declared, by name.
    pub(crate) fn exchanges(&mut self) -> Vec<String> {
        let vhost = VhostId::DEFAULT;
        match self.h.admin(AdminRequest::ListExchanges { vhost }) {
            AdminReply::Exchanges(Ok(all)) => {
                let names = all.into_iter().map(|it| it.name);
                names
                    .filter(|it| !it.is_empty() && !it.starts_with("amq."))
                    .collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// All bindings, as text.
    pub(crate) fn bindings(&mut self) -> Vec<String> {
        let vhost = VhostId::DEFAULT;
        match self.h.admin(AdminRequest::ListBindings { vhost }) {
            AdminReply::Bindings(Ok(all)) => {
                let texts = all.into_iter().map(|it| {
                    let (Destination::Queue(to) | Destination::Exchange(to)) = it.destination;
                    let args = if it.args.is_empty() { "" } else { " with args" };
                    format!("{} -{}-> {to}{args}", it.source, it.key)
                });
                texts.collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn durable(name: &str, kind: &str) -> ExchangeSpec {
    ExchangeSpec {
        name: name.to_owned(),
        kind: kind.to_owned(),
        durable: true,
        ..ExchangeSpec::default()
    }
}

pub(crate) fn table(entries: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out);
    for (key, value) in entries {
        writer.value(ShortStr::new(key.as_bytes()).unwrap(), value);
    }
    out
}

pub(crate) fn binding(
    source: &str,
    to: &str,
    key: &str,
    args: &[(&str, Value<'_>)],
) -> Box<BindingSpec> {
    let destination = if to.starts_with('q') {
        Destination::Queue(to.to_owned())
    } else {
        Destination::Exchange(to.to_owned())
    };
    Box::new(BindingSpec {
        vhost: VhostId::DEFAULT,
        source: source.to_owned(),
        destination,
        key: key.to_owned(),
        args: table(args).into(),
    })
}

/// A message as a session hands it over.
fn message(msg: &Msg<'_>) -> (Bytes, Span, Vec<Span>) {
    let mut data = Vec::new();
    let span = |start: usize, end: usize| Span {
        start: u32::try_from(start).unwrap(),
        len: u32::try_from(end - start).unwrap(),
    };
    let extra = msg.extra.iter().map(|key| {
        let start = data.len();
        data.extend_from_slice(key.as_bytes());
        span(start, data.len())
    });
    let extra: Vec<_> = extra.collect();
    let headers = table(msg.headers);
    let values = PropertyValues {
        headers: Some(Table::new(&headers).unwrap()).filter(|it| !it.is_empty()),
        ..PropertyValues::default()
    };
    let mut properties = Vec::new();
    match msg.fire {
        None => values.encode(&mut properties),
        // No props.
        Some(headers) => properties.extend([&[0; 4], headers].concat()),
    }
    let start = data.len();
    for name in [msg.exchange, msg.key] {
        data.push(u8::try_from(name.len()).unwrap());
        data.extend_from_slice(name.as_bytes());
    }
    for long in [properties.as_slice(), b"body"] {
        data.extend_from_slice(&u32::try_from(long.len()).unwrap().to_be_bytes());
        data.extend_from_slice(long);
    }
    let content = span(start, data.len());
    (data.into(), content, extra)
}
