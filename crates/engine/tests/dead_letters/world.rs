//! A broker with declared queues, whose messages have names.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses a part of it"
)]

use std::collections::BTreeMap;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, BindingSpec, ConnId, ConnLimits, Content, DeclareQueue,
    DeliveryBatch, DeliveryItem, Destination, EngineConfig, Event, ExchangeSpec, Form, LeaseMode,
    Lsn, MessageId, Output, PublishBatch, PublishItem, PublishResult, PublishTarget, QueueCounts,
    QueueId, ReplyTo, Request, SettleBatch, SettleItem, SettleQueue, Settlement, Span, SubId,
    SubscribeSpec, VhostId,
};
use tanda_wire::amqp::{Properties, Property, ShortStr, Table, TableWriter, Value};

use crate::harness::{CONN, Harness};

pub(crate) const REJECT: Settlement = Settlement::Nack { requeue: false };
pub(crate) const REQUEUE: Settlement = Settlement::Nack { requeue: true };

pub(crate) struct World {
    pub(crate) h: Harness,
    pub(crate) held: Vec<Got>,
    next_conn: u64,
}

/// A delivered message.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) queue: String,
    pub(crate) name: String,
    pub(crate) counts_returns: bool,
    /// Who got it.
    pub(crate) conn: ConnId,
    /// How often it was delivered.
    pub(crate) deliveries: u32,
    queue_id: QueueId,
    id: MessageId,
    content: Vec<u8>,
}

/// A message to publish.
#[derive(Clone, Copy, Default)]
pub(crate) struct Msg<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) key: &'a str,
    pub(crate) name: &'a str,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) cc: &'a [&'a str],
    pub(crate) transient: bool,
    pub(crate) priority: u8,
}

impl<'a> Msg<'a> {
    pub(crate) fn to(key: &'a str, name: &'a str) -> Self {
        Self {
            key,
            name,
            ..Self::default()
        }
    }
}

impl Got {
    /// What it says of its deaths, newest first: `queue reason*count exchange/keys`.
    pub(crate) fn deaths(&self) -> Vec<String> {
        let content = Content::new(Form::Amqp, &self.content);
        let properties = Properties::decode(content.properties()).unwrap();
        let headers = properties.headers().unwrap_or_default();
        let Some(Value::Array(deaths)) = headers.find(b"x-death").unwrap() else {
            return Vec::new();
        };
        let lines = deaths.iter().map(|it| {
            let Value::Table(death) = it.unwrap().value else {
                panic!("no table");
            };
            let find = |key: &str| death.find(key.as_bytes()).unwrap();
            let text = |key: &str| text_of(&find(key).unwrap());
            let Some(Value::Array(keys)) = find("routing-keys") else {
                panic!("no keys");
            };
            let keys: Vec<_> = keys.iter().map(|it| text_of(&it.unwrap().value)).collect();
            let count = find("count").unwrap().as_i64().unwrap();
            let (queue, reason, exchange) = (text("queue"), text("reason"), text("exchange"));
            let line = format!("{queue} {reason}*{count} {exchange}/{}", keys.join("+"));
            match find("original-expiration") {
                Some(expiration) => format!("{line} ({})", text_of(&expiration)),
                None => line,
            }
        });
        lines.collect()
    }

    pub(crate) fn routing_key(&self) -> String {
        let content = Content::new(Form::Amqp, &self.content);
        format!("{}/{}", content.exchange(), content.routing_key())
    }
}

fn text_of(value: &Value<'_>) -> String {
    String::from_utf8_lossy(value.as_long_string().unwrap()).into_owned()
}

