//! `queue.*`: what the engine answered.

use tanda_engine::{
    AdminReply, AdminRequest, DeleteQueueError, FrameLimit, GetError, GetSpec, Got, PublishError,
    PublishResult, QueueCounts, QueueNotFound, RedriveError, Request, SettleError, SettleResult,
    Take, TopologyCode, TopologyError,
};
use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::envelope::Failure;
use tanda_wire::amaquet::json::Writer;

use super::active::Entry;
use super::command::{Begun, Call};
use super::link::Link;
use super::outbound::Asked;

/// What stood for a message.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) text: Box<str>,
    /// It can be the id of one.
    pub(super) is_id: bool,
}

impl Link {
    /// Answers `queue.push`.
    pub(super) fn say_pushed(&mut self, entry: &Entry, queue: &str, results: &[PublishResult]) {
        let asked = Asked::command(entry.request_id);
        let of_all = results.iter().find_map(|result| match result {
            PublishResult::Refused(PublishError::Overloaded) => {
                Some(self.overloaded("too much waits for the script of the queue"))
            }
            PublishResult::Refused(PublishError::QueueNotFound) => Some(no_queue(queue)),
            PublishResult::Refused(PublishError::ReservedQueueName) => {
                let text = format!("queue is {queue:?}; dead-letter queues take no messages");
                Some(Failure::new(ErrorCode::BadRequest, text))
            }
            PublishResult::Refused(_)
            | PublishResult::Stored(_)
            | PublishResult::Duplicate(_)
            | PublishResult::Sent { .. }
            | PublishResult::Unroutable => None,
        });
        if let Some(failure) = of_all {
            return self.outbound.failure(asked, &failure);
        }
        let refused: Vec<_> = results.iter().map(|it| self.push_failure(*it)).collect();
        self.outbound.result(asked, |out| {
            out.object(|out| {
                out.key("messages").array(|out| {
                    for (result, refused) in results.iter().zip(&refused) {
                        out.object(|out| write_pushed(out, *result, refused.as_ref()));
                    }
                });
            });
        });
    }

    /// Why one message was not stored.
    pub(super) fn push_failure(&self, result: PublishResult) -> Option<Failure> {
        let error = match result {
            PublishResult::Stored(_) | PublishResult::Duplicate(_) | PublishResult::Sent { .. } => {
                return None;
            }
            PublishResult::Unroutable => PublishError::QueueNotFound,
            PublishResult::Refused(error) => error,
        };
        let (code, text) = match error {
            PublishError::QueueNotFound => (ErrorCode::NotFound, "no queue takes it"),
            PublishError::ReservedQueueName => {
                (ErrorCode::BadRequest, "dead-letter queues take no messages")
            }
            PublishError::Forbidden => (ErrorCode::Forbidden, "the caller may not publish there"),
            PublishError::OrderingKeyMissing => (
                ErrorCode::BadRequest,
                "the message lacks a part of the queue's ordering_key",
            ),
            PublishError::TooLarge => {
                let max = self.config.limits.max_message_bytes;
                let text = format!("payload is over the limit of {max} bytes (limits.max_message)");
                return Some(Failure::new(ErrorCode::PayloadTooLarge, text));
            }
            PublishError::QueueFull => return Some(self.overloaded("the queue is full")),
            PublishError::ScriptFailed => (
                ErrorCode::BadRequest,
                "the queue's on_enqueue script failed on the message",
            ),
            PublishError::ScriptTimedOut => (
                ErrorCode::Timeout,
                "the queue's on_enqueue script took too long on the message",
            ),
            PublishError::Overloaded => {
                return Some(self.overloaded("too much waits for the script of the queue"));
            }
            PublishError::ExchangeNotFound => (ErrorCode::NotFound, "key not found"),
            PublishError::ExchangeInternal => (
                ErrorCode::WrongType,
                "the exchange takes messages from other exchanges only",
            ),
            PublishError::ExchangeNotTopic => (
                ErrorCode::WrongType,
                "key is the name of an exchange of another type",
            ),
            PublishError::TooManyExchanges => {
                return Some(self.overloaded("there is no room for more exchanges"));
            }
            PublishError::Storage => {
                return Some(self.overloaded("the disk is full, or the log failed"));
            }
        };
        Some(Failure::new(code, text.to_owned()))
    }

