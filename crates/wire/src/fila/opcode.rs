//! The opcode table (`Opcode Table`): every frame's number, name and direction.

use super::table::code_table;

code_table! {
    /// What a frame is. A response has its own opcode beside its request's.
    pub enum Opcode {
        /// To the server: opens a connection: version, credential, capabilities.
        Handshake = 0x01,
        /// To the client: accepts it.
        HandshakeOk = 0x02,
        /// Either way: asks whether the peer is alive.
        Ping = 0x03,
        /// Either way: answers a ping.
        Pong = 0x04,
        /// Either way: announces an orderly close.
        Disconnect = 0x05,
        /// To the server: stores a batch of messages.
        Enqueue = 0x10,
        /// To the client: what became of each message.
        EnqueueResult = 0x11,
        /// To the server: subscribes to a queue.
        Consume = 0x12,
        /// To the client: the subscription stands.
        ConsumeOk = 0x13,
        /// To the client: messages for a subscription.
        Delivery = 0x14,
        /// To the server: lets a subscription receive more.
        Credit = 0x15,
        /// To the server: ends a subscription.
        CancelConsume = 0x16,
        /// To the server: settles messages as done.
        Ack = 0x17,
        /// To the client: what became of each ack.
        AckResult = 0x18,
        /// To the server: settles messages as failed.
        Nack = 0x19,
        /// To the client: what became of each nack.
        NackResult = 0x1A,
        /// To the server: asks for more time on leased messages.
        ExtendLease = 0x1B,
        /// To the client: the new end of each lease.
        ExtendLeaseResult = 0x1C,
        /// To the client: refuses a request as a whole.
        Error = 0xFE,
        /// To the server: makes a queue and its dead-letter queue.
        CreateQueue = 0xFD,
        /// To the client: answers `CreateQueue`.
        CreateQueueResult = 0xFC,
        /// To the server: removes a queue and its dead-letter queue.
        DeleteQueue = 0xFB,
        /// To the client: answers `DeleteQueue`.
        DeleteQueueResult = 0xFA,
        /// To the server: reads the counters of a queue.
        GetStats = 0xF9,
        /// To the client: answers `GetStats`.
        GetStatsResult = 0xF8,
        /// To the server: lists the queues.
        ListQueues = 0xF7,
        /// To the client: answers `ListQueues`.
        ListQueuesResult = 0xF6,
        /// To the server: sets one runtime configuration key.
        SetConfig = 0xF5,
        /// To the client: answers `SetConfig`.
        SetConfigResult = 0xF4,
        /// To the server: reads one runtime configuration key.
        GetConfig = 0xF3,
        /// To the client: answers `GetConfig`.
        GetConfigResult = 0xF2,
        /// To the server: reads runtime configuration by prefix.
        ListConfig = 0xF1,
        /// To the client: answers `ListConfig`.
        ListConfigResult = 0xF0,
        /// To the server: moves dead letters back to their queue.
        Redrive = 0xEF,
        /// To the client: answers `Redrive`.
        RedriveResult = 0xEE,
        /// To the server: makes an API key.
        CreateApiKey = 0xED,
        /// To the client: answers `CreateApiKey`.
        CreateApiKeyResult = 0xEC,
        /// To the server: ends an API key.
        RevokeApiKey = 0xEB,
        /// To the client: answers `RevokeApiKey`.
        RevokeApiKeyResult = 0xEA,
        /// To the server: lists the API keys.
        ListApiKeys = 0xE9,
        /// To the client: answers `ListApiKeys`.
        ListApiKeysResult = 0xE8,
        /// To the server: replaces the permissions of a key.
        SetAcl = 0xE7,
        /// To the client: answers `SetAcl`.
        SetAclResult = 0xE6,
        /// To the server: reads the permissions of a key.
        GetAcl = 0xE5,
        /// To the client: answers `GetAcl`.
        GetAclResult = 0xE4,
        /// To the server: reads the state of one throttle.
        GetThrottleStats = 0xE3,
        /// To the client: answers `GetThrottleStats`.
        GetThrottleStatsResult = 0xE2,
        /// To the server: reads one bucket of a throttle.
        GetThrottleBucket = 0xE1,
        /// To the client: answers `GetThrottleBucket`.
        GetThrottleBucketResult = 0xE0,
        /// To the server: changes the settings of a queue that may change.
        UpdateQueue = 0xDF,
        /// To the client: answers `UpdateQueue`.
        UpdateQueueResult = 0xDE,
        /// To the server: asks which node leads which queue.
        GetRoutes = 0xDD,
        /// To the client: answers `GetRoutes`.
        GetRoutesResult = 0xDC,
        /// To the server: moves all leaders off a node, or stops doing so.
        DrainNode = 0xDB,
        /// To the client: answers `DrainNode`.
        DrainNodeResult = 0xDA,
        /// To the server: moves the leader of one queue.
        MoveQueueLeader = 0xD9,
        /// To the client: answers `MoveQueueLeader`.
        MoveQueueLeaderResult = 0xD8,
        /// To the server: turns rebalancing on, off, or pauses it.
        SetRebalancing = 0xD7,
        /// To the client: answers `SetRebalancing`.
        SetRebalancingResult = 0xD6,
        /// To the server: reads nodes, meta leader and rebalancing.
        GetClusterStatus = 0xD5,
        /// To the client: answers `GetClusterStatus`.
        GetClusterStatusResult = 0xD4,
    }
}

