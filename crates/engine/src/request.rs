//! What connections ask of the engine.

use crate::{
    AdminRequest, ConnId, DeliveryBatch, GetSpec, Held, KeyAnswer, KeyRequest, PoolChange,
    PublishBatch, ReplyTo, ScriptJob, ScriptOutcome, SettleBatch, SubId, SubscribeSpec, VhostId,
    WatchSpec,
};

/// Bounds of one connection, set by its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnLimits {
    /// Deliveries under way to the connection (in [`crate::DeliveryBatch::budget_bytes`]) before
    /// the scheduler passes it over. A single larger message may exceed it.
    pub outbound_bytes_max: u64,
    /// Live subscriptions.
    pub subscriptions_max: u32,
}

/// One input.
#[derive(Clone, Debug)]
pub enum Request {
    /// First input of a connection.
    Connect {
        /// The new connection.
        conn: ConnId,
        /// Its bounds.
        limits: ConnLimits,
    },
    /// Last input of a connection: subscriptions end, timed leases stay.
    Disconnect {
        /// The connection that is gone.
        conn: ConnId,
    },
    /// Deliveries of this many budget bytes have left for the peer.
    Drained {
        /// The connection.
        conn: ConnId,
        /// Sum of [`crate::DeliveryBatch::budget_bytes`] since the last report.
        bytes: u64,
    },
    /// Store messages. Answer: `Published`.
    Publish {
        /// Where the answer goes.
        reply: ReplyTo,
        /// The messages.
        batch: PublishBatch,
    },
    /// Settle or extend leases. Answer: `Settled`.
    Settle {
        /// Where the answer goes.
        reply: ReplyTo,
        /// The settlements.
        batch: SettleBatch,
    },
    /// Start a subscription. Answer: `Subscribed` or `SubscribeFailed`.
    Subscribe {
        /// Its identity.
        sub: SubId,
        /// Its terms.
        spec: SubscribeSpec,
    },
    /// More credit; saturating; ignored for an unknown or unlimited subscription.
    Grant {
        /// The subscription.
        sub: SubId,
        /// Additional deliveries.
        credit: u32,
    },
    /// End a subscription; unknown ones are ignored. No answer.
    Unsubscribe {
        /// The subscription.
        sub: SubId,
        /// What becomes of its messages.
        held: Held,
    },
    /// Messages that are ready, or a look at them. Answer: `Got`.
    Get {
        /// Where the answer goes.
        reply: ReplyTo,
        /// From where.
        spec: GetSpec,
    },
    /// Changes a limit that consumers of a connection share. No answer.
    Pool {
        /// The connection.
        conn: ConnId,
        /// The session's own number for the limit.
        pool: u32,
        /// The change.
        change: PoolChange,
    },
    /// Store messages and settle leases, all or nothing. Answer: `Committed`.
    Transaction {
        /// Where the answer goes.
        reply: ReplyTo,
        /// The messages.
        publish: PublishBatch,
        /// The settlements.
        settle: SettleBatch,
    },
    /// Everything rare. Answer: `Admin`.
    Admin {
        /// Where the answer goes.
        reply: ReplyTo,
        /// The request.
        request: AdminRequest,
    },
    /// A command on keys. Answer: `Keys`, at once or after a wait.
    Keys {
        /// Where the answer goes. One that waits is known by it.
        reply: ReplyTo,
        /// The command.
        request: Box<KeyRequest>,
    },
    /// A `Keys` or `Get` that waits is to answer now: that it was cancelled, or with no messages.
    /// One that does not wait (any more) answers as it does. No answer of its own.
    CancelWait {
        /// That of the request.
        reply: ReplyTo,
    },
    /// What a `Got` event of [`crate::Take::Leased`] brought never reached the client, whose
    /// connection is gone: the messages return to their old places and the attempt is not counted.
    /// Of several the newest first. No answer.
    GotUndelivered {
        /// The connection.
        conn: ConnId,
        /// That of the event; `chunks` may be empty.
        batch: Box<DeliveryBatch>,
    },
    /// Start watching a topic exchange. Answer: `Watching`; then `Watched`, and maybe `WatchEnded`.
    /// A watch with the same identity ends.
    Watch {
        /// Its identity, apart from subscriptions.
        sub: SubId,
        /// Its terms.
        spec: Box<WatchSpec>,
    },
    /// End a watch; unknown ones are ignored. No answer; what is under way still comes.
    Unwatch {
        /// The watch.
        sub: SubId,
    },
    /// Events of a watch have left for the peer, or were thrown away; ignored for an unknown watch.
    /// Their [`crate::WatchedMessage::budget_bytes`] are reported with `Drained`. No answer.
    WatchDrained {
        /// The watch.
        sub: SubId,
        /// How many since the last report.
        events: u32,
    },
    /// What a `Keys` event brought never reached the client, whose connection is gone: an item goes
    /// back to its place, a lock to who waits for it. Of several the newest first. No answer.
    KeysUndelivered {
        /// That of the command.
        reply: ReplyTo,
        /// That of the event.
        vhost: VhostId,
        /// What it brought.
        answer: Box<KeyAnswer>,
    },
    /// A job of [`crate::Engine::take_script_jobs`] is done. Must not be refused for want of room:
    /// answers wait for it. No answer.
    ScriptDone {
        /// The job, as it was given out.
        job: Box<ScriptJob>,
        /// Its results.
        outcome: ScriptOutcome,
    },
}

