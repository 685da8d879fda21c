//! What became of published messages: returns, confirms, and faults.

use tanda_engine::{PublishError, PublishResult};
use tanda_wire::amqp::{Arguments, ReplyCode, basic};

use super::channel::{ChannelState, Mode, Published, Segment};
use super::deliver::{self, Address};
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::Waiting;
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
            self.on_segment(link, &published, segment, mine);
        }
    }

    /// The messages of one channel were taken, or not.
    fn on_segment(
        &mut self,
        link: &mut Link,
        published: &Published,
        segment: &Segment,
        results: &[PublishResult],
    ) {
        let (number, epoch) = segment.kind;
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        if channel.epoch != epoch || channel.state == ChannelState::Closing {
            return;
        }
        if segment.mandatory {
            // Before the confirms, which mean that all is said of a message.
            self.say_returned(link, published, segment, results);
        }
        let fault = results.iter().enumerate().find_map(|(at, result)| {
            let PublishResult::Refused(error) = result else {
                return None;
            };
            let envelope = published.envelopes(segment).nth(at)?;
            let told = segment.first_tag.is_some();
            publish_fault(link, *error, &envelope).or_else(|| silent_fault(*error, told))
        });
        if let Some(fault) = fault {
            return self.fail_channel(link, number, &fault.by(basic::Publish::ID));
        }
        let Some(first) = segment.first_tag else {
            return;
        };
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        if let Mode::Confirm(confirms) = &mut channel.mode {
            let stored = results.iter().map(|result| match result {
                PublishResult::Stored(_)
                | PublishResult::Duplicate(_)
                | PublishResult::Sent { .. }
                | PublishResult::Unroutable => true,
                PublishResult::Refused(_) => false,
            });
            confirms.answer((number, first), stored, &mut link.outbound);
        }
    }

    /// Sends back the mandatory messages of a run that reached no queue.
    pub(super) fn say_returned(
        &self,
        link: &mut Link,
        published: &Published,
        segment: &Segment,
        results: &[PublishResult],
    ) {
        if !segment.mandatory || !results.contains(&PublishResult::Unroutable) {
            return;
        }
        let start = deliver::return_start();
        let address = Address {
            channel: segment.kind.0,
            frame_max: link.frame_max,
            start: &start,
            end: &[],
        };
        for (envelope, result) in published.envelopes(segment).zip(results) {
            if *result == PublishResult::Unroutable {
                let message = deliver::of_envelope(&envelope);
                link.outbound
                    .raw(|out| deliver::write(out, &address, &message));
            }
        }
    }
}

/// What a message does to its channel that could not be taken now, when no confirm tells it: a
/// publisher that hears nothing would go on losing messages.
fn silent_fault(error: PublishError, told: bool) -> Option<Fault> {
    let reason = match error {
        _ if told => return None,
        PublishError::Storage => "storage is full or failed",
        PublishError::Overloaded => "too much waits for the script of its queue",
        PublishError::ReservedQueueName => "dead-letter queues take no messages from outside",
        PublishError::QueueNotFound
        | PublishError::ExchangeNotFound
        | PublishError::ExchangeInternal
        | PublishError::ExchangeNotTopic
        | PublishError::TooManyExchanges
        | PublishError::Forbidden
        | PublishError::OrderingKeyMissing
        | PublishError::TooLarge
        | PublishError::QueueFull
        | PublishError::ScriptFailed
        | PublishError::ScriptTimedOut => return None,
    };
    let text = format!("a message was not taken: {reason}");
    Some(Fault::new(ReplyCode::PreconditionFailed, text))
}

/// What a refused message does to its channel; `None` for refusals that only a confirm tells.
fn publish_fault(link: &Link, error: PublishError, envelope: &Envelope<'_>) -> Option<Fault> {
    let exchange = String::from_utf8_lossy(envelope.exchange);
    let vhost = &link.vhost_name;
    match error {
        PublishError::ExchangeNotFound => Some(Fault::new(
            ReplyCode::NotFound,
            format!("no exchange '{exchange}' in vhost '{vhost}'"),
        )),
        PublishError::ExchangeInternal => Some(Fault::new(
            ReplyCode::AccessRefused,
            format!("cannot publish to internal exchange '{exchange}' in vhost '{vhost}'"),
        )),
        PublishError::QueueNotFound
        | PublishError::ReservedQueueName
        // Of messages that name a topic, as AMQP has none.
        | PublishError::ExchangeNotTopic
        | PublishError::TooManyExchanges
        | PublishError::Forbidden
        | PublishError::OrderingKeyMissing
        | PublishError::TooLarge
        | PublishError::QueueFull
        | PublishError::ScriptFailed
        | PublishError::ScriptTimedOut
        | PublishError::Overloaded
        | PublishError::Storage => None,
    }
}
