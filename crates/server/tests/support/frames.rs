//! Bodies of frames, encoded and decoded by the codec.

#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "helpers of tests; each test file uses a part, so `expect` would fail in some"
)]

use std::io::{Read, Write};

use tanda_wire::{
    cursor::Reader,
    fila::{
        Body, ErrorCode, MessageId, Opcode,
        enqueue::{EnqueueItem, EnqueueResult, EnqueueWriter},
        error::ErrorFrame,
        queue_admin::{CreateQueue, CreateQueueResult},
        settle::{AckItem, AckWriter, ExtendItem, ExtendWriter, NackItem, NackWriter},
    },
};

use crate::support::{Frame, Peer};

/// What follows the header of a frame.
pub fn bytes<'a, B: Body<'a>>(body: &B) -> Vec<u8> {
    let mut out = Vec::new();
    body.write(&mut out).unwrap();
    out
}

pub fn enqueue(items: &[EnqueueItem<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = EnqueueWriter::new(&mut out);
    for item in items {
        writer.push(item, [("", ""); 0]).unwrap();
    }
    writer.finish();
    out
}

pub fn ack(queue: &str, message_id: MessageId) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = AckWriter::new(&mut out);
    let item = AckItem {
        queue,
        message_id,
        queue_start: 0,
    };
    writer.push(&item).unwrap();
    writer.finish();
    out
}

pub fn nack(queue: &str, message_id: MessageId) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = NackWriter::new(&mut out);
    let item = NackItem {
        queue,
        message_id,
        error: "no",
        retry_after_ms: Some(0),
        ..NackItem::default()
    };
    writer.push(&item).unwrap();
    writer.finish();
    out
}

pub fn extend(queue: &str, message_id: MessageId) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ExtendWriter::new(&mut out);
    let item = ExtendItem {
        queue,
        message_id,
        extend_by_ms: 60_000,
        queue_start: 0,
    };
    writer.push(&item).unwrap();
    writer.finish();
    out
}

impl Frame {
    /// The body, which must be of this type.
    pub fn parse<'a, B: Body<'a>>(&'a self) -> B {
        let opcode = Opcode::from_wire(self.opcode);
        assert_eq!(opcode, B::OPCODE, "{self:?}");
        let mut reader = Reader::new(&self.body);
        B::read(&mut reader).unwrap()
    }

    /// The code of an `Error` frame.
    pub fn error(&self) -> ErrorCode {
        self.parse::<ErrorFrame<'_>>().error_code
    }
}

impl<S: Read + Write> Peer<S> {
    /// Asks and waits for the answer.
    pub fn ask<'a, B: Body<'a>>(&mut self, id: u32, body: &B) -> Frame {
        self.ask_bytes(B::OPCODE, id, &bytes(body))
    }

    /// The same, with the body as bytes.
    pub fn ask_bytes(&mut self, opcode: Opcode, id: u32, body: &[u8]) -> Frame {
        self.send(opcode.to_wire(), id, body);
        let answer = self.answer();
        assert_eq!(answer.id, id, "{answer:?}");
        answer
    }

    /// Makes a queue with these settings.
    pub fn create(&mut self, queue: &CreateQueue<'_>) {
        let answer = self.ask(1, queue);
        let result = answer.parse::<CreateQueueResult<'_>>();
        assert_eq!(result.error_code, ErrorCode::Ok);
    }

    /// What becomes of one message.
    pub fn enqueue_item(&mut self, item: &EnqueueItem<'_>) -> (ErrorCode, MessageId) {
        let body = enqueue(std::slice::from_ref(item));
        let answer = self.ask_bytes(Opcode::Enqueue, 2, &body);
        let result = answer.parse::<EnqueueResult<'_>>();
        assert_eq!(result.results.len(), 1);
        let first = result.results.first().unwrap();
        (first.error_code, first.message_id)
    }
}
