//! The client against a scripted peer over an in-memory pipe.

use bytes::BytesMut;
use tanda_wire::firemq::consume::{Deliver, Subscribe};
use tanda_wire::firemq::frame::{Framing, PREAMBLE, Split, split_frame, write_head};
use tanda_wire::firemq::message::ToServer;
use tanda_wire::firemq::publish::{Confirm, Publish};
use tanda_wire::firemq::reply::{ErrorReply, OkReply};
use tanda_wire::firemq::session::{Close, Welcome};
use tanda_wire::firemq::{Header, Op, ReplyCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::fire::{FireClient, FireClientBuilder, Message};
use crate::shell::pipe::Network;

mod consume;
mod publish;
mod restore;
mod topology;

/// A frame that the client sent.
#[derive(Debug)]
struct Sent {
    op: Op,
    header: Vec<u8>,
    body: Vec<u8>,
}

impl Sent {
    fn header(&self) -> ToServer<'_> {
        let header = ToServer::decode(self.op, &self.header).unwrap();
        header.expect("a frame of a client")
    }

    fn rid(&self) -> u64 {
        tanda_wire::firemq::peek_uint(&self.header, "rid").unwrap()
    }
}

/// The server's end of a connection.
struct Peer {
    stream: DuplexStream,
    input: BytesMut,
}

impl Peer {
    async fn accept(&mut self) {
        let mut preamble = [0; 4];
        self.stream.read_exact(&mut preamble).await.unwrap();
        assert_eq!(preamble, PREAMBLE);
        self.expect(Op::Hello).await;
        self.send(&Welcome {
            ver: 1,
            max_frame: 100_000,
            ..Welcome::default()
        })
        .await;
    }

    /// The next frame; `None` when the client closed.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Split::Frame(frame) = split_frame(&self.input, u32::MAX).unwrap() {
                let sent = Sent {
                    op: frame.op,
                    header: frame.header.to_vec(),
                    body: frame.payload.to_vec(),
                };
                let consumed = frame.consumed;
                drop(self.input.split_to(consumed));
                return Some(sent);
            }
            if self.stream.read_buf(&mut self.input).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn expect(&mut self, op: Op) -> Sent {
        let sent = self.next().await.expect("the client closed the connection");
        assert_eq!(sent.op, op, "{:?}", sent.header());
        sent
    }

    async fn send<'a, H: Header<'a>>(&mut self, header: &H) {
        self.send_with(header, b"").await;
    }

    async fn send_with<'a, H: Header<'a>>(&mut self, header: &H, body: &[u8]) {
        let mut out = Vec::new();
        write_head(&mut out, Framing::Stream, header, body.len(), u32::MAX).unwrap();
        out.extend_from_slice(body);
        self.stream.write_all(&out).await.unwrap();
    }

    /// Answers the next request, which must be this one, and returns it.
    async fn grant(&mut self, op: Op) -> Sent {
        self.grant_as(op, "").await
    }

    /// Answers the next request, a queue's declaration, with this name.
    async fn grant_as(&mut self, op: Op, name: &str) -> Sent {
        let sent = self.expect(op).await;
        let ok = OkReply {
            rid: sent.rid(),
            name,
            ..OkReply::default()
        };
        self.send(&ok).await;
        sent
    }

    /// Refuses the next request, which must be this one.
    async fn refuse(&mut self, op: Op, code: ReplyCode) {
        let sent = self.expect(op).await;
        let error = ErrorReply {
            rid: sent.rid(),
            code,
            msg: "no",
            fatal: false,
        };
        self.send(&error).await;
    }

    /// The next frame, which must be a publish: its number, key and body.
    async fn published(&mut self) -> (u64, String, String) {
        let sent = self.expect(Op::Publish).await;
        let publish = Publish::decode(&sent.header).unwrap();
        let body = String::from_utf8(sent.body).unwrap();
        (publish.seq, publish.key.to_owned(), body)
    }

    async fn confirm(&mut self, seq: u64) {
        self.send(&Confirm::upto(seq)).await;
    }

    /// Grants a subscription, and returns its number and credit.
    async fn subscribed(&mut self) -> (u64, u64) {
        let sent = self.grant(Op::Subscribe).await;
        let subscribe = Subscribe::decode(&sent.header).unwrap();
        (subscribe.sub, subscribe.credit)
    }

    /// Delivers messages with these tags, which are also their bodies.
    async fn deliver(&mut self, sub: u64, tags: std::ops::RangeInclusive<u64>) {
        for tag in tags {
            let deliver = Deliver {
                sub,
                tag,
                key: "k",
                ..Deliver::default()
            };
            self.send_with(&deliver, tag.to_string().as_bytes()).await;
        }
    }

    /// Answers the client's close and sees it go.
    async fn see_close(&mut self) {
        let sent = self.expect(Op::Close).await;
        let close = Close::decode(&sent.header).unwrap();
        assert_eq!(close.code, ReplyCode::Success);
        self.send(&close).await;
        assert!(self.next().await.is_none());
    }
}

impl Network {
    /// Lets the next connection of the client succeed.
    fn fire_peer(&self) -> Peer {
        Peer {
            stream: self.accept(),
            input: BytesMut::new(),
        }
    }

    /// The same, and its handshake.
    async fn fire_accept(&self) -> Peer {
        let mut peer = self.fire_peer();
        peer.accept().await;
        peer
    }
}

fn builder() -> FireClientBuilder {
    FireClient::builder("fire://127.0.0.1")
}

/// A client with these settings, and its peer after the handshake.
async fn connect_with(builder: FireClientBuilder) -> (FireClient, Peer, Network) {
    let (network, dial) = Network::new();
    let mut peer = network.fire_peer();
    let (client, ()) = tokio::join!(builder.connect_through(dial), peer.accept());
    (client.unwrap(), peer, network)
}

async fn connect() -> (FireClient, Peer, Network) {
    connect_with(builder()).await
}

fn message(body: &'static str) -> Message {
    Message::to("e", "k").body(body)
}
