//! Peers of AMQP and FireMQ, which tell and bring messages beside Amaquet's.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use tanda_wire::{
    amqp::{
        self, ContentHeader, FrameType, LongStr, Method, PropertyValues, ShortStr, Table, basic,
        channel, connection, encode, exchange, queue,
    },
    firemq::{
        self, Header, Op, Props, RawMap,
        consume::{Deliver, Subscribe},
        frame::{Framing, write_head},
        publish::Publish,
        session::{Auth, Hello},
        topology::{Bind, DeclareQueue},
    },
};

use crate::support::{self, TestServer};

const FRAME_MAX: u32 = 131_072;
const CHANNEL: u16 = 1;

/// A message with what this file looks at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) exchange: String,
    pub(crate) key: String,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

fn short(text: &str) -> ShortStr<'_> {
    ShortStr::new(text.as_bytes()).unwrap()
}

/// A client of AMQP with one channel.
pub(crate) struct Amqp {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Amqp {
    pub(crate) fn of(server: &TestServer) -> Self {
        let mut stream = support::dial(server.address("amqp"));
        stream.write_all(b"AMQP\0\0\x09\x01").unwrap();
        let input = Vec::new();
        let mut peer = Self { stream, input };
        peer.expect("Start(");
        let response = LongStr::new(b"\0guest\0guest").unwrap();
        peer.say(
            0,
            connection::StartOk {
                client_properties: Table::EMPTY,
                mechanism: short("PLAIN"),
                response,
                locale: short("en_US"),
            },
        );
        peer.expect("Tune(");
        peer.say(
            0,
            connection::TuneOk {
                channel_max: 1,
                frame_max: FRAME_MAX,
                heartbeat: 0,
            },
        );
        let virtual_host = short("/");
        peer.say(0, connection::Open { virtual_host });
        peer.expect("OpenOk");
        peer.say(CHANNEL, channel::Open {});
        peer.expect("OpenOk");
        peer
    }

    fn say<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let mut out = Vec::new();
        encode::write_any_method(&mut out, channel, &method.into());
        self.stream.write_all(&out).unwrap();
    }

    /// The next frame: its type and payload.
    fn frame(&mut self) -> (FrameType, Vec<u8>) {
        loop {
            let split = amqp::split_frame(&self.input, FRAME_MAX).unwrap();
            if let amqp::Split::Frame(frame) = split {
                let found = (frame.frame_type, frame.payload.to_vec());
                let consumed = frame.consumed();
                self.input.drain(..consumed);
                return found;
            }
            read_more(&mut self.stream, &mut self.input);
        }
    }

    fn method(&mut self) -> String {
        let (_, payload) = self.frame();
        format!("{:?}", Method::decode(&payload).unwrap())
    }

    pub(crate) fn expect(&mut self, what: &str) {
        let method = self.method();
        assert!(method.contains(what), "{method} is not {what}");
    }

    pub(crate) fn declare_exchange(&mut self, name: &str, kind: &str) {
        let declare = exchange::Declare {
            exchange: short(name),
            exchange_type: short(kind),
            durable: true,
            ..exchange::Declare::default()
        };
        self.say(CHANNEL, declare);
        self.expect("DeclareOk");
    }

    /// A queue bound to an exchange.
    pub(crate) fn bind(&mut self, name: &str, exchange: &str, key: &str) {
        let declare = queue::Declare {
            queue: short(name),
            durable: true,
            ..queue::Declare::default()
        };
        self.say(CHANNEL, declare);
        self.expect("DeclareOk");
        let bind = queue::Bind {
            queue: short(name),
            exchange: short(exchange),
            routing_key: short(key),
            ..queue::Bind::default()
        };
        self.say(CHANNEL, bind);
        self.expect("BindOk");
    }

    pub(crate) fn publish(
        &mut self,
        (exchange, key): (&str, &str),
        values: PropertyValues<'_>,
        body: &[u8],
    ) {
        let mut raw = Vec::new();
        values.encode(&mut raw);
        let properties = amqp::Properties::decode(&raw).unwrap();
        let publish = basic::Publish {
            exchange: short(exchange),
            routing_key: short(key),
            ..basic::Publish::default()
        };
        let mut out = Vec::new();
        encode::write_content(&mut out, CHANNEL, &publish, properties, body, FRAME_MAX);
        self.stream.write_all(&out).unwrap();
    }

