//! What takes so long to encode or decode that others should not wait for it.

use tanda_engine::{AdminReply, Event};

/// Input that takes longer to decode than others should wait.
pub(super) const LONG_INPUT_BYTES: usize = 4 << 20;
/// Items of an answer that takes longer to encode than others should wait.
const LONG_ANSWER_ITEMS: usize = 16 << 10;

/// Whether an event is such an answer.
pub(super) fn is_long(event: &Event) -> bool {
    let items = if let Event::Admin { reply, .. } = event {
        if let AdminReply::Stats(Ok(stats)) = &**reply {
            stats.keys.len()
        } else if let AdminReply::Queues(queues) = &**reply {
            queues.len()
        } else {
            0
        }
    } else if let Event::Published { results, .. } = event {
        results.len()
    } else {
        0
    };
    items > LONG_ANSWER_ITEMS
}
