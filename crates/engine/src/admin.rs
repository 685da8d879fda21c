//! Everything rare: queues, statistics, redrive, runtime configuration, explanations.

use crate::{
    AclOf, ApiKeyInfo, ApiKeyNotFound, BindingInfo, BindingSpec, Bootstrapped, BucketStats,
    CreateApiKeyError, DeclareQueue, DeclaredQueue, Destination, ExchangeInfo, ExchangeSpec, Grant,
    KeyHash, MessageId, Millis, NewApiKey, QueueChanges, QueueConfig, QueueCounts,
    QueueExplanation, QueueInfo, QueueSpec, QueueStats, QueueSummary, SetAclError,
    ThrottleNotFound, ThrottleStats, TopologyError, UserReply, UserRequest, VhostCounts, VhostId,
    VhostInfo,
};

/// A rare request.
#[derive(Clone, Debug)]
pub enum AdminRequest {
    /// Create a queue and its dead-letter queue.
    CreateQueue(Box<QueueSpec>),
    /// Change a queue's mutable policies.
    UpdateQueue {
        /// Its virtual host.
        vhost: VhostId,
        /// The queue's name.
        name: String,
        /// The changes.
        changes: Box<QueueChanges>,
    },
    /// Load scripts as for a queue, without giving them to one: says what is wrong with them.
    CheckScripts {
        /// A script run on every enqueue.
        on_enqueue: Option<String>,
        /// A script run on every failure.
        on_failure: Option<String>,
    },
    /// Delete a queue and its dead-letter queue with all their messages.
    DeleteQueue {
        /// Its virtual host.
        vhost: VhostId,
        /// The queue's name.
        name: String,
    },
    /// Delete a queue's pending messages; leased ones stay.
    PurgeQueue {
        /// Its virtual host.
        vhost: VhostId,
        /// The queue's name; may be a dead-letter queue.
        name: String,
    },
    /// A queue's statistics.
    QueueStats {
        /// Its virtual host.
        vhost: VhostId,
        /// The queue's name.
        name: String,
    },
    /// A queue's policies and counters, without its keys.
    InspectQueue {
        /// Its virtual host.
        vhost: VhostId,
        /// The queue's name.
        name: String,
    },
    /// A throttle's state.
    ThrottleStats {
        /// Its name.
        name: String,
        /// How many of the buckets to show that most messages wait for.
        top_buckets: u32,
    },
    /// The state of one bucket of a throttle.
    ThrottleBucket {
        /// The throttle's name.
        name: String,
        /// The one of messages that lack a part of the key.
        shared: bool,
        /// The values of the key.
        values: Vec<String>,
    },
    /// All queues of the default virtual host.
    ListQueues,
    /// Move dead letters back to the queue they came from.
    Redrive {
        /// Its virtual host.
        vhost: VhostId,
        /// The dead-letter queue's name.
        name: String,
        /// At most this many of those present now; 0 = all.
        count: u64,
        /// Which of them `on_enqueue` classifies on their way.
        reclassify: Reclassify,
    },
    /// Set a runtime configuration entry.
    SetConfig {
        /// Its key.
        key: String,
        /// Its value; may be empty.
        value: String,
    },
    /// Read a runtime configuration entry.
    GetConfig {
        /// Its key.
        key: String,
    },
    /// Runtime configuration entries by key prefix.
    ListConfig {
        /// Empty = all.
        prefix: String,
    },
    /// Remember how leadership is rebalanced (one node: remembered only).
    SetRebalancing(Rebalancing),
    /// What a cluster status shows of this node.
    ClusterStatus,
    /// Why a queue, or one of its messages, is not being delivered now.
    Explain {
        /// Its virtual host.
        vhost: VhostId,
        /// The queue's name.
        name: String,
        /// One message.
        message: Option<MessageId>,
    },
    /// Make an API key.
    CreateApiKey(Box<NewApiKey>),
    /// Make the configured first API key, a superadmin, unless it was made before.
    Bootstrap {
        /// The hash of its secret.
        hash: KeyHash,
    },
    /// Revoke an API key.
    RevokeApiKey {
        /// Its id, as operators see it.
        id: String,
    },
    /// All API keys, in the order in which they were made.
    ListApiKeys,
    /// Replace an API key's permissions.
    SetAcl {
        /// Its id, as operators see it.
        id: String,
        /// The new permissions.
        grants: Vec<Grant>,
    },
    /// An API key's permissions.
    GetAcl {
        /// Its id, as operators see it.
        id: String,
    },
    /// Make, change and delete users and their permissions.
    User(UserRequest),
    /// Ask for a virtual host by name.
    OpenVhost {
        /// Its name.
        name: String,
    },
    /// Make a virtual host; one that exists stays.
    CreateVhost {
        /// Its name.
        name: String,
    },
    /// Delete a virtual host with everything in it.
    DeleteVhost {
        /// Its name.
        name: String,
    },
    /// All virtual hosts, by name.
    ListVhosts,
    /// Declare an exchange.
    DeclareExchange(Box<ExchangeSpec>),
    /// Delete an exchange; one that is not there is deleted already.
    DeleteExchange {
        /// Its virtual host.
        vhost: VhostId,
        /// Its name.
        name: String,
        /// Only when nothing is bound to it.
        if_unused: bool,
    },
    /// Make a binding; one that exists stays.
    Bind(Box<BindingSpec>),
    /// Remove a binding; one that is not there is removed already.
    Unbind(Box<BindingSpec>),
    /// All exchanges of a virtual host, by name.
    ListExchanges {
        /// The virtual host.
        vhost: VhostId,
    },
    /// All queues of a virtual host, dead-letter queues too.
    ListQueuesOf {
        /// The virtual host.
        vhost: VhostId,
    },
    /// All bindings of a virtual host, by source, destination and key.
    ListBindings {
        /// The virtual host.
        vhost: VhostId,
    },
    /// How much there is in a virtual host.
    CountVhost {
        /// The virtual host.
        vhost: VhostId,
    },
    /// The patterns by which a topic exchange is watched now.
    ListChannels {
        /// Its virtual host.
        vhost: VhostId,
        /// Its name.
        exchange: String,
        /// Most bytes of all patterns together.
        answer_bytes_max: usize,
    },
    /// Declare a queue as AMQP and FireMQ do.
    DeclareQueue(Box<DeclareQueue>),
    /// Delete a queue as AMQP and FireMQ do; one that is not there is deleted already.
    RemoveQueue {
        /// Its virtual host.
        vhost: VhostId,
        /// Its name.
        name: String,
        /// Only when nobody consumes from it.
        if_unused: bool,
        /// Only when it has no ready messages.
        if_empty: bool,
    },
    /// Delete the exclusive queues of the connection that asks.
    RemoveOwnQueues,
    /// Delete a queue's ready messages as AMQP and FireMQ do.
    Purge {
        /// Its virtual host.
        vhost: VhostId,
        /// Its name.
        name: String,
    },
}

