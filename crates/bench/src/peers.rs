//! What the connections of a load generator do.

pub(crate) mod consumer;
pub(crate) mod paced;
pub(crate) mod producer;

use std::time::Duration;

use tanda_wire::fila::error::{ErrorFrame, META_RETRY_AFTER_MS};
use tanda_wire::fila::frame::Frame;
use tanda_wire::fila::{ErrorCode, Opcode};

use crate::error::BenchError;
use crate::pump::Turn;

/// Waits this long after a refusal that does not say how long.
const RETRY_AFTER_MS_DEFAULT: u64 = 5;

/// Takes an `Error` for a request of `messages` messages: a full server is counted and gets them
/// again later, all else is a failure. Any other opcode has no place here.
fn take_refusal(frame: &Frame<'_>, messages: u64, turn: &mut Turn<'_>) -> Result<(), BenchError> {
    if frame.header.opcode != Opcode::Error {
        return Err(BenchError::Protocol(format!(
            "the server sent a {} where none belongs",
            frame.header.opcode.name()
        )));
    }
    let error = ErrorFrame::decode(frame.body)?;
    turn.tally.requests_open = turn.tally.requests_open.saturating_sub(1);
    if error.error_code == ErrorCode::ChannelFull {
        let told = error.meta(META_RETRY_AFTER_MS);
        let ms = told.and_then(|ms| ms.parse().ok());
        let retry_at = turn.now + Duration::from_millis(ms.unwrap_or(RETRY_AFTER_MS_DEFAULT));
        turn.tally.refused += messages;
        turn.tally.sent = turn.tally.sent.saturating_sub(messages);
        turn.tally.retry_at = Some(retry_at);
    } else {
        let code = error.error_code;
        turn.tally
            .fail(messages, || format!("{}: {}", code.name(), error.message));
    }
    Ok(())
}

/// The results of a batch answer that are not Ok. `item_bytes` is the size of one result; its
/// first byte is the code. Reads no further than the promised count and the bytes that came.
fn failed_items(body: &[u8], item_bytes: usize) -> (u64, u64, Option<ErrorCode>) {
    let Some((count, items)) = body.split_first_chunk() else {
        return (0, 0, None);
    };
    let count = u32::from_be_bytes(*count) as usize;
    let codes = items
        .chunks_exact(item_bytes)
        .take(count)
        .filter_map(|item| item.first());
    let (mut total, mut failed, mut first) = (0, 0, None);
    for code in codes {
        total += 1;
        if *code != ErrorCode::Ok.to_wire() {
            failed += 1;
            first.get_or_insert_with(|| ErrorCode::from_wire(*code));
        }
    }
    (total, failed, first)
}

/// Bytes of one result of an `EnqueueResult`: code, ID, duplicate.
const ENQUEUE_RESULT_BYTES: usize = 1 + 16 + 1;

/// Counts an `EnqueueResult`.
fn take_enqueue_result(body: &[u8], turn: &mut Turn<'_>) {
    let (total, failed, first) = failed_items(body, ENQUEUE_RESULT_BYTES);
    turn.tally.requests_open = turn.tally.requests_open.saturating_sub(1);
    turn.tally.confirmed += total - failed;
    turn.tally
        .fail(failed, || format!("an enqueue got {first:?}"));
}
