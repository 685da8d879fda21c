//! What became of published messages: returns, confirms, and errors.

use tanda_engine::{PublishError, PublishResult};
use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::frame::{Framing, write_head};
use tanda_wire::firemq::publish::Returned;

use super::confirms::Rejection;
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Published, Segment, Waiting};
use crate::convert::fire_form;
use crate::envelope::Envelope;

impl Open {
    pub(super) fn on_published(&mut self, link: &mut Link, token: u32, results: &[PublishResult]) {
        let Some(Waiting::Publish(published)) = link.pending.remove(token) else {
            return;
        };
        let mut rest = results;
        for segment in &published.segments {
            let (mine, others) = rest.split_at_checked(segment.count).unwrap_or((rest, &[]));
            rest = others;
            if segment.mandatory && mine.contains(&PublishResult::Unroutable) {
                // Before the confirm, which means that all is said of a message.
                say_returned(link, &published, segment, mine);
            }
            match segment.first_tag {
                Some(first) => self.confirm(link, (&published, segment), first, mine),
                None => say_refused(link, &published, segment, mine),
            }
        }
        self.confirms.say(&mut link.outbound);
    }

    fn confirm(
        &mut self,
        link: &mut Link,
        (published, segment): (&Published, &Segment),
        first: u64,
        results: &[PublishResult],
    ) {
        let is_refused = |result: &PublishResult| matches!(result, PublishResult::Refused(_));
        if !results.iter().any(is_refused) {
            let outcomes = results.iter().map(|_| Ok(()));
            return self.confirms.answer(first, outcomes, &mut link.outbound);
        }
        let faults = published.envelopes(segment).zip(results);
        let faults = faults.map(|(envelope, result)| refusal(link, &envelope, *result));
        let faults: Vec<Option<Fault>> = faults.collect();
        let outcomes = faults.iter().map(|fault| match fault {
            None => Ok(()),
            Some(fault) => Err(Rejection {
                code: fault.code,
                text: &fault.text,
            }),
        });
        self.confirms.answer(first, outcomes, &mut link.outbound);
    }
}

/// Sends back the messages of a run that reached no queue.
fn say_returned(
    link: &mut Link,
    published: &Published,
    segment: &Segment,
    results: &[PublishResult],
) {
    let numbers = (0_u64..).map(|at| segment.first_tag.map_or(0, |first| first + at));
    for ((envelope, result), seq) in published.envelopes(segment).zip(results).zip(numbers) {
        if *result != PublishResult::Unroutable {
            continue;
        }
        let message = fire_form(&envelope);
        let returned = Returned {
            seq,
            code: ReplyCode::NoRoute,
            msg: "no route",
            exchange: &message.exchange,
            key: &message.key,
            props: message.props,
            headers: message.headers,
        };
        link.outbound.raw(|out| {
            // It came in a frame that was hardly shorter.
            let body = message.body;
            let written = write_head(out, Framing::Stream, &returned, body.len(), u32::MAX);
            debug_assert!(written.is_ok(), "{written:?}");
            out.extend_from_slice(body);
        });
    }
}

/// Says what went wrong with messages that are not confirmed. A queue that is full drops them, as
/// who wants no confirm accepts.
fn say_refused(
    link: &mut Link,
    published: &Published,
    segment: &Segment,
    results: &[PublishResult],
) {
    for (envelope, result) in published.envelopes(segment).zip(results) {
        let PublishResult::Refused(error) = *result else {
            continue;
        };
        let is_silent = match error {
            PublishError::QueueFull
            | PublishError::OrderingKeyMissing
            | PublishError::ScriptFailed
            | PublishError::ScriptTimedOut => true,
            PublishError::QueueNotFound
            | PublishError::ReservedQueueName
            | PublishError::Forbidden
            | PublishError::TooLarge
            | PublishError::Overloaded
            | PublishError::ExchangeNotFound
            | PublishError::ExchangeInternal
            | PublishError::ExchangeNotTopic
            | PublishError::TooManyExchanges
            | PublishError::Storage => false,
        };
        if !is_silent && let Some(fault) = refusal(link, &envelope, *result) {
            link.outbound.error(&fault);
        }
    }
}

/// Why a message was not taken; `None` when it was.
fn refusal(link: &Link, envelope: &Envelope<'_>, result: PublishResult) -> Option<Fault> {
    let PublishResult::Refused(error) = result else {
        return None;
    };
    let exchange = String::from_utf8_lossy(envelope.exchange);
    let key = String::from_utf8_lossy(envelope.routing_key);
    let vhost = &link.vhost_name;
    let (code, text) = match error {
        PublishError::ExchangeNotFound => (
            ReplyCode::NotFound,
            format!("no exchange '{exchange}' in vhost '{vhost}'"),
        ),
        PublishError::ExchangeNotTopic | PublishError::TooManyExchanges => (
            ReplyCode::PreconditionFailed,
            format!("exchange '{exchange}' in vhost '{vhost}' cannot be a topic exchange"),
        ),
        PublishError::ExchangeInternal => (
            ReplyCode::AccessRefused,
            format!("cannot publish to internal exchange '{exchange}' in vhost '{vhost}'"),
        ),
        PublishError::QueueNotFound => return Some(Fault::no_queue(&key, vhost)),
        PublishError::ReservedQueueName => (
            ReplyCode::AccessRefused,
            "dead-letter queues take no messages from outside".to_owned(),
        ),
        PublishError::Forbidden => (
            ReplyCode::AccessRefused,
            format!("write access to exchange '{exchange}' in vhost '{vhost}' refused"),
        ),
        PublishError::OrderingKeyMissing => (
            ReplyCode::PreconditionFailed,
            "the queue asks for an ordering key that the message has not".to_owned(),
        ),
        PublishError::TooLarge => (
            ReplyCode::PreconditionFailed,
            "the message is too large".to_owned(),
        ),
        PublishError::QueueFull => (
            ReplyCode::ResourceError,
            "a queue that should receive the message is full".to_owned(),
        ),
        PublishError::ScriptFailed => (
            ReplyCode::PreconditionFailed,
            "the script of the queue failed on the message".to_owned(),
        ),
        PublishError::ScriptTimedOut => (
            ReplyCode::PreconditionFailed,
            "the script of the queue ran out of time on the message".to_owned(),
        ),
        PublishError::Overloaded => (
            ReplyCode::ResourceError,
            "too much waits for the script of the queue".to_owned(),
        ),
        PublishError::Storage => (
            ReplyCode::ResourceError,
            "storage is full or failed".to_owned(),
        ),
    };
    Some(Fault::new(code, text))
}
