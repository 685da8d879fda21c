//! The client against a scripted peer over an in-memory pipe.

use bytes::{Buf, BytesMut};
use tanda_wire::fila::control::HandshakeOk;
use tanda_wire::fila::delivery::{DeliveryItem, DeliveryMeta, DeliveryWriter};
use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueResultWriter};
use tanda_wire::fila::frame::{
    FRAME_OVERHEAD_BYTES, FrameHeader, MAX_FRAME_DEFAULT, split_frame, write_body, write_frame,
};
use tanda_wire::fila::{Body, Capabilities, Opcode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

use crate::shell::pipe::Network;
use crate::{Client, ClientBuilder};

mod admin;
mod consume;
mod overload;
mod produce;
mod reconnect;
mod tls;

impl Network {
    /// Lets the next connection of the client succeed.
    fn peer(&self) -> Peer {
        Peer::over(self.accept())
    }
}

/// A frame that the client sent.
#[derive(Debug)]
struct Sent {
    header: FrameHeader,
    body: Vec<u8>,
}

impl Sent {
    fn id(&self) -> u32 {
        self.header.request_id
    }
}

/// The server's end of a connection.
struct Peer<S = DuplexStream> {
    stream: S,
    input: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    fn over(stream: S) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
        }
    }

    async fn accept(&mut self) {
        let handshake = self.expect(Opcode::Handshake).await;
        assert_eq!(handshake.id(), 0);
        self.send(0, &handshake_ok()).await;
    }

    /// The next frame; `None` when the client closed.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some(frame) = split_frame(&self.input, MAX_FRAME_DEFAULT).unwrap() {
                let (header, consumed) = (frame.header, frame.consumed);
                let mut whole = self.input.split_to(consumed);
                whole.advance(FRAME_OVERHEAD_BYTES);
                return Some(Sent {
                    header,
                    body: whole.to_vec(),
                });
            }
            if self.stream.read_buf(&mut self.input).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn expect(&mut self, opcode: Opcode) -> Sent {
        let sent = self.next().await.expect("the client closed the connection");
        assert_eq!(sent.header.opcode, opcode);
        sent
    }

    async fn send<'a, B: Body<'a>>(&mut self, request_id: u32, body: &B) {
        let mut out = Vec::new();
        write_body(&mut out, request_id, MAX_FRAME_DEFAULT, body).unwrap();
        self.stream.write_all(&out).await.unwrap();
    }

    /// Confirms every message of an `Enqueue`, and returns their payloads.
    async fn confirm(&mut self) -> Vec<Vec<u8>> {
        let sent = self.expect(Opcode::Enqueue).await;
        let batch = EnqueueBatch::decode_header(&sent.body).unwrap();
        let payloads: Vec<Vec<u8>> = batch
            .map(|message| message.unwrap().payload.to_vec())
            .collect();
        let mut out = Vec::new();
        write_frame(&mut out, Opcode::EnqueueResult, sent.id(), |out| {
            let mut writer = EnqueueResultWriter::new(out);
            for number in 0..payloads.len() {
                writer.push(tanda_wire::fila::ErrorCode::Ok, &id(number), false)?;
            }
            writer.finish();
            Ok(())
        })
        .unwrap();
        self.stream.write_all(&out).await.unwrap();
        payloads
    }

    /// Delivers messages with these numbers, from queue `q`.
    async fn deliver(&mut self, request_id: u32, numbers: std::ops::Range<usize>) {
        let mut out = Vec::new();
        write_frame(&mut out, Opcode::Delivery, request_id, |out| {
            let mut writer = DeliveryWriter::new(out);
            for number in numbers {
                let mut content = Vec::new();
                let payload = number.to_string();
                let headers = [("number", payload.as_str())];
                tanda_wire::fila::enqueue::encode_content(
                    &mut content,
                    headers,
                    payload.as_bytes(),
                )?;
                let meta = DeliveryMeta {
                    message_id: id(number),
                    weight: 2,
                    attempt_count: 1,
                    redrive_count: 0,
                    enqueued_at_ms: 10,
                    leased_at_ms: 20,
                    lease_expires_at_ms: 30,
                };
                let item = DeliveryItem {
                    meta,
                    queue: "q",
                    fairness_key: "key",
                    content: &content,
                };
                writer.push(&item)?;
            }
            writer.finish();
            Ok(())
        })
        .unwrap();
        self.stream.write_all(&out).await.unwrap();
    }
}

fn handshake_ok() -> HandshakeOk {
    HandshakeOk {
        negotiated_version: 1,
        node_id: 0,
        max_frame_size: 0,
        server_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
    }
}

/// The ID of message number `number`.
fn id(number: usize) -> [u8; 16] {
    (number as u128 + 1).to_be_bytes()
}

/// A client with these settings, and its peer after the handshake.
async fn connect_with(builder: ClientBuilder) -> (Client, Peer, Network) {
    let (network, dial) = Network::new();
    let mut peer = network.peer();
    let (client, ()) = tokio::join!(builder.connect_through(dial), peer.accept());
    (client.unwrap(), peer, network)
}

async fn connect() -> (Client, Peer, Network) {
    connect_with(Client::builder()).await
}
