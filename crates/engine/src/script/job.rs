//! What goes to the host and what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Form, Lsn, MessageId, QueueId};

/// A queue's scripts in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueScripts {
    /// Names these texts: no other scripts, of whatever queue, have it while the process lives. So
    /// a host may keep what it loaded under this number.
    pub version: u64,
    /// The script whose global function `on_enqueue` classifies messages.
    pub on_enqueue: Option<Arc<str>>,
    /// The script whose global function `on_failure` decides what follows a failed delivery.
    pub on_failure: Option<Arc<str>>,
}

/// Calls of one queue's scripts. The host gives it back as it is, with one result per call, in
/// [`crate::Request::ScriptDone`]; jobs may come back in any order. Of one queue at most a few are
/// out at a time (one of each kind of work), so a slow script makes nobody else wait.
#[derive(Clone, Debug)]
pub struct ScriptJob {
    /// The engine's own number for the job.
    pub ticket: u64,
    /// Whose scripts they are: what the host's fairness between queues counts by. A queue about to
    /// be created has none: `QueueId(0)`.
    pub queue_id: QueueId,
    /// The queue's name, which scripts see as `msg.queue`.
    pub queue: Arc<str>,
    /// The scripts to run.
    pub scripts: Arc<QueueScripts>,
    /// Runtime configuration as it was when the job was made, for `fila.get`.
    pub runtime: Arc<BTreeMap<String, String>>,
    /// What to do.
    pub task: ScriptTask,
}

/// What is to be done with scripts.
#[derive(Clone, Debug)]
pub enum ScriptTask {
    /// Load both scripts and see that each defines its hook: before a queue gets them. Of a
    /// version that no other job has.
    Check,
    /// Call `on_enqueue` for each of these, in order.
    Enqueue(Vec<EnqueueCall>),
    /// Call `on_failure` for each of these, in order.
    Failure(Vec<FailureCall>),
}

/// A message's headers and payload in the layout of [`crate::Content`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallContent {
    /// These bytes; they may share the buffer that the message came in. What follows the payload is
    /// not the producer's.
    Here(Bytes),
    /// They lie in the log: the node puts them in before the job leaves it, so that a host sees
    /// none of these.
    Log {
        /// Where.
        at: Lsn,
        /// How many bytes.
        len: u32,
    },
    /// They cannot be read now. The result of the call is [`ScriptFault::Unreadable`], without
    /// running anything.
    Unreadable,
}

impl CallContent {
    /// The bytes; none when they are not here.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Here(bytes) => bytes,
            Self::Log { .. } | Self::Unreadable => &[],
        }
    }
}

/// One call of `on_enqueue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnqueueCall {
    /// Headers and payload.
    pub content: CallContent,
    /// Their layout.
    pub form: Form,
    /// The producer's fairness key; empty = none.
    pub fairness_key: Box<str>,
    /// The producer's weight, at least 1.
    pub weight: u32,
}

/// One call of `on_failure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCall {
    /// Headers and payload.
    pub content: CallContent,
    /// Their layout.
    pub form: Form,
    /// The message.
    pub id: MessageId,
    /// Deliveries so far that failed, this one included: at least 1.
    pub attempts: u32,
    /// Times it was redriven.
    pub redrives: u32,
    /// How the delivery failed.
    pub reason: FailureReason,
    /// The consumer's words, UTF-8; empty when the lease expired.
    pub error: Bytes,
}

/// How a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The consumer said so.
    Nack,
    /// Nobody settled it in time.
    LeaseExpired,
}

/// The results of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptOutcome {
    /// Of [`ScriptTask::Check`]: the scripts can be used, or why not: which script, which line,
    /// what is wrong.
    Checked(Result<(), String>),
    /// Of [`ScriptTask::Enqueue`]: one result per call, in order.
    Enqueue(Vec<Result<Classification, ScriptFault>>),
    /// Of [`ScriptTask::Failure`]: one result per call, in order; `None` = nothing was returned, so
    /// the retry policy decides.
    Failure(Vec<Result<Option<Decision>, ScriptFault>>),
}

/// What `on_enqueue` returned. A field that it did not return is the producer's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classification {
    /// The fairness key, at most 65,535 bytes; `Some("")` = the unkeyed group.
    pub fairness_key: Option<String>,
    /// The weight; 0 counts as 1.
    pub weight: Option<u32>,
    /// Names and values, each name once. Together at most [`Classification::ATTRIBUTE_BYTES_MAX`]
    /// bytes.
    pub attributes: Vec<(String, String)>,
}

impl Classification {
    /// Most bytes of all names and values of attributes, with 4 bytes more for each attribute.
    pub const ATTRIBUTE_BYTES_MAX: usize = 65_535;
}

/// What `on_failure` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// `action = "retry"`
    Retry {
        /// The delay before it; `None` = that of the retry policy.
        delay_ms: Option<u64>,
    },
    /// `action = "dlq"`
    DeadLetter,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFault {
    /// The script raised an error, used too much memory or returned what is not allowed: why. With
    /// the same message it will again.
    Failed(String),
    /// The script did not end in time.
    TimedOut,
    /// The call's content could not be read ([`CallContent::Unreadable`]).
    Unreadable,
}
