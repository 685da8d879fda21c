//! What it costs to find the queues of a message: an engine alone, without a server.
//!
//! All bindings lead to an exchange that nothing is bound to, so that messages are routed and
//! nothing is stored; the one more step is part of the figures.

use std::time::Instant;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, BindingSpec, ConnId, ConnLimits, ContentRead, Destination, Engine,
    EngineConfig, Event, ExchangeSpec, Form, Journal, Lsn, Millis, Output, PageSlot, PublishBatch,
    PublishItem, PublishResult, ReplyTo, Request, Span, SubId, VhostId, WatchSpec,
};
use tanda_wire::amqp::{PropertyValues, ShortStr, Table, TableWriter, Value};

use crate::error::BenchError;

/// Bindings of the exchanges with many.
const BINDINGS: usize = 10_000;
/// Messages of one batch, each with a key of its own.
const MESSAGES: u32 = 1_000;
const NOW: Millis = Millis(1_000_000);
const REPLY: ReplyTo = ReplyTo {
    conn: ConnId(1),
    token: 1,
};

/// One line for each kind of route: nanoseconds per message, the best of several rounds.
pub(crate) fn run(rounds: u32) -> Result<String, BenchError> {
    let mut table = "route                                             ns/message\n".to_owned();
    for case in cases().into_iter().chain(watched_cases()) {
        let mut bench = Bench::new(&case)?;
        let batch = bench.batch(&case);
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            best = best.min(bench.measure(&batch)?);
        }
        table.push_str(&format!("{:<50}{best:>9.0}\n", case.name));
    }
    Ok(table)
}

struct Case {
    name: &'static str,
    kind: &'static str,
    bindings: usize,
    binding_key: fn(usize) -> String,
    key: fn(usize) -> String,
    /// Headers in bindings and messages.
    has_headers: bool,
    /// An exchange that somebody watches, and by which pattern.
    watched: Option<(&'static str, &'static str)>,
}

impl Case {
    const fn new(
        name: &'static str,
        kind: &'static str,
        bindings: usize,
        binding_key: fn(usize) -> String,
        key: fn(usize) -> String,
    ) -> Self {
        Self {
            name,
            kind,
            bindings,
            binding_key,
            key,
            has_headers: false,
            watched: None,
        }
    }
}

/// The third one of these is the last topic exchange of the other cases once more.
fn watched_cases() -> [Case; 5] {
    let case = |name, bindings, watched| {
        let hash: fn(usize) -> String = |n| format!("#.{n}.paid");
        let number: fn(usize) -> String = |n| format!("orders.{n}.paid");
        Case {
            watched,
            ..Case::new(name, "topic", bindings, hash, number)
        }
    };
    [
        case("topic, no binding", 0, None),
        case("the same, one watch", 0, Some(("x", "orders.#"))),
        case("topic, 10,000 bindings #.n.b", BINDINGS, None),
        case(
            "the same, another exchange is watched",
            BINDINGS,
            Some(("other", "#")),
        ),
        case(
            "the same, the exchange is watched in vain",
            BINDINGS,
            Some(("x", "#.nothing")),
        ),
    ]
}

fn cases() -> Vec<Case> {
    let case = Case::new;
    let number: fn(usize) -> String = |n| format!("orders.{n}.paid");
    let same: fn(usize) -> String = |_| "orders.7.paid".to_owned();
    let star: fn(usize) -> String = |n| format!("orders.{n}.*");
    let hash: fn(usize) -> String = |n| format!("#.{n}.paid");
    let last: fn(usize) -> String = |n| format!("orders.{n}.#");
    vec![
        case("default exchange, no such queue", "", 0, same, number),
        case("direct, one binding, one key", "direct", 1, same, same),
        case(
            "direct, 10,000 bindings",
            "direct",
            BINDINGS,
            number,
            number,
        ),
        case("fanout, one binding", "fanout", 1, same, number),
        case(
            "topic, 10,000 bindings a.n.*",
            "topic",
            BINDINGS,
            star,
            number,
        ),
        case(
            "topic, 10,000 bindings a.n.#",
            "topic",
            BINDINGS,
            last,
            number,
        ),
        case(
            "topic, 10,000 bindings #.n.b",
            "topic",
            BINDINGS,
            hash,
            number,
        ),
        Case {
            has_headers: true,
            ..case(
                "headers, 1 binding of 2 headers",
                "headers",
                1,
                number,
                number,
            )
        },
        Case {
            has_headers: true,
            ..case(
                "headers, 100 bindings of 2 headers",
                "headers",
                100,
                number,
                number,
            )
        },
    ]
}

struct Bench {
    engine: Engine,
    journal: Nowhere,
}

impl Bench {
    fn new(case: &Case) -> Result<Self, BenchError> {
        let mut journal = Nowhere(Lsn(64));
        let mut engine = Engine::new(EngineConfig::default());
        engine
            .start(NOW, &mut journal)
            .map_err(|error| BenchError::Protocol(error.problem))?;
        let mut bench = Self { engine, journal };
        if case.kind.is_empty() {
            return Ok(bench);
        }
        bench.declare("sink", "fanout")?;
        bench.declare("other", "topic")?;
        bench.declare("x", case.kind)?;
        for n in 0..case.bindings {
            bench.ask(AdminRequest::Bind(Box::new(BindingSpec {
                vhost: VhostId::DEFAULT,
                source: "x".to_owned(),
                destination: Destination::Exchange("sink".to_owned()),
                key: (case.binding_key)(n),
                args: headers(case, n).into(),
            })))?;
        }
        if let Some((exchange, pattern)) = case.watched {
            bench.watch(exchange, pattern)?;
        }
        Ok(bench)
    }