    /// Answers `queue.ack`, `queue.nack` and `queue.extend`.
    pub(super) fn say_settled(
        &mut self,
        entry: &Entry,
        (named, extends): (&[Named], bool),
        results: &[SettleResult],
    ) {
        let asked = Asked::command(entry.request_id);
        let mut results = results.iter();
        self.outbound.result(asked, |out| {
            out.object(|out| {
                out.key("results").array(|out| {
                    for Named { text, is_id } in named {
                        let result = if *is_id { results.next() } else { None };
                        out.object(|out| write_settled(out, text, result, extends));
                    }
                });
            });
        });
    }

    /// Answers `queue.create`, `queue.stats`, `queue.redrive` and `queue.delete`, or asks what is
    /// missing for that.
    pub(super) fn on_queue_reply(&mut self, entry: Entry, reply: AdminReply) {
        let asked = Asked::command(entry.request_id);
        let failure = match (&entry.call, reply) {
            (Call::Create(queue), AdminReply::Created(Ok(_))) => {
                return self.say_object(asked, |out| out.key("queue").str(queue));
            }
            (Call::Create(queue), AdminReply::Created(Err(error))) => {
                self.create_failure(queue, &error)
            }
            (Call::Delete(_), AdminReply::Deleted(Ok(()))) => {
                return self.say_object(asked, |out| out.key("deleted").bool(true));
            }
            (Call::Delete(_), AdminReply::Deleted(Err(DeleteQueueError::NotFound))) => {
                return self.say_object(asked, |out| out.key("deleted").bool(false));
            }
            (Call::Delete(queue), AdminReply::Deleted(Err(DeleteQueueError::ReservedName))) => {
                let text = format!("queue is {queue:?}; a dead-letter queue goes with its queue");
                Failure::new(ErrorCode::BadRequest, text)
            }
            (Call::Stats(_), AdminReply::Inspected(Ok(details))) => {
                return self.ask_oldest(entry, details.counts);
            }
            (Call::Redrive(_), AdminReply::Redriven(Ok(done))) => {
                return self.ask_left(entry, done.redriven);
            }
            (Call::Redrive(queue), AdminReply::Redriven(Err(RedriveError::NotDeadLetterQueue))) => {
                let text = format!("queue is {queue:?}; it must be a dead-letter queue");
                Failure::new(ErrorCode::BadRequest, text)
            }
            (Call::Left { redriven }, AdminReply::Inspected(found)) => {
                let counts = found.map(|details| details.counts).unwrap_or_default();
                let (redriven, left) = (*redriven, counts.depth + counts.in_flight);
                return self.say_object(asked, |out| {
                    out.key("redriven").u64(redriven);
                    out.key("left").u64(left);
                });
            }
            (Call::Stats(queue), AdminReply::Inspected(Err(QueueNotFound)))
            | (Call::Redrive(queue), AdminReply::Redriven(Err(RedriveError::NotFound))) => {
                no_queue(queue)
            }
            _ => return self.say_confused(&entry),
        };
        self.outbound.failure(asked, &failure);
    }

    /// How old the oldest ready message is, the engine is asked, too.
    fn ask_oldest(&mut self, entry: Entry, counts: QueueCounts) {
        let Call::Stats(queue) = &entry.call else {
            return;
        };
        let spec = GetSpec {
            vhost: self.vhost().unwrap_or_default(),
            queue: String::from(queue.clone()),
            frame_limit: FrameLimit::None,
            take: Take::Oldest,
        };
        let begun = Begun::again(entry);
        let call = Call::Counted(Box::new(counts));
        if let Ok(reply) = self.begin(begun, call, None) {
            self.requests.push(Request::Get { reply, spec });
        }
    }

