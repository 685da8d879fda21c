//! Bytes as a stream of frames: each is split off, joined and decoded; what a decoder accepts
//! encodes to the bytes it came from, and decodes to the same again.
//!
//! First byte: the limits of the stream and of what is written back. The rest is the stream.

use core::fmt::Debug;

use tanda_wire::cursor::{DecodeError, Reader};
use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
    GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, SetRebalancing, SetRebalancingResult,
};
use tanda_wire::fila::config::{
    GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig, SetConfigResult,
};
use tanda_wire::fila::consume::{CancelConsume, Consume, ConsumeOk, Credit};
use tanda_wire::fila::continuation::{Reassembler, ReassemblyLimits};
use tanda_wire::fila::control::{Disconnect, Handshake, HandshakeOk, Ping, Pong};
use tanda_wire::fila::delivery::{DeliveryBatch, DeliveryWriter};
use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueResult, EnqueueWriter};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{FrameHeader, frame_size, split_frame, write_frame_split};
use tanda_wire::fila::headers::Headers;
use tanda_wire::fila::keys::{
    CreateApiKey, CreateApiKeyResult, GetAcl, GetAclResult, ListApiKeys, ListApiKeysResult,
    RevokeApiKey, RevokeApiKeyResult, SetAcl, SetAclResult,
};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueues, ListQueuesResult,
    UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Redrive, RedriveResult};
use tanda_wire::fila::settle::{
    AckBatch, AckResult, AckWriter, ExtendBatch, ExtendLeaseResult, ExtendWriter, NackBatch,
    NackResult, NackWriter,
};
use tanda_wire::fila::stats::{GetStats, GetStatsResult};
use tanda_wire::fila::throttle::{
    GetThrottleBucket, GetThrottleBucketResult, GetThrottleStats, GetThrottleStatsResult,
};
use tanda_wire::fila::{Body, Opcode};

/// Largest frames, as the length prefix counts: of what is read and of what is written.
const FRAME_BYTES_MAX: [u32; 4] = [64, 1024, 64 << 10, 1 << 20];

/// Runs one input.
///
/// # Panics
/// When a decoder and its encoder disagree, or a limit is passed.
pub fn run(input: &[u8]) {
    let Some((first, mut stream)) = input.split_first() else {
        return;
    };
    let (read_max, write_max) = (limit(*first), limit(first >> 2));
    let limits = ReassemblyLimits {
        total_bytes_max: 256,
        unfinished_max: 4,
    };
    let mut reassembler = Reassembler::new(limits);
    while let Ok(Some(frame)) = split_frame(stream, read_max) {
        assert_eq!(frame_size(stream), Some(frame.consumed));
        assert_eq!(
            FrameHeader::parse(&frame.header.to_bytes()),
            Some(frame.header)
        );
        if let Ok(Some(body)) = reassembler.push(frame.header, frame.body) {
            let header = FrameHeader {
                flags: 0,
                ..frame.header
            };
            split_and_join(header, &body, write_max);
            check_body(header.opcode, &body).ok();
        }
        assert!(reassembler.held_bytes() <= limits.total_bytes_max);
        assert!(reassembler.unfinished() <= limits.unfinished_max);
        stream = stream.get(frame.consumed..).unwrap_or_default();
    }
}

fn limit(bits: u8) -> u32 {
    let at = usize::from(bits % 4);
    FRAME_BYTES_MAX.get(at).copied().unwrap_or(1024)
}

/// A body written as frames of at most `frame_bytes_max` is the same body when it is joined.
fn split_and_join(header: FrameHeader, body: &[u8], frame_bytes_max: u32) {
    let mut out = Vec::new();
    let written = write_frame_split(&mut out, header, frame_bytes_max, |out| {
        out.extend_from_slice(body);
        Ok(())
    });
    assert_eq!(written, Ok(()));
    let mut reassembler = Reassembler::new(ReassemblyLimits::default());
    let mut rest = out.as_slice();
    loop {
        let frame = split_frame(rest, frame_bytes_max)
            .ok()
            .flatten()
            .unwrap_or_else(|| unreachable!("a frame that was written is refused: {rest:02x?}"));
        rest = rest.get(frame.consumed..).unwrap_or_default();
        match reassembler.push(frame.header, frame.body) {
            Ok(Some(joined)) => {
                assert_eq!(joined, body, "joined from frames of {frame_bytes_max}");
                break;
            }
            Ok(None) => assert!(frame.header.is_continued()),
            Err(error) => unreachable!("{error}"),
        }
    }
    assert!(rest.is_empty(), "{rest:02x?} after the last frame");
}

