//! Messages that AMQP clients published, and each of their copies, one per queue.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::Millis;

use super::Door;

/// What became of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing was heard yet.
    Open,
    /// It was confirmed, or its transaction was committed.
    Confirmed(Millis),
    /// It was not confirmed, in so many words.
    Refused,
    /// Nothing will be heard.
    Unknown,
    /// Its transaction was rolled back.
    RolledBack,
}

/// A message as it was published. Its tag is its index in the history.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) door: Door,
    pub(crate) exchange: &'static str,
    pub(crate) key: String,
    /// Further keys of the header `CC`.
    pub(crate) cc: Vec<&'static str>,
    /// The properties as they stand on the wire.
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_persistent: bool,
    pub(crate) is_mandatory: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) priority: u8,
    /// The channel it was published on; tags of one channel grow.
    pub(crate) stream: u64,
    pub(crate) sent_at: Millis,
    /// Starts of the broker before it was sent.
    pub(crate) epoch: u64,
    pub(crate) tx: Option<usize>,
    pub(crate) outcome: Outcome,
    /// It came back as going nowhere.
    pub(crate) is_returned: bool,
    /// Queues that it surely goes to, if it was taken.
    pub(crate) must: BTreeSet<String>,
    /// Queues that it may have gone to.
    pub(crate) may: BTreeSet<String>,
}

/// A copy of a message: its tag, and the queue it was routed to.
pub(crate) type CopyId = (usize, String);

/// Who has received a copy and not settled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) conn: u64,
    pub(crate) delivery_tag: u64,
    /// When its channel began to take from this queue.
    pub(crate) since: Millis,
    /// The broker may end its channel, and it may not know yet.
    pub(crate) is_unsure: bool,
}

/// What is known of a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copy {
    /// Something that takes it away was sent.
    pub(crate) may_be_gone: bool,
    /// The broker has surely taken an acknowledgement, and no crash has undone it.
    pub(crate) is_gone: bool,
    /// .. and no crash can.
    pub(crate) is_gone_for_good: bool,
    pub(crate) holder: Option<Holder>,
    /// The queue it was last delivered from.
    pub(crate) place: String,
    /// Where it was delivered, and after how many deaths, with the tag of the next message that was
    /// published.
    pub(crate) delivered: BTreeMap<(String, u64), usize>,
    /// Times it was rejected.
    pub(crate) rejects: u64,
    /// The most deaths that were seen since the last crash.
    pub(crate) deaths: u64,
    /// A transaction with an acknowledgement of it.
    pub(crate) tx: Option<usize>,
    /// It went with its queue, before this moment.
    pub(crate) went: Option<u64>,
    /// It came while the queues were drained, from this queue.
    pub(crate) drained: Option<String>,
}

/// Publishes and acknowledgements that take effect together.
#[derive(Clone, Debug)]
pub(crate) struct Tx {
    pub(crate) tags: Vec<usize>,
    pub(crate) acked: Vec<CopyId>,
    pub(crate) outcome: Outcome,
    /// Something that it published was there after the newest start.
    pub(crate) is_seen: bool,
    /// Something that it acknowledged was there after the newest start.
    pub(crate) is_undone: bool,
}

/// A death as the header `x-death` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) queue: String,
    pub(crate) reason: String,
    pub(crate) count: u64,
    /// Seconds since 1970.
    pub(crate) time_s: u64,
}

/// A message that came to an AMQP client.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    /// By which it came.
    pub(crate) door: Door,
    /// The queue it came from.
    pub(crate) queue: String,
    pub(crate) tag: usize,
    pub(crate) is_redelivered: bool,
    pub(crate) exchange: String,
    pub(crate) key: String,
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) deaths: Vec<Death>,
    /// When its consumer, or it, was asked for.
    pub(crate) asked: u64,
    /// `None`: nobody has to settle it.
    pub(crate) holder: Option<Holder>,
    /// It was on its way when the client gave back all it had: it says nothing about where the
    /// message is.
    pub(crate) is_stale: bool,
}

impl Arrived {
    /// Deaths in this queue.
    pub(crate) fn deaths_in(&self, queue: &str) -> u64 {
        let all = self.deaths.iter().filter(|death| death.queue == queue);
        all.map(|death| death.count).sum()
    }

    pub(crate) fn deaths(&self) -> u64 {
        self.deaths.iter().map(|death| death.count).sum()
    }
}

/// The queue whose dead letters a queue holds; itself for others.
pub(crate) fn origin_of(queue: &str) -> &str {
    queue.strip_suffix(".dead").unwrap_or(queue)
}

/// The tag of a message, from its body.
pub(crate) fn tag_of(body: &[u8]) -> Option<usize> {
    let text = body.strip_prefix(b"amqp ")?;
    let end = text.iter().position(|byte| *byte == b' ')?;
    str::from_utf8(text.get(..end)?).ok()?.parse().ok()
}
