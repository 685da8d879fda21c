//! Who watches is told of messages.

use bytes::Bytes;

use super::{Seen, WatchedMessage};
use crate::engine::{Cx, Engine};
use crate::{Content, Event, Lsn};

impl Engine {
    /// A message passes watches. Those that take no more lose it. Returns how many took it.
    pub(crate) fn tell_watches(
        &mut self,
        cx: &mut Cx<'_>,
        content: Content<'_>,
        keys: &[&str],
        seen: &[Seen],
    ) -> u32 {
        // One copy for all, and not a part of a buffer that is mostly something else's.
        let mut shared: Option<Bytes> = None;
        let mut taken = 0;
        for Seen { watch: id, key } in seen {
            let Some(watch) = self.watches.at_mut(*id) else {
                continue;
            };
            let conn = self.consumers.conn_mut(watch.sub.conn);
            let conn = conn.filter(|conn| conn.has_room());
            let Some(conn) = conn.filter(|_| watch.under_way < watch.buffer) else {
                watch.dropped = watch.dropped.saturating_add(1);
                continue;
            };
            let bytes =
                shared.get_or_insert_with(|| Bytes::copy_from_slice(content.without_attributes()));
            let channel = keys.get(*key as usize).copied().unwrap_or_default();
            let message = WatchedMessage {
                content: bytes.clone(),
                form: content.form(),
                channel: channel.into(),
                published_at: cx.now,
                dropped: core::mem::take(&mut watch.dropped),
            };
            conn.outbound_bytes = conn.outbound_bytes.saturating_add(message.budget_bytes());
            watch.under_way += 1;
            taken += 1;
            let event = Event::Watched {
                token: watch.sub.token,
                message: Box::new(message),
            };
            cx.emit(watch.sub.conn, Lsn::ZERO, event);
        }
        taken
    }
}