impl Request {
    /// Where its answer goes, if it has one.
    #[must_use]
    pub const fn answer_to(&self) -> Option<ReplyTo> {
        match self {
            Self::Publish { reply, .. }
            | Self::Settle { reply, .. }
            | Self::Get { reply, .. }
            | Self::Transaction { reply, .. }
            | Self::Keys { reply, .. }
            | Self::Admin { reply, .. } => Some(*reply),
            Self::Subscribe { sub, .. } | Self::Watch { sub, .. } => Some(ReplyTo {
                conn: sub.conn,
                token: sub.token,
            }),
            Self::Connect { .. }
            | Self::Disconnect { .. }
            | Self::Drained { .. }
            | Self::Grant { .. }
            | Self::Unsubscribe { .. }
            | Self::Pool { .. }
            | Self::CancelWait { .. }
            | Self::KeysUndelivered { .. }
            | Self::GotUndelivered { .. }
            | Self::Unwatch { .. }
            | Self::WatchDrained { .. }
            | Self::ScriptDone { .. } => None,
        }
    }

    /// The connection that asks; a script is of none.
    #[must_use]
    pub const fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Connect { conn, .. }
            | Self::Disconnect { conn }
            | Self::Drained { conn, .. }
            | Self::GotUndelivered { conn, .. }
            | Self::Pool { conn, .. } => Some(*conn),
            Self::Publish { reply, .. }
            | Self::Settle { reply, .. }
            | Self::Get { reply, .. }
            | Self::Transaction { reply, .. }
            | Self::Admin { reply, .. }
            | Self::Keys { reply, .. }
            | Self::CancelWait { reply }
            | Self::KeysUndelivered { reply, .. } => Some(reply.conn),
            Self::Subscribe { sub, .. }
            | Self::Watch { sub, .. }
            | Self::Unwatch { sub }
            | Self::WatchDrained { sub, .. }
            | Self::Grant { sub, .. }
            | Self::Unsubscribe { sub, .. } => Some(sub.conn),
            Self::ScriptDone { .. } => None,
        }
    }

    /// Rough size in memory, for the bounds of the command channel.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        const BASE: usize = 64;
        match self {
            Self::Publish { batch, .. } => BASE + batch.weight_bytes(),
            Self::Settle { batch, .. } => BASE + batch.weight_bytes(),
            Self::Transaction {
                publish, settle, ..
            } => BASE + publish.weight_bytes() + settle.weight_bytes(),
            Self::Keys { request, .. } => BASE + request.weight_bytes(),
            Self::Watch { spec, .. } => BASE + spec.exchange.len() + spec.pattern.len(),
            Self::Connect { .. }
            | Self::CancelWait { .. }
            | Self::GotUndelivered { .. }
            | Self::Unwatch { .. }
            | Self::WatchDrained { .. }
            | Self::KeysUndelivered { .. }
            | Self::Disconnect { .. }
            | Self::Drained { .. }
            | Self::Subscribe { .. }
            | Self::Grant { .. }
            | Self::Unsubscribe { .. }
            | Self::Get { .. }
            | Self::Pool { .. }
            | Self::ScriptDone { .. } => BASE,
            Self::Admin { request, .. } => BASE + request.weight_bytes(),
        }
    }
}