/// Who may send a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Clients only: a request, or a signal without an answer.
    ToServer,
    /// Servers only: an answer, or a delivery.
    ToClient,
    /// Both sides.
    Either,
    /// Not known, because the opcode is not.
    Unknown,
}

impl Opcode {
    /// Who may send this frame.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Ping | Self::Pong | Self::Disconnect => Direction::Either,
            Self::Handshake
            | Self::Enqueue
            | Self::Consume
            | Self::Credit
            | Self::CancelConsume
            | Self::Ack
            | Self::Nack
            | Self::ExtendLease
            | Self::CreateQueue
            | Self::DeleteQueue
            | Self::GetStats
            | Self::ListQueues
            | Self::SetConfig
            | Self::GetConfig
            | Self::ListConfig
            | Self::Redrive
            | Self::CreateApiKey
            | Self::RevokeApiKey
            | Self::ListApiKeys
            | Self::SetAcl
            | Self::GetAcl
            | Self::GetThrottleStats
            | Self::GetThrottleBucket
            | Self::UpdateQueue
            | Self::GetRoutes
            | Self::DrainNode
            | Self::MoveQueueLeader
            | Self::SetRebalancing
            | Self::GetClusterStatus => Direction::ToServer,
            Self::HandshakeOk
            | Self::EnqueueResult
            | Self::ConsumeOk
            | Self::Delivery
            | Self::AckResult
            | Self::NackResult
            | Self::ExtendLeaseResult
            | Self::Error
            | Self::CreateQueueResult
            | Self::DeleteQueueResult
            | Self::GetStatsResult
            | Self::ListQueuesResult
            | Self::SetConfigResult
            | Self::GetConfigResult
            | Self::ListConfigResult
            | Self::RedriveResult
            | Self::CreateApiKeyResult
            | Self::RevokeApiKeyResult
            | Self::ListApiKeysResult
            | Self::SetAclResult
            | Self::GetAclResult
            | Self::GetThrottleStatsResult
            | Self::GetThrottleBucketResult
            | Self::UpdateQueueResult
            | Self::GetRoutesResult
            | Self::DrainNodeResult
            | Self::MoveQueueLeaderResult
            | Self::SetRebalancingResult
            | Self::GetClusterStatusResult => Direction::ToClient,
            Self::Unknown(_) => Direction::Unknown,
        }
    }

    /// The opcode that answers this one; `None` for an answer, a signal and an unknown opcode.
    #[must_use]
    pub const fn answer(self) -> Option<Self> {
        Some(match self {
            Self::Handshake => Self::HandshakeOk,
            Self::Ping => Self::Pong,
            Self::Enqueue => Self::EnqueueResult,
            Self::Consume => Self::ConsumeOk,
            Self::Ack => Self::AckResult,
            Self::Nack => Self::NackResult,
            Self::ExtendLease => Self::ExtendLeaseResult,
            Self::CreateQueue => Self::CreateQueueResult,
            Self::DeleteQueue => Self::DeleteQueueResult,
            Self::GetStats => Self::GetStatsResult,
            Self::ListQueues => Self::ListQueuesResult,
            Self::SetConfig => Self::SetConfigResult,
            Self::GetConfig => Self::GetConfigResult,
            Self::ListConfig => Self::ListConfigResult,
            Self::Redrive => Self::RedriveResult,
            Self::CreateApiKey => Self::CreateApiKeyResult,
            Self::RevokeApiKey => Self::RevokeApiKeyResult,
            Self::ListApiKeys => Self::ListApiKeysResult,
            Self::SetAcl => Self::SetAclResult,
            Self::GetAcl => Self::GetAclResult,
            Self::GetThrottleStats => Self::GetThrottleStatsResult,
            Self::GetThrottleBucket => Self::GetThrottleBucketResult,
            Self::UpdateQueue => Self::UpdateQueueResult,
            Self::GetRoutes => Self::GetRoutesResult,
            Self::DrainNode => Self::DrainNodeResult,
            Self::MoveQueueLeader => Self::MoveQueueLeaderResult,
            Self::SetRebalancing => Self::SetRebalancingResult,
            Self::GetClusterStatus => Self::GetClusterStatusResult,
            Self::HandshakeOk
            | Self::Pong
            | Self::Disconnect
            | Self::EnqueueResult
            | Self::ConsumeOk
            | Self::Delivery
            | Self::Credit
            | Self::CancelConsume
            | Self::AckResult
            | Self::NackResult
            | Self::ExtendLeaseResult
            | Self::Error
            | Self::CreateQueueResult
            | Self::DeleteQueueResult
            | Self::GetStatsResult
            | Self::ListQueuesResult
            | Self::SetConfigResult
            | Self::GetConfigResult
            | Self::ListConfigResult
            | Self::RedriveResult
            | Self::CreateApiKeyResult
            | Self::RevokeApiKeyResult
            | Self::ListApiKeysResult
            | Self::SetAclResult
            | Self::GetAclResult
            | Self::GetThrottleStatsResult
            | Self::GetThrottleBucketResult
            | Self::UpdateQueueResult
            | Self::GetRoutesResult
            | Self::DrainNodeResult
            | Self::MoveQueueLeaderResult
            | Self::SetRebalancingResult
            | Self::GetClusterStatusResult
            | Self::Unknown(_) => return None,
        })
    }
}