impl AdminRequest {
    /// Rough size in memory of its texts, for the bounds of the command channel.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        let script = |script: &Option<String>| script.as_ref().map_or(0, String::len);
        match self {
            Self::CreateQueue(spec) => {
                spec.name.len() + script(&spec.on_enqueue) + script(&spec.on_failure)
            }
            Self::UpdateQueue { name, changes, .. } => {
                let change = |change: &Option<Option<String>>| change.as_ref().map_or(0, script);
                name.len() + change(&changes.on_enqueue) + change(&changes.on_failure)
            }
            Self::CheckScripts {
                on_enqueue,
                on_failure,
            } => script(on_enqueue) + script(on_failure),
            Self::SetConfig { key, value } => key.len() + value.len(),
            Self::DeleteQueue { name, .. }
            | Self::PurgeQueue { name, .. }
            | Self::QueueStats { name, .. }
            | Self::InspectQueue { name, .. }
            | Self::Redrive { name, .. }
            | Self::ThrottleStats { name, .. }
            | Self::Explain { name, .. } => name.len(),
            Self::ThrottleBucket { name, values, .. } => {
                name.len() + values.iter().map(String::len).sum::<usize>()
            }
            Self::GetConfig { key } => key.len(),
            Self::ListConfig { prefix } => prefix.len(),
            Self::CreateApiKey(new) => new.name.len(),
            Self::RevokeApiKey { id } | Self::GetAcl { id } => id.len(),
            Self::SetAcl { id, grants } => {
                let grant = |grant: &Grant| size_of::<Grant>() + grant.pattern.len();
                id.len() + grants.iter().map(grant).sum::<usize>()
            }
            Self::User(request) => request.weight_bytes(),
            Self::OpenVhost { name }
            | Self::CreateVhost { name }
            | Self::DeleteVhost { name }
            | Self::DeleteExchange { name, .. }
            | Self::RemoveQueue { name, .. }
            | Self::Purge { name, .. } => name.len(),
            Self::ListChannels { exchange, .. } => exchange.len(),
            Self::DeclareExchange(spec) => spec.name.len() + spec.args.len(),
            Self::Bind(spec) | Self::Unbind(spec) => {
                let (Destination::Queue(to) | Destination::Exchange(to)) = &spec.destination;
                spec.source.len() + to.len() + spec.key.len() + spec.args.len()
            }
            Self::DeclareQueue(declare) => declare.name.len() + declare.args.len(),
            Self::ListVhosts
            | Self::CountVhost { .. }
            | Self::ListExchanges { .. }
            | Self::ListBindings { .. }
            | Self::ListQueuesOf { .. }
            | Self::ListQueues
            | Self::RemoveOwnQueues
            | Self::SetRebalancing(_)
            | Self::ClusterStatus
            | Self::Bootstrap { .. }
            | Self::ListApiKeys => 0,
        }
    }
}

