//! The broker as a state machine.
//!
//! Owns queues, their messages, scheduling, leases, retries, deduplication, dead letters, runtime
//! configuration, statistics and keys of typed data. It refuses to know protocols, sockets, files,
//! threads and clocks:
//! requests and time come in as arguments, records go to a [`Journal`], effects come out as
//! [`Output`] values that say which log position they must wait for.
//!
//! ```text
//!  Request, now ──► Engine ──► records ──► Journal (the log)
//!                     │
//!                     └──────► Output { conn, after: Lsn, event }
//! ```

mod admin;
mod atomic;
mod capture;
mod cluster;
mod config;
mod consumer_checks;
mod consumers;
mod content;
mod counts;
mod dead_letter;
mod declare;
mod engine;
mod expand;
mod expire;
mod explain;
mod explanation;
mod find;
mod graveyard;
mod holds;
mod ids;
mod incoming;
mod jobs;
mod journal;
mod key;
mod keys;
mod keyspace;
mod message_ids;
mod moves;
mod noted;
mod on_admin;
mod on_get;
mod on_pop;
mod on_publish;
mod on_settle;
mod on_subscribe;
mod on_unsubscribe;
mod output;
mod page;
mod paging;
mod placing;
mod policy;
mod publish;
mod publish_routed;
mod queue;
mod queue_config;
mod queue_record;
mod queues;
mod record;
mod release;
mod relocate;
mod replay;
mod replay_queues;
mod replay_state;
mod request;
mod returns;
mod runtime_config;
mod salvage;
mod schedule;
mod script;
mod segments;
mod settle;
mod start;
mod stats;
mod steady;
mod store;
mod subscribe;
mod throttle;
mod timers;
mod topology;
mod transaction;
mod users;
mod validate;
mod vhost_queues;
mod watch;
mod write_leases;

pub use admin::{
    AdminReply, AdminRequest, CheckScriptsError, ClusterStatus, CreateQueueError, DeleteQueueError,
    QueueDetails, QueueNotFound, Rebalancing, Reclassify, RedriveError, Redriven,
    RuntimeConfigError, UpdateQueueError,
};
pub use config::{Defaults, EngineConfig, Limits};
pub use content::{Content, ContentError, Form, Headers};
pub use counts::QueueCounts;
pub use engine::{Engine, ReplayError};
pub use expand::expand_state;
pub use explanation::{MessagePlace, QueueExplanation};
pub use graveyard::Garbage;
pub use ids::{ConnId, Lsn, MessageId, Millis, PageSlot, QueueId, ReplyTo, Span, SubId, VhostId};
pub use journal::{ContentRead, Journal};
pub use keys::{
    AclOf, ApiKey, ApiKeyId, ApiKeyInfo, ApiKeyNotFound, Bootstrapped, Caller, CreateApiKeyError,
    CredentialError, Grant, KeyHash, KeyTable, NewApiKey, Permission, SetAclError,
};
pub use keyspace::{
    AddedPart, Condition, Datum, DatumForm, KeyAnswer, KeyError, KeyOp, KeyRead, KeyRequest,
    KeyScan, KeyType, KeyWrite, ListSide, Places, RankingPart, RankingSpan, RemovedPart, TakenFrom,
    VersionedDatum,
};
pub use output::{DeliveryBatch, DeliveryItem, Event, Output, SubscriptionEnd};
pub use page::page_bytes;
pub use paging::PageErrors;
pub use policy::{AmqpOverflow, AmqpPolicy, QueueKind};
pub use publish::{PublishBatch, PublishError, PublishItem, PublishResult, PublishTarget};
pub use queue_config::{
    Backoff, DeliveryDurability, KeyKind, KeyPart, MaxLength, MissingOrderingKey, Ordering,
    Overflow, QueueChanges, QueueConfig, QueueSpec, RetryPolicy, ScriptFailure,
};
pub use record::{named_snapshot, snapshot_record};
pub use relocate::{Moved, Survivor, SurvivorCursor};
pub use replay::ReadPage;
pub use request::{ConnLimits, Request};
pub use salvage::{Inlined, inline_contents, record_kind};
pub use script::{
    CallContent, Classification, Decision, EnqueueCall, FailureCall, FailureReason, QueueScripts,
    ScriptFault, ScriptJob, ScriptOutcome, ScriptTask,
};
pub use segments::SegmentUse;
pub use settle::{SettleBatch, SettleError, SettleItem, SettleQueue, SettleResult, Settlement};
pub use stats::{KeyStats, QueueStats, QueueSummary, VhostCounts};
pub use subscribe::{
    FrameLimit, GetError, GetSpec, Got, Held, LeaseMode, PoolChange, SubscribeError, SubscribeSpec,
    Take,
};
pub use throttle::{
    BucketStats, MissingThrottleKey, ThrottleLimit, ThrottleNotFound, ThrottleSpec, ThrottleStats,
    ThrottleSummary,
};
pub use topology::{
    BindingInfo, BindingSpec, DeclareQueue, DeclaredQueue, Destination, ExchangeInfo, ExchangeKind,
    ExchangeSpec, TopologyCode, TopologyError, VhostInfo,
};
pub use users::{
    NewTopicPermissions, NewUser, NewVhostPermissions, PasswordChange, PasswordHash,
    PermissionError, PutUserError, TopicPermissions, User, UserId, UserNotFound, UserReply,
    UserRequest, UserTable, VhostPermissions,
};
pub use vhost_queues::{QueueInfo, QueueOrigin};
pub use watch::{WatchSpec, WatchedMessage};