    /// Somebody watches who takes everything.
    fn watch(&mut self, exchange: &str, pattern: &str) -> Result<(), BenchError> {
        let (conn, token) = (REPLY.conn, REPLY.token);
        let limits = ConnLimits {
            outbound_bytes_max: u64::MAX,
            subscriptions_max: 1,
        };
        self.handle(Request::Connect { conn, limits });
        let spec = Box::new(WatchSpec {
            vhost: VhostId::DEFAULT,
            exchange: exchange.to_owned(),
            pattern: pattern.to_owned(),
            buffer: u32::MAX,
        });
        let sub = SubId { conn, token };
        match self.handle(Request::Watch { sub, spec }).map(|it| it.event) {
            Some(Event::Watching { result: Ok(()), .. }) => Ok(()),
            other => Err(BenchError::Protocol(format!("{other:?}"))),
        }
    }

    fn declare(&mut self, name: &str, kind: &str) -> Result<(), BenchError> {
        self.ask(AdminRequest::DeclareExchange(Box::new(ExchangeSpec {
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..ExchangeSpec::default()
        })))
    }

    fn ask(&mut self, request: AdminRequest) -> Result<(), BenchError> {
        let request = Request::Admin {
            reply: REPLY,
            request,
        };
        let answer = self.handle(request).map(|output| output.event);
        if let Some(Event::Admin { reply, .. }) = &answer
            && let AdminReply::Bound(Ok(())) | AdminReply::ExchangeDeclared(Ok(())) = &**reply
        {
            return Ok(());
        }
        Err(BenchError::Protocol(format!("{answer:?}")))
    }

    fn handle(&mut self, request: Request) -> Option<Output> {
        let mut out = Vec::new();
        self.engine
            .handle(NOW, &mut self.journal, request, &mut out);
        out.pop()
    }

    fn batch(&self, case: &Case) -> PublishBatch {
        let mut data = Vec::new();
        let exchange = if case.kind.is_empty() { "" } else { "x" };
        let items = (0..MESSAGES as usize).map(|n| {
            let start = data.len();
            for name in [exchange, &(case.key)(n)] {
                data.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
                data.extend_from_slice(name.as_bytes());
            }
            let headers = headers(case, n % case.bindings.max(1));
            let values = PropertyValues {
                headers: Table::new(&headers).ok().filter(|it| !it.is_empty()),
                ..PropertyValues::default()
            };
            let mut properties = Vec::new();
            values.encode(&mut properties);
            for long in [properties.as_slice(), b"0123456789abcdef"] {
                let len = u32::try_from(long.len()).unwrap_or(u32::MAX);
                data.extend_from_slice(&len.to_be_bytes());
                data.extend_from_slice(long);
            }
            let at = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
            PublishItem {
                content: Span {
                    start: at(start),
                    len: at(data.len() - start),
                },
                form: Form::Amqp,
                ..PublishItem::default()
            }
        });
        let items = items.collect();
        PublishBatch {
            data: Bytes::from(data),
            items,
            ..PublishBatch::default()
        }
    }

    /// Nanoseconds per message, of about a tenth of a second.
    fn measure(&mut self, batch: &PublishBatch) -> Result<f64, BenchError> {
        let mut messages = 0_u32;
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 100 {
            let batch = batch.clone();
            let output = self.handle(Request::Publish {
                reply: REPLY,
                batch,
            });
            match output.map(|output| output.event) {
                Some(Event::Published { results, .. })
                    if results.iter().all(|it| {
                        matches!(it, PublishResult::Unroutable | PublishResult::Sent { .. })
                    }) => {}
                other => return Err(BenchError::Protocol(format!("{other:?}"))),
            }
            messages = messages.saturating_add(MESSAGES);
        }
        Ok(begin.elapsed().as_secs_f64() * 1e9 / f64::from(messages))
    }
}

/// Two headers that only one binding asks for.
fn headers(case: &Case, n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if case.has_headers {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let mut writer = TableWriter::new(&mut out);
        writer.value(ShortStr::clip("customer"), &Value::I64(n));
        writer.value(ShortStr::clip("state"), &Value::text("paid"));
    }
    out
}

/// A log that keeps nothing: nothing is stored.
struct Nowhere(Lsn);

impl Journal for Nowhere {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let at = self.0;
        self.0 = Lsn(at.0 + record.len() as u64);
        at
    }

    fn end(&self) -> Lsn {
        self.0
    }

    fn read_content(&mut self, _at: Lsn, _len: u32, _into: &mut Vec<u8>) -> ContentRead {
        ContentRead::Unavailable
    }

    fn write_page(&mut self, _page: &[u8]) -> Option<PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: PageSlot) {}
}
