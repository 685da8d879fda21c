//! Headers of every op with any values: what is written reads back the same, and shortly.

use proptest::prelude::*;
use tanda_wire::firemq::consume::{
    Ack, Cancelled, Credit, Deliver, Get, GetOk, Nack, Subscribe, Unsubscribe,
};
use tanda_wire::firemq::message::{ToClient, ToServer};
use tanda_wire::firemq::publish::{Confirm, Publish, Returned};
use tanda_wire::firemq::reply::{ErrorReply, OkReply};
use tanda_wire::firemq::session::{Auth, Close, Flow, Hello, Ping, Pong, ServerInfo, Welcome};
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{Properties, Props, RawMap, ReplyCode, Value};

/// What the fields of a header are drawn from.
#[derive(Debug, Clone)]
struct Draw {
    numbers: [u64; 4],
    flags: [bool; 4],
    texts: [String; 6],
    code: u16,
    priority: u8,
    maps: [Vec<u8>; 2],
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..300_u64, any::<u64>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), ".{0,40}", ".{200,300}"]
}

/// A value as MessagePack, up to some depth.
fn encoded_value() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Nil).prop_map(|value| encode(&value)),
        any::<bool>().prop_map(|value| encode(&Value::Bool(value))),
        number().prop_map(|value| encode(&Value::Uint(value))),
        (i64::MIN..0).prop_map(|value| encode(&Value::Int(value))),
        any::<f32>().prop_map(|value| encode(&Value::F32(value))),
        any::<f64>().prop_map(|value| encode(&Value::F64(value))),
        text().prop_map(|value| encode(&Value::Str(&value))),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|data| encode(&Value::Bin(&data))),
        (any::<i8>(), proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(kind, data)| encode(&Value::Ext { kind, data: &data })),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(|items| array(&items)),
            proptest::collection::vec((text(), inner), 0..20).prop_map(|entries| map(&entries)),
        ]
    })
}

fn encode(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ArrayWriter::begin(&mut out);
    for item in items {
        writer.slot().extend_from_slice(item);
    }
    writer.finish();
    out
}

fn map(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = MapWriter::begin(&mut out);
    for (key, value) in entries {
        writer.key(key).extend_from_slice(value);
    }
    writer.finish();
    out
}

fn encoded_map() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((text(), encoded_value()), 0..20).prop_map(|entries| map(&entries))
}

prop_compose! {
    fn draw()(
        numbers in proptest::array::uniform4(number()),
        flags in any::<[bool; 4]>(),
        texts in [text(), text(), text(), text(), text(), text()],
        code in any::<u16>(),
        priority in any::<u8>(),
        maps in [encoded_map(), encoded_map()],
    ) -> Draw {
        Draw { numbers, flags, texts, code, priority, maps }
    }
}

impl Draw {
    fn text(&self, at: usize) -> &str {
        &self.texts[at]
    }

    fn map(&self, at: usize) -> RawMap<'_> {
        RawMap::decode(&self.maps[at]).unwrap()
    }

    fn code(&self) -> ReplyCode {
        ReplyCode::from_wire(self.code)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            content_type: self.text(0),
            content_encoding: self.text(1),
            correlation_id: self.text(2),
            reply_to: self.text(3),
            expiration_ms: self.numbers[0],
            message_id: self.text(4),
            timestamp_s: self.numbers[1],
            kind: self.text(5),
            user_id: self.text(0),
            app_id: self.text(1),
            priority: self.priority,
        }
    }
}

fn topology(d: &Draw) -> Vec<ToServer<'_>> {
    let [rid, ..] = d.numbers;
    let [durable, auto_delete, internal, passive] = d.flags;
    vec![
        ToServer::DeclareExchange(DeclareExchange {
            rid,
            name: d.text(0),
            kind: d.text(1),
            durable,
            auto_delete,
            internal,
            passive,
            args: d.map(0),
        }),
        ToServer::DeleteExchange(DeleteExchange {
            rid,
            name: d.text(0),
            if_unused: durable,
        }),
        ToServer::DeclareQueue(DeclareQueue {
            rid,
            name: d.text(0),
            durable,
            exclusive: internal,
            auto_delete,
            passive,
            args: d.map(0),
        }),
        ToServer::DeleteQueue(DeleteQueue {
            rid,
            name: d.text(0),
            if_unused: durable,
            if_empty: passive,
        }),
        ToServer::PurgeQueue(PurgeQueue {
            rid,
            name: d.text(0),
        }),
        ToServer::Bind(Bind {
            rid,
            exchange: d.text(0),
            queue: d.text(1),
            to_exchange: d.text(2),
            key: d.text(3),
            args: d.map(0),
        }),
        ToServer::Unbind(Unbind {
            rid,
            exchange: d.text(0),
            queue: d.text(1),
            to_exchange: d.text(2),
            key: d.text(3),
            args: d.map(0),
        }),
    ]
}

