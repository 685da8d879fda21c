//! What the connection says.

use tanda_wire::firemq::consume::Nack;

use super::Driver;
use crate::fire::core::{Answer, Event, Received};
use crate::fire::error::{Refusal, RequestError, SubscriptionError};
use crate::fire::message::Published;
use crate::fire::shell::job::{Call, CallJob, Context, Replied};
use crate::fire::shell::subscriptions::Delivered;

impl Driver {
    pub(super) fn on_event(&mut self, now_ms: u64, event: Event<Context>) {
        match event {
            Event::Answered { context, answer } => self.on_answered(context, answer),
            Event::Failed { context, refusal } => self.on_failed(now_ms, context, refusal),
            Event::Confirmed { context, returned } => {
                if let Context::Publish(job) = context {
                    job.finish(Ok(returned.map_or(Published::Taken, Published::Returned)));
                }
            }
            Event::Rejected { context, refusal } => {
                if let Context::Publish(job) = context {
                    job.finish(Err(RequestError::Refused(refusal)));
                }
            }
            Event::Delivery { sub, received } => self.on_delivery(sub, received),
            Event::Cancelled { sub, refusal } => {
                let error = SubscriptionError::Cancelled(refusal);
                if let Some(queue) = self.subscriptions.end(sub, error) {
                    self.on_unused(&queue);
                }
            }
            Event::Complaint(refusal) => {
                self.shared.complain(refusal.clone());
                self.complaint = Some(refusal);
            }
            Event::Refused(refusal) => self.complaint = Some(refusal),
            // Flow is looked up when something is to be published. Messages that nobody waits for
            // are not mandatory. The end of a connection is seen on its socket.
            Event::Flow { .. } | Event::Returned(_) | Event::Ready(_) | Event::Closing(_) => {}
        }
    }

    fn on_answered(&mut self, context: Context, answer: Answer) {
        match context {
            Context::Call(job) => self.on_done(*job, answer),
            Context::Unsubscribe(slot) => self.on_unsubscribed(slot),
            Context::Restore(step, _) => self.on_restored(step, answer),
            // A publish is confirmed, not answered.
            Context::Publish(_) => {}
        }
    }

    fn on_failed(&mut self, now_ms: u64, context: Context, refusal: Refusal) {
        match context {
            Context::Call(job) => {
                // A caller that went away does not want to know.
                drop(job.reply.send(Err(RequestError::Refused(refusal))));
            }
            Context::Unsubscribe(slot) => self.on_unsubscribed(slot),
            Context::Restore(step, tries) => {
                self.on_restore_refused(now_ms, (step, tries), refusal);
            }
            Context::Publish(_) => {}
        }
    }

    fn on_unsubscribed(&mut self, slot: u64) {
        if let Some(queue) = self.subscriptions.remove(slot) {
            self.on_unused(&queue);
        }
    }

    /// A request was done: remembers what it means for the next connection, and tells its maker.
    fn on_done(&mut self, job: CallJob, answer: Answer) {
        let CallJob { call, reply, .. } = job;
        let generation = self.generation;
        let name = match (&call, &answer) {
            (Call::Get { .. }, Answer::Empty | Answer::Got { .. }) => "",
            (Call::Get { .. }, Answer::Done { .. }) | (_, Answer::Empty | Answer::Got { .. }) => {
                let error = RequestError::invalid_reply("a reply to another kind of request came");
                drop(reply.send(Err(error)));
                return;
            }
            (_, Answer::Done { name, .. }) => name.as_str(),
        };
        let replied = |answer| Ok(Replied { answer, generation });
        match call {
            Call::DeclareExchange(exchange) => self.declared.add_exchange(exchange),
            Call::DeclareQueue(queue) => self.declared.add_queue(queue, name),
            Call::Bind(binding) => self.declared.add_binding(binding),
            Call::Unbind(binding) => self.declared.remove_binding(&binding),
            Call::DeleteExchange { name, .. } => self.declared.remove_exchange(&name),
            Call::DeleteQueue { name, .. } => {
                self.declared.remove_queue(&name);
                self.shared.forget_name(&name);
            }
            Call::Subscribe(new) => {
                let slot = new.slot;
                self.subscriptions.insert(new);
                if reply.send(replied(answer)).is_err() {
                    self.unsubscribe(slot, None);
                }
                return;
            }
            Call::CheckExchange(_) | Call::CheckQueue(_) | Call::Purge(_) | Call::Get { .. } => {}
        }
        if let Err(Ok(unread)) = reply.send(replied(answer))
            && let Answer::Got { received, .. } = unread.answer
        {
            // Whoever asked for the message is gone. It may be one that needs no settlement: then
            // the server complains, and nothing more.
            self.give_back(received.tag);
        }
    }

    fn on_delivery(&mut self, slot: u64, received: Received) {
        let tag = received.tag;
        match self.subscriptions.deliver(slot, self.generation, received) {
            Delivered::Buffered | Delivered::Unread { no_ack: true } => {}
            Delivered::Unread { no_ack: false } => self.give_back(tag),
            Delivered::TooMany => {
                let error = SubscriptionError::TooManyDelivered;
                if let Some(queue) = self.subscriptions.end(slot, error) {
                    self.ask_to_end(slot);
                    self.on_unused(&queue);
                }
            }
        }
    }

    /// Puts a message that nobody will read back into its queue.
    fn give_back(&mut self, tag: u64) {
        if let Some(connection) = &mut self.connection {
            connection.nack(&Nack {
                tag,
                multiple: false,
                requeue: true,
            });
        }
    }
}