/// Which dead letters a redrive shows to the queue's `on_enqueue` script. Without a script all are
/// moved with the values they have, and none is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reclassify {
    /// All of them.
    #[default]
    All,
    /// Those that no script has classified; the others are moved as they are.
    Unclassified,
    /// None; those that no script has classified stay.
    None,
}

/// The answer to an [`AdminRequest`], variant by variant.
#[derive(Clone, Debug, PartialEq)]
pub enum AdminReply {
    /// The new queue's id, as operators see it.
    Created(Result<String, CreateQueueError>),
    /// Changed.
    Updated(Result<(), UpdateQueueError>),
    /// The scripts can be used, or not.
    ScriptsChecked(Result<(), CheckScriptsError>),
    /// Deleted.
    Deleted(Result<(), DeleteQueueError>),
    /// Number of messages deleted.
    Purged(Result<u64, QueueNotFound>),
    /// A throttle's state.
    Throttle(Result<ThrottleStats, ThrottleNotFound>),
    /// A bucket's state.
    ThrottleBucket(Result<BucketStats, ThrottleNotFound>),
    /// Statistics.
    Stats(Result<QueueStats, QueueNotFound>),
    /// Policies and counters.
    Inspected(Result<QueueDetails, QueueNotFound>),
    /// All queues, by name. More than a thousand are listed in slices, each by name: those that
    /// come or go meanwhile may be missing.
    Queues(Vec<QueueSummary>),
    /// How many moved.
    Redriven(Result<Redriven, RedriveError>),
    /// Set.
    ConfigSet(Result<(), RuntimeConfigError>),
    /// The value; `None` when unset.
    Config(Option<String>),
    /// Entries by key.
    ConfigList(Vec<(String, String)>),
    /// Remembered.
    RebalancingSet,
    /// What a cluster status shows of this node.
    ClusterStatus(ClusterStatus),
    /// Why nothing moves.
    Explained(Result<QueueExplanation, QueueNotFound>),
    /// The new API key.
    ApiKeyCreated(Result<ApiKeyInfo, CreateApiKeyError>),
    /// What became of the configured first API key.
    Bootstrapped(Result<Bootstrapped, CreateApiKeyError>),
    /// The API key that is gone.
    ApiKeyRevoked(Result<ApiKeyInfo, ApiKeyNotFound>),
    /// All API keys.
    ApiKeys(Vec<ApiKeyInfo>),
    /// The API key whose permissions were replaced.
    AclSet(Result<ApiKeyInfo, SetAclError>),
    /// An API key's permissions.
    Acl(Result<AclOf, ApiKeyNotFound>),
    /// Of users and permissions.
    User(UserReply),
    /// The virtual host that was asked for.
    Vhost(Result<VhostId, TopologyError>),
    /// It is there.
    VhostChanged(Result<(), TopologyError>),
    /// The virtual host that is gone: its number is never used again.
    VhostDeleted(Result<VhostId, TopologyError>),
    /// All virtual hosts, by name.
    Vhosts(Vec<VhostInfo>),
    /// It is there.
    ExchangeDeclared(Result<(), TopologyError>),
    /// It is not there.
    ExchangeDeleted(Result<(), TopologyError>),
    /// It is there.
    Bound(Result<(), TopologyError>),
    /// It is not there.
    Unbound(Result<(), TopologyError>),
    /// The exchanges of a virtual host, by name.
    Exchanges(Result<Vec<ExchangeInfo>, TopologyError>),
    /// The queues of a virtual host, by name. Those that come or go while a long list is made may
    /// be missing.
    QueuesOf(Result<Vec<QueueInfo>, TopologyError>),
    /// The bindings of a virtual host, by source, destination and key.
    Bindings(Result<Vec<BindingInfo>, TopologyError>),
    /// How much there is in a virtual host; nothing in one that is gone.
    VhostCounts(VhostCounts),
    /// Patterns, in order, each once; `ResourceError` when they are too many bytes.
    Channels(Result<Vec<String>, TopologyError>),
    /// It is there.
    QueueDeclared(Result<DeclaredQueue, TopologyError>),
    /// Number of messages deleted.
    QueueRemoved(Result<u64, TopologyError>),
    /// Number of messages deleted.
    QueuePurged(Result<u64, TopologyError>),
}

