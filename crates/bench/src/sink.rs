//! A server that does nothing: it answers each request at once from prebuilt frames.
//!
//! The load generator is measured against it, so that one knows below which figures the generator
//! is not the limit. It stores nothing, and a subscription to it never runs dry.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use tanda_wire::fila::consume::{Consume, ConsumeOk, Credit};
use tanda_wire::fila::control::HandshakeOk;
use tanda_wire::fila::delivery::{DeliveryItem, DeliveryMeta, DeliveryWriter};
use tanda_wire::fila::enqueue::{EnqueueResultWriter, encode_content};
use tanda_wire::fila::frame::{Frame, MAX_FRAME_DEFAULT, split_frame, write_body, write_frame};
use tanda_wire::fila::headers::NO_HEADERS;
use tanda_wire::fila::queue_admin::CreateQueueResult;
use tanda_wire::fila::settle::CodesWriter;
use tanda_wire::fila::{Capabilities, ErrorCode, Opcode, PROTOCOL_VERSION};

use crate::error::BenchError;
use crate::link::Link;

/// Messages in one delivery, when credit allows.
const DELIVERY_MESSAGES: u32 = 500;

/// Listens until the program ends.
pub(crate) fn start(payload_bytes: usize) -> Result<SocketAddr, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(BenchError::io("sink"))?;
    let addr = listener.local_addr().map_err(BenchError::io("sink"))?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection ends with an error of its socket, as every client hangs up.
            thread::spawn(move || serve(stream, payload_bytes));
        }
    });
    Ok(addr)
}

fn serve(stream: TcpStream, payload_bytes: usize) -> Result<(), BenchError> {
    stream.set_nodelay(true).map_err(BenchError::io("sink"))?;
    let mut link = Link::new(stream);
    let mut session = Session {
        payload: vec![0; payload_bytes],
        subscription: None,
        deliveries: Vec::new(),
    };
    loop {
        link.inbox.read_from(link.outbox.stream())?;
        let mut taken = 0;
        while let Some(rest) = link.inbox.filled().get(taken..) {
            let frame = split_frame(rest, MAX_FRAME_DEFAULT)
                .map_err(|e| BenchError::Protocol(e.to_string()))?;
            let Some(frame) = frame else { break };
            taken += frame.consumed;
            session.answer(&frame, link.outbox.buffer())?;
        }
        link.inbox.consume(taken);
        session.deliver(link.outbox.buffer())?;
        if !link.outbox.flush()? {
            let source = io::ErrorKind::WouldBlock.into();
            return Err(BenchError::io("sink")(source));
        }
    }
}

struct Session {
    payload: Vec<u8>,
    subscription: Option<Subscription>,
    /// A whole frame of [`DELIVERY_MESSAGES`] messages; empty until there is a subscription.
    deliveries: Vec<u8>,
}

struct Subscription {
    request_id: u32,
    queue: String,
    credit: u32,
}

impl Session {
    fn answer(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), BenchError> {
        let id = frame.header.request_id;
        let opcode = frame.header.opcode;
        let count = frame
            .body
            .first_chunk()
            .map_or(0, |c| u32::from_be_bytes(*c));
        if opcode == Opcode::Enqueue {
            write_frame(out, Opcode::EnqueueResult, id, |out| {
                let mut writer = EnqueueResultWriter::new(out);
                for _ in 0..count {
                    writer.push(ErrorCode::Ok, &[0; 16], false)?;
                }
                writer.finish();
                Ok(())
            })?;
        } else if opcode == Opcode::Ack {
            write_frame(out, Opcode::AckResult, id, |out| {
                let mut writer = CodesWriter::new(out);
                for _ in 0..count {
                    writer.push(ErrorCode::Ok)?;
                }
                writer.finish();
                Ok(())
            })?;
        } else if opcode == Opcode::Credit {
            let granted = Credit::decode(frame.body)?.additional_credit;
            if let Some(subscription) = &mut self.subscription {
                subscription.credit = subscription.credit.saturating_add(granted);
            }
        } else if opcode == Opcode::Consume {
            self.subscribe(id, &Consume::decode(frame.body)?, out)?;
        } else if opcode == Opcode::Handshake {
            let body = HandshakeOk {
                negotiated_version: PROTOCOL_VERSION,
                node_id: 0,
                max_frame_size: 0,
                server_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
            };
            write_body(out, id, 0, &body)?;
        } else if opcode == Opcode::CreateQueue {
            let body = CreateQueueResult {
                error_code: ErrorCode::Ok,
                queue_id: "sink",
            };
            write_body(out, id, 0, &body)?;
        }
        Ok(())
    }

    fn subscribe(
        &mut self,
        request_id: u32,
        consume: &Consume<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BenchError> {
        write_body(out, request_id, 0, &ConsumeOk { consumer_id: "1" })?;
        let subscription = Subscription {
            request_id,
            queue: consume.queue.to_owned(),
            credit: consume.credit,
        };
        let mut deliveries = Vec::new();
        push_delivery(
            &mut deliveries,
            &subscription,
            &self.payload,
            DELIVERY_MESSAGES,
        )?;
        self.deliveries = deliveries;
        self.subscription = Some(subscription);
        Ok(())
    }

    /// Uses up the credit.
    fn deliver(&mut self, out: &mut Vec<u8>) -> Result<(), BenchError> {
        let Some(subscription) = &mut self.subscription else {
            return Ok(());
        };
        while subscription.credit >= DELIVERY_MESSAGES {
            out.extend_from_slice(&self.deliveries);
            subscription.credit -= DELIVERY_MESSAGES;
        }
        if subscription.credit > 0 {
            push_delivery(out, subscription, &self.payload, subscription.credit)?;
            subscription.credit = 0;
        }
        Ok(())
    }
}

fn push_delivery(
    out: &mut Vec<u8>,
    subscription: &Subscription,
    payload: &[u8],
    messages: u32,
) -> Result<(), BenchError> {
    let mut content = Vec::new();
    encode_content(&mut content, NO_HEADERS, payload)?;
    write_frame(out, Opcode::Delivery, subscription.request_id, |out| {
        let mut writer = DeliveryWriter::new(out);
        let item = DeliveryItem {
            meta: DeliveryMeta::default(),
            queue: &subscription.queue,
            fairness_key: "",
            content: &content,
        };
        for _ in 0..messages {
            writer.push(&item)?;
        }
        writer.finish();
        Ok(())
    })?;
    Ok(())
}
