//! The client against a scripted peer over an in-memory pipe.

use std::time::Duration;

use bytes::BytesMut;
use ring::signature::{Ed25519KeyPair, KeyPair};
use tanda_wire::amaquet::envelope::{self, Failure};
use tanda_wire::amaquet::frame::{Header, Sender, Split, split_frame, write_frame};
use tanda_wire::amaquet::json::Json;
use tanda_wire::amaquet::{ErrorCode, Opcode};
use tanda_wire::base64;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::ReconnectPolicy;
use crate::amaquet::{AmaquetClient, AmaquetClientBuilder, Command, ConnectError, RequestError};
use crate::shell::pipe::Network;

mod commands;
mod greeting;
mod subscriptions;

const MAX: u32 = 1 << 20;

fn node() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn node_key() -> [u8; 32] {
    node().public_key().as_ref().try_into().unwrap()
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    base64::encode(&mut text, bytes);
    String::from_utf8(text).unwrap()
}

/// A frame that the client sent.
#[derive(Debug)]
struct Sent {
    opcode: Opcode,
    id: u64,
    payload: String,
}

impl Sent {
    fn text(&self, name: &str) -> String {
        let object = Json::parse(self.payload.as_bytes()).unwrap();
        let value = crate::amaquet::reply::text(object, name);
        value.unwrap_or_else(|| panic!("no {name} in {}", self.payload))
    }
}

/// The server's end of a connection.
struct Peer {
    stream: DuplexStream,
    input: BytesMut,
    auth_required: bool,
}

impl Peer {
    fn new(stream: DuplexStream) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            auth_required: false,
        }
    }

    /// Answers HELLO.
    async fn greet(&mut self) {
        let hello = self.expect(Opcode::Hello).await;
        let nonce = base64::decode(&hello.text("nonce")).unwrap();
        let signed = [b"amaquet-hello-v1".as_slice(), &nonce].concat();
        let signature = encoded(node().sign(&signed).as_ref());
        self.answer(&hello, &self.greeting(&signature)).await;
    }

    fn greeting(&self, signature: &str) -> String {
        let public_key = encoded(&node_key());
        let wanted = self.auth_required;
        let node = r#""server":"tanda","version":"1","protocol":1,"node_id":"n""#;
        let limits = format!(r#""auth_required":{wanted},"max_payload":1000,"features":["x"]"#);
        let proof = format!(r#""public_key":"{public_key}","signature":"{signature}""#);
        format!("{{{node},{limits},{proof}}}")
    }

    /// The next frame; `None` when the client closed.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Split::Frame(frame) = split_frame(&self.input, Sender::Client, MAX).unwrap() {
                let sent = Sent {
                    opcode: frame.header.opcode,
                    id: frame.header.request_id,
                    payload: String::from_utf8(frame.payload.to_vec()).unwrap(),
                };
                let consumed = frame.consumed();
                drop(self.input.split_to(consumed));
                return Some(sent);
            }
            if self.stream.read_buf(&mut self.input).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn expect(&mut self, opcode: Opcode) -> Sent {
        let sent = self.next().await.expect("the client closed the connection");
        assert_eq!(sent.opcode, opcode, "{sent:?}");
        sent
    }

    async fn send(&mut self, header: Header, payload: &str) {
        let mut out = Vec::new();
        write_frame(&mut out, header, MAX, |out| {
            out.extend_from_slice(payload.as_bytes());
        })
        .unwrap();
        self.stream.write_all(&out).await.unwrap();
    }

    async fn answer(&mut self, to: &Sent, result: &str) {
        let header = Header::response(to.opcode, to.id);
        let payload = format!(r#"{{"ok":true,"result":{result}}}"#);
        self.send(header, &payload).await;
    }

    async fn refuse(&mut self, to: &Sent, code: ErrorCode) {
        let mut out = Vec::new();
        let failure = Failure::new(code, "no".to_owned());
        envelope::write_failure(&mut out, Header::response(to.opcode, to.id), &failure);
        self.stream.write_all(&out).await.unwrap();
    }
}

/// A client and its peer; the network is for the next connection.
async fn connected() -> (AmaquetClient, Peer, Network) {
    connected_with(AmaquetClient::builder()).await
}

async fn connected_with(builder: AmaquetClientBuilder) -> (AmaquetClient, Peer, Network) {
    let (network, dial) = Network::new();
    let mut peer = Peer::new(network.accept());
    let (client, ()) = tokio::join!(builder.connect_through(dial), peer.greet());
    (client.unwrap(), peer, network)
}

/// A client that opens a lost connection at once.
fn eager() -> AmaquetClientBuilder {
    let policy = ReconnectPolicy::default().delays(Duration::ZERO, Duration::ZERO);
    AmaquetClient::builder().reconnect(policy)
}
