//! Every opcode with its struct, for tests that must leave none out.

use core::fmt::Debug;

use serde_json::{Value, json};
use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
    GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, SetRebalancing, SetRebalancingResult,
};
use tanda_wire::fila::config::{
    GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig, SetConfigResult,
};
use tanda_wire::fila::consume::{CancelConsume, Consume, ConsumeOk, Credit};
use tanda_wire::fila::control::{Disconnect, Handshake, HandshakeOk, Ping, Pong};
use tanda_wire::fila::delivery::{DeliveryBatch, DeliveryWriter};
use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueResult, EnqueueWriter};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::field::Field;
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

use crate::json::{Json, enqueue_from_json};

/// What a body decodes to, and what its struct encodes to again.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) fields: Value,
    pub(crate) encoded: Vec<u8>,
}

fn plain<'a, B: Body<'a> + Json<'a> + PartialEq + Debug>(
    opcode: Opcode,
    body: &'a [u8],
) -> Result<Decoded, DecodeError> {
    assert_eq!(B::OPCODE, opcode);
    let mut reader = tanda_wire::cursor::Reader::new(body);
    let decoded = B::read(&mut reader)?;
    let mut encoded = Vec::new();
    decoded.write(&mut encoded).unwrap();
    assert_eq!(
        encoded.len(),
        decoded.size(),
        "{opcode}: encoded_size differs from the bytes"
    );
    assert!(
        encoded.len() >= B::SIZE_MIN,
        "{opcode}: SIZE_MIN is too large"
    );
    Ok(Decoded {
        fields: decoded.to_json(),
        encoded,
    })
}

fn size_of_items<'a, T: Field<'a>>(items: &[T]) -> usize {
    4 + items.iter().map(Field::size).sum::<usize>()
}

fn batch<'a, T: Field<'a> + Json<'a>>(
    name: &str,
    items: Result<Vec<T>, DecodeError>,
    write: impl FnOnce(&mut Vec<u8>, &[T]) -> u32,
) -> Result<Decoded, DecodeError> {
    let items = items?;
    let mut encoded = Vec::new();
    assert_eq!(write(&mut encoded, &items) as usize, items.len());
    assert_eq!(
        encoded.len(),
        size_of_items(&items),
        "{name}: size differs from the bytes"
    );
    let values: Vec<Value> = items.iter().map(Json::to_json).collect();
    Ok(Decoded {
        fields: json!({ name: values }),
        encoded,
    })
}

fn enqueue(body: &[u8]) -> Result<Decoded, DecodeError> {
    let items = EnqueueBatch::decode_header(body)?.collect();
    batch("messages", items, |out, items| {
        let mut writer = EnqueueWriter::new(out);
        items
            .iter()
            .for_each(|item| writer.push_message(item).unwrap());
        writer.finish()
    })
}

fn delivery(body: &[u8]) -> Result<Decoded, DecodeError> {
    let items = DeliveryBatch::decode_header(body)?.collect();
    batch("messages", items, |out, items| {
        let mut writer = DeliveryWriter::new(out);
        items
            .iter()
            .for_each(|item| writer.push(&item.as_item()).unwrap());
        writer.finish()
    })
}

macro_rules! settle {
    ($name:ident, $Batch:ident, $Writer:ident) => {
        fn $name(body: &[u8]) -> Result<Decoded, DecodeError> {
            let items = $Batch::decode_header(body)?.collect();
            batch("items", items, |out, items| {
                let mut writer = $Writer::new(out);
                items.iter().for_each(|item| writer.push(item).unwrap());
                writer.finish()
            })
        }
    };
}

settle!(ack, AckBatch, AckWriter);
settle!(nack, NackBatch, NackWriter);
settle!(extend, ExtendBatch, ExtendWriter);

fn encode_plain<'v, B: Body<'v> + Json<'v>>(fields: &'v Value) -> Vec<u8> {
    let mut out = Vec::new();
    B::from_json(fields).write(&mut out).unwrap();
    out
}