/// Decodes a body, encodes what it holds, and decodes that. Returns the bytes of the body that
/// its opcode knows; what is behind them was added by a newer version.
///
/// # Errors
/// When the body does not follow its layout, or the opcode is unknown.
///
/// # Panics
/// When decoder and encoder disagree.
pub fn check_body(opcode: Opcode, body: &[u8]) -> Result<usize, Refused> {
    let encoded = decode_and_encode(opcode, body)?;
    // An error frame may be shortened when it is written.
    assert!(
        body.starts_with(&encoded) || opcode == Opcode::Error,
        "{opcode}: {body:02x?} encodes as {encoded:02x?}"
    );
    let again = decode_and_encode(opcode, &encoded);
    assert!(
        again.as_ref() == Ok(&encoded),
        "{opcode}: {encoded:02x?} decodes and encodes as {again:02x?}"
    );
    Ok(encoded.len())
}

/// Why a body was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not follow the layout of its opcode.
    Layout(DecodeError),
    /// No opcode of the protocol.
    Opcode(u8),
}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        Self::Layout(error)
    }
}

fn plain<'a, B: Body<'a> + PartialEq + Debug>(body: &'a [u8]) -> Result<Vec<u8>, Refused> {
    let decoded = B::read(&mut Reader::new(body))?;
    let mut encoded = Vec::new();
    assert_eq!(decoded.write(&mut encoded), Ok(()), "{decoded:?}");
    assert_eq!(encoded.len(), decoded.size(), "size of {decoded:?}");
    assert!(encoded.len() >= B::SIZE_MIN, "{}: SIZE_MIN", B::OPCODE);
    Ok(encoded)
}

fn enqueue(body: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::new();
    let mut writer = EnqueueWriter::new(&mut out);
    for message in EnqueueBatch::decode_header(body)? {
        let message = message?;
        assert_eq!(Headers::decode(message.content), Ok(message.headers));
        assert_eq!(writer.push_message(&message), Ok(()));
    }
    writer.finish();
    Ok(out)
}

fn delivery(body: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::new();
    let mut writer = DeliveryWriter::new(&mut out);
    for message in DeliveryBatch::decode_header(body)? {
        let message = message?;
        let start = message.payload_start as usize;
        let payload = body.get(start..start + message.payload.len());
        assert_eq!(payload, Some(message.payload), "where the payload starts");
        assert_eq!(writer.push(&message.as_item()), Ok(()));
    }
    writer.finish();
    Ok(out)
}

macro_rules! settle {
    ($name:ident, $Batch:ident, $Writer:ident) => {
        fn $name(body: &[u8]) -> Result<Vec<u8>, Refused> {
            let mut out = Vec::new();
            let mut writer = $Writer::new(&mut out);
            for item in $Batch::decode_header(body)? {
                assert_eq!(writer.push(&item?), Ok(()));
            }
            writer.finish();
            Ok(out)
        }
    };
}

settle!(ack, AckBatch, AckWriter);
settle!(nack, NackBatch, NackWriter);
settle!(extend, ExtendBatch, ExtendWriter);

macro_rules! bodies {
    ($( $Type:ident $(<$lt:lifetime>)?; )*) => {
        fn decode_and_encode(opcode: Opcode, body: &[u8]) -> Result<Vec<u8>, Refused> {
            match opcode {
                Opcode::Enqueue => enqueue(body),
                Opcode::Delivery => delivery(body),
                Opcode::Ack => ack(body),
                Opcode::Nack => nack(body),
                Opcode::ExtendLease => extend(body),
                Opcode::Error => plain::<ErrorFrame<'_>>(body),
                $( Opcode::$Type => plain::<$Type $(<$lt>)?>(body), )*
                Opcode::Unknown(number) => Err(Refused::Opcode(number)),
            }
        }
    };
}

bodies! {
    Handshake<'_>;
    HandshakeOk;
    Ping;
    Pong;
    Disconnect;
    EnqueueResult<'_>;
    Consume<'_>;
    ConsumeOk<'_>;
    Credit;
    CancelConsume;
    AckResult;
    NackResult;
    ExtendLeaseResult;
    CreateQueue<'_>;
    CreateQueueResult<'_>;
    UpdateQueue<'_>;
    UpdateQueueResult;
    DeleteQueue<'_>;
    DeleteQueueResult;
    GetStats<'_>;
    GetStatsResult<'_>;
    ListQueues;
    ListQueuesResult<'_>;
    SetConfig<'_>;
    SetConfigResult;
    GetConfig<'_>;
    GetConfigResult<'_>;
    ListConfig<'_>;
    ListConfigResult<'_>;
    Redrive<'_>;
    RedriveResult;
    CreateApiKey<'_>;
    CreateApiKeyResult<'_>;
    RevokeApiKey<'_>;
    RevokeApiKeyResult;
    ListApiKeys;
    ListApiKeysResult<'_>;
    SetAcl<'_>;
    SetAclResult;
    GetAcl<'_>;
    GetAclResult<'_>;
    GetThrottleStats<'_>;
    GetThrottleStatsResult<'_>;
    GetThrottleBucket<'_>;
    GetThrottleBucketResult<'_>;
    GetRoutes<'_>;
    GetRoutesResult<'_>;
    DrainNode;
    DrainNodeResult;
    MoveQueueLeader<'_>;
    MoveQueueLeaderResult;
    SetRebalancing;
    SetRebalancingResult;
    GetClusterStatus;
    GetClusterStatusResult<'_>;
}