    /// Takes a message that is there.
    pub(crate) fn get(&mut self, name: &str) -> Message {
        let get = basic::Get {
            queue: short(name),
            no_ack: true,
        };
        self.say(CHANNEL, get);
        let (_, payload) = self.frame();
        let Method::Basic(basic::Method::GetOk(got)) = Method::decode(&payload).unwrap() else {
            panic!("{payload:?}")
        };
        let (exchange, key) = (got.exchange.to_string(), got.routing_key.to_string());
        let (_, payload) = self.frame();
        let header = ContentHeader::decode(&payload).unwrap();
        let content_type = header.properties.values().content_type;
        let content_type = content_type.map(|it| it.to_string()).unwrap_or_default();
        let (_, body) = self.frame();
        Message {
            exchange,
            key,
            content_type,
            body,
        }
    }
}

fn read_more(stream: &mut TcpStream, input: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).unwrap();
    assert!(count > 0, "the connection ended");
    input.extend(&buffer[..count]);
}

/// A client of FireMQ.
pub(crate) struct Fire {
    stream: TcpStream,
    input: Vec<u8>,
    last_rid: u64,
}

impl Fire {
    pub(crate) fn of(server: &TestServer) -> Self {
        let mut stream = support::dial(server.address("firemq"));
        stream.write_all(b"FMQ1").unwrap();
        let mut peer = Self {
            stream,
            input: Vec::new(),
            last_rid: 0,
        };
        let auth = Auth {
            mech: "plain",
            user: "guest",
            pass: "guest",
        };
        let hello = Hello {
            ver: 1,
            auth,
            ..Hello::default()
        };
        peer.say(&hello, b"");
        assert_eq!(peer.frame().0, Op::Welcome);
        peer
    }

    fn say<'a>(&mut self, header: &impl Header<'a>, payload: &[u8]) {
        let mut out = Vec::new();
        write_head(&mut out, Framing::Stream, header, payload.len(), u32::MAX).unwrap();
        out.extend_from_slice(payload);
        self.stream.write_all(&out).unwrap();
    }

    /// The next frame: what it is, its header and its payload.
    fn frame(&mut self) -> (Op, Vec<u8>, Vec<u8>) {
        loop {
            let split = firemq::frame::split_frame(&self.input, u32::MAX).unwrap();
            if let firemq::frame::Split::Frame(frame) = split {
                let found = (frame.op, frame.header.to_vec(), frame.payload.to_vec());
                let consumed = frame.consumed;
                self.input.drain(..consumed);
                return found;
            }
            read_more(&mut self.stream, &mut self.input);
        }
    }

    fn rid(&mut self) -> u64 {
        self.last_rid += 1;
        self.last_rid
    }

    fn expect_ok(&mut self) {
        let (op, header, _) = self.frame();
        assert_eq!(op, Op::Ok, "{}", header.escape_ascii());
    }

    pub(crate) fn publish(
        &mut self,
        (exchange, key): (&str, &str),
        (properties, headers): (&firemq::Properties<'_>, &[u8]),
        body: &[u8],
    ) {
        let mut props = Vec::new();
        properties.encode(&mut props);
        let publish = Publish {
            exchange,
            key,
            props: Props::decode(&props).unwrap(),
            headers: RawMap::decode(headers).unwrap(),
            ..Publish::default()
        };
        self.say(&publish, body);
    }

    /// Subscribes to a queue bound to an exchange.
    pub(crate) fn subscribe(&mut self, name: &str, exchange: &str, key: &str) {
        let declare = DeclareQueue {
            rid: self.rid(),
            name,
            durable: true,
            ..DeclareQueue::default()
        };
        self.say(&declare, b"");
        self.expect_ok();
        let bind = Bind {
            rid: self.rid(),
            exchange,
            queue: name,
            key,
            ..Bind::default()
        };
        self.say(&bind, b"");
        self.expect_ok();
        let subscribe = Subscribe {
            rid: self.rid(),
            sub: 1,
            queue: name,
            credit: 100,
            no_ack: true,
            ..Subscribe::default()
        };
        self.say(&subscribe, b"");
        self.expect_ok();
    }

    /// The next message of the subscription.
    pub(crate) fn delivery(&mut self) -> Message {
        let (op, header, body) = self.frame();
        assert_eq!(op, Op::Deliver);
        let deliver = Deliver::decode(&header).unwrap();
        Message {
            exchange: deliver.exchange.to_owned(),
            key: deliver.key.to_owned(),
            content_type: deliver.props.fields().content_type.to_owned(),
            body,
        }
    }
}