    /// How many dead letters are left, the engine is asked, too.
    fn ask_left(&mut self, entry: Entry, redriven: u64) {
        let Call::Redrive(queue) = &entry.call else {
            return;
        };
        let name = String::from(queue.clone());
        let begun = Begun::again(entry);
        let asked = Asked::command(begun.request_id);
        let request = AdminRequest::InspectQueue {
            vhost: self.vhost().unwrap_or_default(),
            name,
        };
        if let Err(failure) = self.ask(begun, Call::Left { redriven }, request) {
            self.outbound.failure(asked, &failure);
        }
    }

    /// Answers `queue.stats`.
    pub(super) fn say_stats(
        &mut self,
        entry: &Entry,
        counts: &QueueCounts,
        found: Result<Got, GetError>,
    ) {
        let asked = Asked::command(entry.request_id);
        let batch = found.ok().and_then(|got| got.batch);
        let oldest = batch.and_then(|batch| batch.items.first().map(|item| item.id));
        let now = self.now;
        let age_ms = oldest.map(|id| now.0.saturating_sub(id.enqueued_at().0));
        self.say_object(asked, |out| {
            out.key("depth").u64(counts.depth);
            out.key("in_flight").u64(counts.in_flight);
            out.key("delayed").u64(counts.delayed);
            out.key("throttled").u64(counts.throttled);
            out.key("unclassified").u64(counts.unclassified);
            out.key("consumers").u64(counts.active_consumers.into());
            out.key("fairness_keys").u64(counts.active_fairness_keys);
            out.key("oldest_message_age_ms").u64_or_null(age_ms);
        });
    }
}

fn write_pushed(out: &mut Writer<'_>, result: PublishResult, refused: Option<&Failure>) {
    let (id, duplicate) = match result {
        PublishResult::Stored(id) => (id, false),
        PublishResult::Duplicate(id) => (id, true),
        PublishResult::Sent { .. } | PublishResult::Unroutable | PublishResult::Refused(_) => {
            if let Some(refused) = refused {
                write_error(out, refused);
            }
            return;
        }
    };
    out.key("id").str(&id.to_string());
    out.key("duplicate").bool(duplicate);
}

fn write_settled(out: &mut Writer<'_>, text: &str, result: Option<&SettleResult>, extends: bool) {
    out.key("id").str(text);
    let (code, text) = match result {
        Some(Ok(lease_expires_at)) => {
            out.key("ok").bool(true);
            if extends {
                out.key("lease_expires_at").u64(lease_expires_at.0);
            }
            return;
        }
        Some(Err(SettleError::MessageNotFound)) => (
            ErrorCode::NotFound,
            "the message is not leased from this queue",
        ),
        Some(Err(SettleError::Forbidden)) => {
            (ErrorCode::Forbidden, "the caller may not consume there")
        }
        None => (ErrorCode::BadRequest, "it is no id of a message"),
    };
    write_error(out, &Failure::new(code, text.to_owned()));
}

/// The error of one item of many.
fn write_error(out: &mut Writer<'_>, failure: &Failure) {
    out.key("error").object(|out| {
        out.key("code").str(failure.code.name());
        out.key("message").str(&failure.message);
        if let Some(ms) = failure.retry_after_ms {
            out.key("retry_after_ms").u64(ms);
        }
    });
}

/// There is no such queue.
pub(super) fn no_queue(queue: &str) -> Failure {
    let shown: String = queue.chars().take(256).collect();
    Failure::new(ErrorCode::NotFound, format!("there is no queue {shown:?}"))
}

impl Link {
    /// The engine refused something of the topology.
    pub(super) fn topology_failure(&self, error: TopologyError) -> Failure {
        let code = match error.code {
            TopologyCode::AccessRefused => ErrorCode::Forbidden,
            TopologyCode::NotFound => ErrorCode::NotFound,
            TopologyCode::ResourceLocked => ErrorCode::Conflict,
            TopologyCode::PreconditionFailed => ErrorCode::Conflict,
            TopologyCode::WrongType => ErrorCode::WrongType,
            TopologyCode::NotAllowed
            | TopologyCode::NotImplemented
            | TopologyCode::CommandInvalid => ErrorCode::BadRequest,
            TopologyCode::ResourceError | TopologyCode::Storage => {
                return self.overloaded(error.text);
            }
            TopologyCode::Internal => ErrorCode::Internal,
        };
        Failure::new(code, error.text)
    }
}
