//! Handing the results of a shared frame to those who wait.
//!
//! Owns: reading result frames, and matching their items to the requests in the frame.
//! Refuses to know: connections.

use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::enqueue::{EnqueueItemResult, EnqueueResult};
use tanda_wire::fila::settle::{AckResult, ExtendLeaseResult, NackResult};

use super::job::{EnqueueJob, Reply, SendResult, SettleJob, SettleKind, SettleResult};
use crate::error::RequestError;
use crate::message_id::MessageId;
use crate::producer::Receipt;

/// Answers all messages of one `Enqueue`.
pub(super) fn answer_enqueue(jobs: Vec<EnqueueJob>, body: &[u8]) {
    let results =
        EnqueueResult::decode(body).map(|answer| answer.results.iter().map(send_result).collect());
    answer_all(
        jobs.into_iter().map(|job| (job.count, job.reply)).collect(),
        results,
    );
}

/// Answers all items of one `Ack`, `Nack` or `ExtendLease`.
pub(super) fn answer_settle(jobs: Vec<SettleJob>, body: &[u8]) {
    let kind = jobs.first().map_or(SettleKind::Ack, |job| job.kind);
    let results = decode_settle(kind, body);
    answer_all(
        jobs.into_iter().map(|job| (job.count, job.reply)).collect(),
        results,
    );
}

fn answer_all<T>(
    waiting: Vec<(usize, Reply<T>)>,
    results: Result<Vec<Result<T, RequestError>>, DecodeError>,
) {
    let expected: usize = waiting.iter().map(|(count, _)| count).sum();
    let error = match results {
        Ok(results) if results.len() == expected => {
            let mut results = results.into_iter();
            for (count, reply) in waiting {
                answer(reply, count, &mut results);
            }
            return;
        }
        // A result frame with another number of items cannot be matched to anyone.
        Ok(results) => {
            let found = results.len();
            RequestError::invalid_reply(format_args!("{found} results for {expected} items"))
        }
        Err(error) => RequestError::invalid_reply(error),
    };
    for (_, reply) in waiting {
        reply.fail(error.clone());
    }
}

/// A caller that went away does not want the result.
fn answer<T>(
    reply: Reply<T>,
    count: usize,
    results: &mut impl Iterator<Item = Result<T, RequestError>>,
) {
    match reply {
        Reply::Many(reply) => drop(reply.send(Ok(results.take(count).collect()))),
        Reply::One(reply) => {
            if let Some(result) = results.next() {
                drop(reply.send(result));
            }
        }
    }
}

fn decode_settle(kind: SettleKind, body: &[u8]) -> Result<Vec<SettleResult>, DecodeError> {
    let from_code = |code: &ErrorCode| settle_result(*code, 0);
    Ok(match kind {
        SettleKind::Ack => AckResult::decode(body)?
            .results
            .iter()
            .map(from_code)
            .collect(),
        SettleKind::Nack => NackResult::decode(body)?
            .results
            .iter()
            .map(from_code)
            .collect(),
        SettleKind::Extend => {
            let results = ExtendLeaseResult::decode(body)?.results;
            let results = results.iter();
            results
                .map(|item| settle_result(item.error_code, item.lease_expires_at_ms))
                .collect()
        }
    })
}

fn settle_result(code: ErrorCode, lease_expires_at_ms: u64) -> SettleResult {
    if code == ErrorCode::Ok {
        Ok(lease_expires_at_ms)
    } else {
        Err(RequestError::from_code(code))
    }
}

fn send_result(item: &EnqueueItemResult) -> SendResult {
    if item.error_code == ErrorCode::Ok {
        let id = MessageId::from_bytes(item.message_id);
        Ok(Receipt {
            id,
            duplicate: item.duplicate,
        })
    } else {
        Err(RequestError::from_code(item.error_code))
    }
}
