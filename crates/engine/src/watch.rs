//! Watches: best-effort bindings of connections to topic exchanges.
//!
//! Who watches is told of messages as they pass, if it takes them: nothing is kept for it.

use bytes::Bytes;

use crate::engine::{Cx, Engine};
use crate::{Content, Event, Form, Lsn, Millis, SubId, TopologyCode, TopologyError, VhostId};

/// A watch's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSpec {
    /// The exchange's virtual host.
    pub vhost: VhostId,
    /// A topic exchange; a durable one is made when there is none.
    pub exchange: String,
    /// Of routing keys, as in bindings; at most 255 bytes.
    pub pattern: String,
    /// Most events under way; what comes on top is lost, and counted.
    pub buffer: u32,
}

/// A message that passed a watched exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedMessage {
    /// Headers and payload, in the layout of [`Content`]; shared by all who watch.
    pub content: Bytes,
    /// Which layout that is.
    pub form: Form,
    /// The routing key that matched.
    pub channel: Box<str>,
    /// When it passed.
    pub published_at: Millis,
    /// Messages that the watch lost since its last event.
    pub dropped: u64,
}

impl WatchedMessage {
    /// Fixed cost of an event in the outbound budget.
    pub const OVERHEAD_BYTES: u64 = 128;

    /// What it weighs against the connection's outbound budget.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        (self.content.len() + self.channel.len()) as u64 + Self::OVERHEAD_BYTES
    }

    /// The message.
    #[must_use]
    pub fn content(&self) -> Content<'_> {
        Content::new(self.form, &self.content)
    }
}

impl Engine {
    pub(crate) fn on_watch(&mut self, cx: &mut Cx<'_>, sub: SubId, spec: &WatchSpec) {
        debug_assert!(spec.pattern.len() < 1 << 20);
        let token = sub.token;
        let text = "not yet".to_owned();
        let result = Err(TopologyError::new(TopologyCode::NotImplemented, text));
        cx.emit(sub.conn, Lsn::ZERO, Event::Watching { token, result });
    }
    pub(crate) fn on_unwatch(&mut self, _: SubId) {}
    pub(crate) fn on_watch_drained(&mut self, _: SubId, _: u32) {}
    pub(crate) fn list_channels(
        &self,
        _: (VhostId, &str),
        _: usize,
    ) -> Result<Vec<String>, TopologyError> {
        Ok(Vec::new())
    }
}