/// How leadership is rebalanced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rebalancing {
    /// Automatically.
    #[default]
    Enabled,
    /// Not for this long from now; a pause ends on its own.
    Paused {
        /// Length of the pause.
        pause_ms: u64,
    },
    /// Not until it is enabled again.
    Disabled,
}

/// What a cluster status shows of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterStatus {
    /// As last set; an ended pause shows as enabled.
    pub rebalancing: Rebalancing,
    /// When the pause ends; zero unless paused.
    pub pause_ends_at: Millis,
    /// Queues this node leads, dead-letter queues not counted.
    pub queue_leaderships: u32,
}

/// No queue of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueNotFound;

/// Why a queue was not created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateQueueError {
    /// The virtual host is gone.
    VhostNotFound,
    /// The name, or the name of its dead-letter queue, is taken.
    AlreadyExists,
    /// Names ending in `.dlq` belong to dead-letter queues.
    ReservedName,
    /// A setting has a value it cannot have.
    InvalidSetting {
        /// Which setting.
        setting: &'static str,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// Nobody here runs scripts.
    ScriptsUnsupported,
    /// A script cannot be used.
    ScriptRefused {
        /// Which script, where, and what is wrong.
        problem: String,
    },
    /// `limits.queues_max` is reached.
    TooManyQueues {
        /// The limit.
        max: u32,
    },
    /// The disk is full.
    Storage,
}

/// Why a queue was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateQueueError {
    /// No queue of that name.
    NotFound,
    /// A dead-letter queue has no policies of its own.
    ReservedName,
    /// A setting has a value it cannot have.
    InvalidSetting {
        /// Which setting.
        setting: &'static str,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// Nobody here runs scripts.
    ScriptsUnsupported,
    /// A script cannot be used.
    ScriptRefused {
        /// Which script, where, and what is wrong.
        problem: String,
    },
    /// The disk is full.
    Storage,
}

/// Why scripts cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckScriptsError {
    /// Nobody here runs scripts.
    Unsupported,
    /// One of them cannot be used: which, where, and what is wrong.
    Refused {
        /// Which script, where, and what is wrong.
        problem: String,
    },
}

/// Why a queue was not deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteQueueError {
    /// No queue of that name.
    NotFound,
    /// A dead-letter queue is deleted with its queue.
    ReservedName,
}

/// A queue's policies and counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDetails {
    /// Its id, as operators see it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its dead-letter queue.
    pub dead_letter_queue: Option<String>,
    /// For a dead-letter queue: the queue its messages come from.
    pub parent: Option<String>,
    /// Its policies.
    pub config: QueueConfig,
    /// Its counters.
    pub counts: QueueCounts,
}

/// The outcome of a redrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redriven {
    /// Messages moved back.
    pub redriven: u64,
    /// Messages that stayed: unclassified, and no script was to see them.
    pub left_unclassified: u64,
    /// Messages that stayed: the script failed on them, and the queue rejects such messages.
    pub rejected_by_script: u64,
}

/// Why nothing was redriven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedriveError {
    /// No queue of that name.
    NotFound,
    /// The queue is not a dead-letter queue.
    NotDeadLetterQueue,
}

/// Why a runtime configuration entry was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeConfigError {
    /// The key is empty or too long.
    BadKey {
        /// Its length in bytes.
        len: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// The table is full.
    TooMany {
        /// The most entries allowed.
        max: usize,
    },
    /// The disk is full.
    Storage,
}