macro_rules! bodies {
    ($( $Opcode:ident => $Type:ty; )*) => {
        /// Decodes a body of any known opcode and encodes the result again.
        pub(crate) fn decode(opcode: Opcode, body: &[u8]) -> Result<Decoded, DecodeError> {
            match opcode {
                Opcode::Enqueue => enqueue(body),
                Opcode::Delivery => delivery(body),
                Opcode::Ack => ack(body),
                Opcode::Nack => nack(body),
                Opcode::ExtendLease => extend(body),
                $( Opcode::$Opcode => plain::<$Type>(opcode, body), )*
                Opcode::Unknown(number) => panic!("opcode {number} is not known"),
            }
        }

        /// Encodes the fields of any known opcode.
        pub(crate) fn encode(opcode: Opcode, fields: &Value) -> Vec<u8> {
            match opcode {
                Opcode::Enqueue => enqueue_from_json(fields),
                Opcode::Delivery => crate::json::delivery_from_json(fields),
                Opcode::Ack => crate::json::ack_from_json(fields),
                Opcode::Nack => crate::json::nack_from_json(fields),
                Opcode::ExtendLease => crate::json::extend_from_json(fields),
                $( Opcode::$Opcode => encode_plain::<$Type>(fields), )*
                Opcode::Unknown(number) => panic!("opcode {number} is not known"),
            }
        }
    };
}

bodies! {
    Handshake => Handshake<'_>;
    HandshakeOk => HandshakeOk;
    Ping => Ping;
    Pong => Pong;
    Disconnect => Disconnect;
    EnqueueResult => EnqueueResult<'_>;
    Consume => Consume<'_>;
    ConsumeOk => ConsumeOk<'_>;
    Credit => Credit;
    CancelConsume => CancelConsume;
    AckResult => AckResult;
    NackResult => NackResult;
    ExtendLeaseResult => ExtendLeaseResult;
    Error => ErrorFrame<'_>;
    CreateQueue => CreateQueue<'_>;
    CreateQueueResult => CreateQueueResult<'_>;
    UpdateQueue => UpdateQueue<'_>;
    UpdateQueueResult => UpdateQueueResult;
    DeleteQueue => DeleteQueue<'_>;
    DeleteQueueResult => DeleteQueueResult;
    GetStats => GetStats<'_>;
    GetStatsResult => GetStatsResult<'_>;
    ListQueues => ListQueues;
    ListQueuesResult => ListQueuesResult<'_>;
    SetConfig => SetConfig<'_>;
    SetConfigResult => SetConfigResult;
    GetConfig => GetConfig<'_>;
    GetConfigResult => GetConfigResult<'_>;
    ListConfig => ListConfig<'_>;
    ListConfigResult => ListConfigResult<'_>;
    Redrive => Redrive<'_>;
    RedriveResult => RedriveResult;
    CreateApiKey => CreateApiKey<'_>;
    CreateApiKeyResult => CreateApiKeyResult<'_>;
    RevokeApiKey => RevokeApiKey<'_>;
    RevokeApiKeyResult => RevokeApiKeyResult;
    ListApiKeys => ListApiKeys;
    ListApiKeysResult => ListApiKeysResult<'_>;
    SetAcl => SetAcl<'_>;
    SetAclResult => SetAclResult;
    GetAcl => GetAcl<'_>;
    GetAclResult => GetAclResult<'_>;
    GetThrottleStats => GetThrottleStats<'_>;
    GetThrottleStatsResult => GetThrottleStatsResult<'_>;
    GetThrottleBucket => GetThrottleBucket<'_>;
    GetThrottleBucketResult => GetThrottleBucketResult<'_>;
    GetRoutes => GetRoutes<'_>;
    GetRoutesResult => GetRoutesResult<'_>;
    DrainNode => DrainNode;
    DrainNodeResult => DrainNodeResult;
    MoveQueueLeader => MoveQueueLeader<'_>;
    MoveQueueLeaderResult => MoveQueueLeaderResult;
    SetRebalancing => SetRebalancing;
    SetRebalancingResult => SetRebalancingResult;
    GetClusterStatus => GetClusterStatus;
    GetClusterStatusResult => GetClusterStatusResult<'_>;
}