fn to_server<'d>(d: &'d Draw, props: &'d [u8]) -> Vec<ToServer<'d>> {
    let [rid, sub, credit, tag] = d.numbers;
    let [multiple, requeue, no_ack, exclusive] = d.flags;
    let mut all = topology(d);
    all.extend([
        ToServer::Hello(Hello {
            ver: rid,
            vhost: d.text(0),
            auth: Auth {
                mech: d.text(1),
                user: d.text(2),
                pass: d.text(3),
            },
            heartbeat: sub,
            client: d.map(0),
            caps: d.texts.iter().map(String::as_str).collect(),
        }),
        ToServer::Ping(Ping {}),
        ToServer::Pong(Pong {}),
        ToServer::Close(Close {
            code: d.code(),
            msg: d.text(0),
        }),
        ToServer::Publish(Publish {
            seq: rid,
            exchange: d.text(0),
            key: d.text(1),
            mandatory: multiple,
            persistent: requeue,
            props: Props::decode(props).unwrap(),
            headers: d.map(1),
        }),
        ToServer::Subscribe(Subscribe {
            rid,
            sub,
            queue: d.text(0),
            credit,
            no_ack,
            exclusive,
            tag: d.text(1),
            args: d.map(0),
            offset: no_ack.then_some(Value::Uint(tag)),
        }),
        ToServer::Unsubscribe(Unsubscribe { rid, sub }),
        ToServer::Credit(Credit { sub, credit }),
        ToServer::Ack(Ack { tag, multiple }),
        ToServer::Nack(Nack {
            tag,
            multiple,
            requeue,
        }),
        ToServer::Get(Get {
            rid,
            queue: d.text(0),
            no_ack,
        }),
    ]);
    all
}

fn messages<'d>(d: &'d Draw, props: &'d [u8]) -> Vec<ToClient<'d>> {
    let [rid, sub, remaining, tag] = d.numbers;
    let [redelivered, ..] = d.flags;
    let props = Props::decode(props).unwrap();
    vec![
        ToClient::Return(Returned {
            seq: rid,
            code: d.code(),
            msg: d.text(0),
            exchange: d.text(1),
            key: d.text(2),
            props,
            headers: d.map(1),
        }),
        ToClient::Deliver(Deliver {
            sub,
            tag,
            redelivered,
            exchange: d.text(0),
            key: d.text(1),
            props,
            headers: d.map(1),
        }),
        ToClient::GetOk(GetOk {
            rid,
            tag,
            redelivered,
            exchange: d.text(0),
            key: d.text(1),
            remaining,
            props,
            headers: d.map(1),
        }),
    ]
}

fn to_client<'d>(d: &'d Draw, props: &'d [u8]) -> Vec<ToClient<'d>> {
    let [rid, sub, remaining, _] = d.numbers;
    let [_, nack, fatal, empty] = d.flags;
    let mut all = messages(d, props);
    all.extend([
        ToClient::Welcome(Welcome {
            ver: rid,
            server: ServerInfo {
                name: d.text(0),
                version: d.text(1),
            },
            conn_id: d.text(2),
            heartbeat: sub,
            max_frame: remaining,
            caps: d.texts.iter().map(String::as_str).collect(),
        }),
        ToClient::Ping(Ping {}),
        ToClient::Pong(Pong {}),
        ToClient::Close(Close {
            code: d.code(),
            msg: d.text(0),
        }),
        ToClient::Ok(OkReply {
            rid,
            name: d.text(0),
            messages: sub,
            consumers: remaining,
            empty,
        }),
        ToClient::Error(ErrorReply {
            rid,
            code: d.code(),
            msg: d.text(0),
            fatal,
        }),
        ToClient::Flow(Flow { pause: fatal }),
        ToClient::Confirm(Confirm {
            upto: rid,
            seq: sub,
            nack,
            code: d.code(),
            msg: d.text(0),
        }),
        ToClient::Cancelled(Cancelled {
            sub,
            code: d.code(),
            msg: d.text(0),
        }),
    ]);
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn headers_read_back(d in draw()) {
        let mut props = Vec::new();
        d.properties().encode(&mut props);
        prop_assert_eq!(Props::decode(&props).unwrap().fields(), d.properties());
        for header in to_server(&d, &props) {
            let mut out = Vec::new();
            header.encode(&mut out);
            let decoded = ToServer::decode(header.op(), &out).unwrap();
            prop_assert_eq!(decoded, Some(header));
        }
        for header in to_client(&d, &props) {
            let mut out = Vec::new();
            header.encode(&mut out);
            let decoded = ToClient::decode(header.op(), &out).unwrap();
            prop_assert_eq!(decoded, Some(header));
        }
    }

    #[test]
    fn a_cut_header_is_refused(d in draw()) {
        let mut props = Vec::new();
        d.properties().encode(&mut props);
        for header in to_server(&d, &props) {
            let mut out = Vec::new();
            header.encode(&mut out);
            // No bytes at all are an empty map; some bytes of a map never are one.
            for cut in 1..out.len().min(400) {
                prop_assert!(ToServer::decode(header.op(), &out[..cut]).is_err());
            }
        }
    }

    #[test]
    fn values_keep_their_parts(encoded in encoded_value()) {
        let mut wrapped = vec![0x81, 0xa1, b'v'];
        wrapped.extend_from_slice(&encoded);
        let map = RawMap::decode(&wrapped).unwrap();
        let value = map.find("v").unwrap();
        prop_assert_eq!(encode(&value), encoded);
        if let Value::Array(items) = value {
            let items: Vec<_> = items.iter().map(|item| encode(&item)).collect();
            prop_assert_eq!(array(&items), encode(&value));
        }
    }
}