pub(crate) fn table(entries: &[(&str, Value<'_>)]) -> Bytes {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out);
    for (key, value) in entries {
        writer.value(ShortStr::clip(key), value);
    }
    out.into()
}

fn content(msg: &Msg<'_>) -> Vec<u8> {
    let mut headers = Vec::new();
    TableWriter::new(&mut headers).array(ShortStr::clip("CC"), |keys| {
        for key in msg.cc {
            keys.value(&Value::text(key));
        }
    });
    let expiration = msg.ttl_ms.map(|ms| ms.to_string());
    let mut set = vec![Property::DeliveryMode(if msg.transient { 1 } else { 2 })];
    if msg.priority > 0 {
        set.push(Property::Priority(msg.priority));
    }
    if !msg.cc.is_empty() {
        set.push(Property::Headers(Table::new(&headers).unwrap()));
    }
    if let Some(expiration) = &expiration {
        set.push(Property::Expiration(ShortStr::clip(expiration)));
    }
    let mut properties = Vec::new();
    Properties::EMPTY.edited(&mut properties, &set, &[]);
    let mut out = Vec::new();
    for name in [msg.exchange, msg.key] {
        out.push(u8::try_from(name.len()).unwrap());
        out.extend_from_slice(name.as_bytes());
    }
    for part in [properties.as_slice(), msg.name.as_bytes()] {
        out.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

pub(crate) fn publish_batch(msg: &Msg<'_>) -> PublishBatch {
    let mut data = content(msg);
    let content = Span {
        start: 0,
        len: u32::try_from(data.len()).unwrap(),
    };
    let extra_keys = msg.cc.iter().map(|key| {
        let start = u32::try_from(data.len()).unwrap();
        data.extend_from_slice(key.as_bytes());
        let len = u32::try_from(key.len()).unwrap();
        Span { start, len }
    });
    let extra_keys: Vec<_> = extra_keys.collect();
    let item = PublishItem {
        target: PublishTarget::Route,
        content,
        form: Form::Amqp,
        extra_keys: Span {
            start: 0,
            len: u32::try_from(extra_keys.len()).unwrap(),
        },
        ttl_ms: msg.ttl_ms,
        transient: msg.transient,
        priority: msg.priority,
        ..PublishItem::default()
    };
    PublishBatch {
        data: data.into(),
        items: vec![item],
        extra_keys,
        ..PublishBatch::default()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(EngineConfig {
            segment_shift: 12,
            page_messages: 3,
            lane_hot: 2,
            ..EngineConfig::default()
        })
    }

    pub(crate) fn with(config: EngineConfig) -> Self {
        Self {
            h: Harness::with_config(config),
            held: Vec::new(),
            next_conn: 100,
        }
    }

    pub(crate) fn queue(&mut self, name: &str, args: &[(&str, Value<'_>)]) {
        let queue = DeclareQueue {
            name: name.to_owned(),
            durable: true,
            args: table(args),
            ..DeclareQueue::default()
        };
        match self.h.admin(AdminRequest::DeclareQueue(Box::new(queue))) {
            AdminReply::QueueDeclared(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn exchange(&mut self, name: &str, kind: &str) {
        let spec = ExchangeSpec {
            name: name.to_owned(),
            kind: kind.to_owned(),
            durable: true,
            ..ExchangeSpec::default()
        };
        match self.h.admin(AdminRequest::DeclareExchange(Box::new(spec))) {
            AdminReply::ExchangeDeclared(Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn bind(&mut self, source: &str, queue: &str, key: &str) {
        let spec = binding(source, queue, key);
        match self.h.admin(AdminRequest::Bind(Box::new(spec))) {
            AdminReply::Bound(Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn unbind(&mut self, source: &str, queue: &str, key: &str) {
        let spec = binding(source, queue, key);
        match self.h.admin(AdminRequest::Unbind(Box::new(spec))) {
            AdminReply::Unbound(Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }

    /// The result, and the position that it waits for; then passes.
    pub(crate) fn publish(&mut self, msg: &Msg<'_>) -> (PublishResult, Lsn) {
        let reply = ReplyTo {
            conn: CONN,
            token: self.h.token(),
        };
        let batch = publish_batch(msg);
        let mut out = self.h.handle(Request::Publish { reply, batch });
        let answer = out.remove(0);
        self.take(out);
        self.run();
        match answer.event {
            Event::Published { results, .. } => (results[0], answer.after),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn send(&mut self, msg: &Msg<'_>) {
        let (result, _) = self.publish(msg);
        assert!(matches!(result, PublishResult::Stored(_)), "{result:?}");
    }

    pub(crate) fn consume(&mut self, queue: &str) -> SubId {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        let limits = ConnLimits {
            outbound_bytes_max: 1 << 30,
            subscriptions_max: 10,
        };
        let out = self.h.handle(Request::Connect { conn, limits });
        self.take(out);
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            lease: LeaseMode::Connection,
            ..SubscribeSpec::default()
        };
        let sub = SubId { conn, token: 1 };
        let out = self.h.handle(Request::Subscribe { sub, spec });
        self.take(out);
        self.run();
        sub
    }

    pub(crate) fn disconnect(&mut self, sub: SubId) {
        let out = self.h.handle(Request::Disconnect { conn: sub.conn });
        self.take(out);
        self.run();
    }

    pub(crate) fn run(&mut self) {
        let out = self.h.run();
        self.take(out);
    }

    /// Lets time pass, stopping wherever the engine has something to do.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.h.now.after_ms(ms);
        while let Some(next) = self.h.engine.next_deadline().filter(|next| *next <= end) {
            self.h.now = self.h.now.max(next);
            self.run();
        }
        self.h.now = end;
        self.run();
    }

    pub(crate) fn take(&mut self, out: Vec<Output>) {
        for output in out {
            if let Event::Delivery { batch, .. } = output.event {
                for item in &batch.items {
                    let got = self.got(output.conn, &batch, item);
                    self.held.push(got);
                }
            }
        }
    }

    pub(crate) fn got(&self, conn: ConnId, batch: &DeliveryBatch, item: &DeliveryItem) -> Got {
        let content = if item.at == DeliveryItem::RESOLVED {
            batch.content(item).to_vec()
        } else {
            let whole = self
                .h
                .journal
                .content(item.at, item.len)
                .expect("a content");
            Content::new(item.form, &whole)
                .without_attributes()
                .to_vec()
        };
        let payload = Content::new(item.form, &content).payload().unwrap();
        Got {
            queue: batch.queue.to_string(),
            name: String::from_utf8(payload.to_vec()).unwrap(),
            counts_returns: batch.counts_returns,
            conn,
            deliveries: item.deliveries,
            queue_id: batch.queue_id,
            id: item.id,
            content,
        }
    }

    /// Settles the newest delivery of a message, then passes.
    pub(crate) fn settle(&mut self, name: &str, settlement: Settlement) -> Got {
        let at = self.held.iter().rposition(|it| it.name == name);
        let got = self
            .held
            .remove(at.unwrap_or_else(|| panic!("{name} is not held")));
        let reply = ReplyTo {
            conn: CONN,
            token: self.h.token(),
        };
        let batch = settle_batch(&got, settlement);
        let out = self.h.handle(Request::Settle { reply, batch });
        self.take(out);
        self.run();
        got
    }

    /// The newest delivery of a message.
    pub(crate) fn newest(&self, name: &str) -> &Got {
        let found = self.held.iter().rfind(|it| it.name == name);
        found.unwrap_or_else(|| panic!("{name} is not held"))
    }

    pub(crate) fn counts(&mut self, name: &str) -> QueueCounts {
        let name = name.to_owned();
        match self.h.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        }) {
            AdminReply::Inspected(Ok(details)) => details.counts,
            other => panic!("{other:?}"),
        }
    }

    /// One pass; true when there is more to do.
    pub(crate) fn pass(&mut self) -> bool {
        let (now, h) = (self.h.now, &mut self.h);
        let mut out = Vec::new();
        let more = h.engine.run(now, &mut h.journal, &mut out);
        h.engine.assert_invariants();
        self.take(out);
        more
    }

    /// Like [`Self::counts`], without a pass.
    pub(crate) fn counts_now(&mut self, name: &str) -> QueueCounts {
        let name = name.to_owned();
        let reply = ReplyTo {
            conn: CONN,
            token: self.h.token(),
        };
        let request = AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        };
        let mut out = Vec::new();
        let (now, h) = (self.h.now, &mut self.h);
        let request = Request::Admin { reply, request };
        h.engine.handle(now, &mut h.journal, request, &mut out);
        match out.remove(0).event {
            Event::Admin { reply, .. } => match *reply {
                AdminReply::Inspected(Ok(details)) => details.counts,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn delete(&mut self, name: &str) {
        let request = AdminRequest::RemoveQueue {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
            if_unused: false,
            if_empty: false,
        };
        match self.h.admin(request) {
            AdminReply::QueueRemoved(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn depths<const N: usize>(&mut self, names: [&str; N]) -> [u64; N] {
        names.map(|name| self.counts(name).depth)
    }

    /// All that is in these queues and not held, by queue. It comes back to its place after it.
    pub(crate) fn all_names(&mut self, queues: &[&str]) -> BTreeMap<String, Vec<String>> {
        let held = core::mem::take(&mut self.held);
        let subs: Vec<_> = queues.iter().map(|queue| self.consume(queue)).collect();
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for queue in queues {
            all.insert((*queue).to_owned(), Vec::new());
        }
        for got in self.held.drain(..) {
            all.entry(got.queue).or_default().push(got.name);
        }
        for sub in subs {
            self.disconnect(sub);
        }
        self.held = held;
        all
    }
}

fn binding(source: &str, queue: &str, key: &str) -> BindingSpec {
    BindingSpec {
        vhost: VhostId::DEFAULT,
        source: source.to_owned(),
        destination: Destination::Queue(queue.to_owned()),
        key: key.to_owned(),
        args: Bytes::new(),
    }
}

pub(crate) fn settle_batch(got: &Got, settlement: Settlement) -> SettleBatch {
    SettleBatch {
        items: vec![SettleItem {
            queue: SettleQueue::Id(got.queue_id),
            id: got.id,
            settlement,
        }],
        ..SettleBatch::default()
    }
}

/// Arguments of a queue whose dead letters go to the default exchange with this key.
pub(crate) fn dead_to(key: &str) -> Vec<(&'static str, Value<'_>)> {
    vec![
        ("x-dead-letter-exchange", Value::text("")),
        ("x-dead-letter-routing-key", Value::text(key)),
    ]
}
