//! What the task does with commands and events, without its sockets and timers.
//!
//! Owns: the order of requests, pauses of publishers, and what survives the loss of a connection.
//! Refuses to know: sockets, and how a connection is opened.

use std::collections::VecDeque;
use std::sync::Arc;

use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::consume::{Ack, Nack, Unsubscribe};
use tokio::sync::oneshot;

use super::handle::{Command, Shared};
use super::job::{CallJob, Context, Job, PublishJob, SettleKind, Settling};
use super::restore::Restore;
use super::subscriptions::{Begun, Subscriptions};
use crate::fire::core::declared::{DECLARED_MAX, Declared};
use crate::fire::core::{Connection, Request, Unanswered};
use crate::fire::error::{Refusal, RequestError, SubscriptionError};
use crate::shell::endpoint::Drive;
use crate::shell::job::Loss;

mod events;
mod restoring;

/// While so much output is not sent, no further requests are encoded.
const OUTPUT_BYTES_HIGH: usize = 1024 * 1024;

/// All requests and subscriptions of a client, and its connection while there is one.
#[derive(Debug)]
pub(crate) struct Driver {
    connection: Option<Connection<Context>>,
    /// Counts connections, so that a delivery tag of an earlier one is known as such.
    generation: u64,
    /// What was asked, in that order, and is not encoded.
    ready: VecDeque<Job>,
    /// Publishes before those in `ready`, which wait because the server asked for a pause.
    held: VecDeque<Box<PublishJob>>,
    declared: Declared,
    subscriptions: Subscriptions,
    /// While a new connection does not have all that the last one had.
    restore: Option<Restore>,
    shared: Arc<Shared>,
    /// Set while new requests are to fail at once.
    refusing: Option<Loss>,
    /// The newest refusal that belonged to no request.
    complaint: Option<Refusal>,
    is_closing: bool,
    /// Dropped at the end, which is what its receivers wait for.
    closers: Vec<oneshot::Sender<()>>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            connection: None,
            generation: 0,
            ready: VecDeque::new(),
            held: VecDeque::new(),
            declared: Declared::default(),
            subscriptions: Subscriptions::default(),
            restore: None,
            shared,
            refusing: None,
            complaint: None,
            is_closing: false,
            closers: Vec::new(),
        }
    }
}

impl Drive for Driver {
    type Endpoint = Connection<Context>;
    type Command = Command;

    /// Takes a connection, and begins to bring back all that was declared.
    fn attach(&mut self, connection: Connection<Context>) {
        self.connection = Some(connection);
        self.complaint = None;
        self.refusing = self.is_closing.then(closed);
        self.generation += 1;
        self.shared.begin(self.generation);
        self.restore = Some(Restore::new(&self.declared));
    }

    fn connection(&mut self) -> Option<&mut Connection<Context>> {
        self.connection.as_mut()
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn is_finished(&self) -> bool {
        self.is_closing && self.connection.as_ref().is_none_or(Connection::is_finished)
    }

    fn next_deadline_ms(&self) -> Option<u64> {
        let restore = self.restore.as_ref().and_then(Restore::next_deadline_ms);
        let connection = self
            .connection
            .as_ref()
            .and_then(Connection::next_deadline_ms);
        restore.into_iter().chain(connection).min()
    }

    fn is_congested(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|it| it.output().len() >= OUTPUT_BYTES_HIGH)
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Job(job) => match self.refusing.clone() {
                Some(loss) => fail(job, &loss),
                None => self.ready.push_back(job),
            },
            Command::Cancel(slot, waiting) => self.unsubscribe(slot, waiting),
            Command::Close(closer) => {
                self.closers.push(closer);
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.is_closing = true;
        self.refusing = Some(closed());
    }

    fn flush(&mut self, now_ms: u64) {
        if self.connection.as_ref().is_none_or(|it| !it.is_open()) {
            return;
        }
        self.flush_restore(now_ms);
        if self.restore.is_some() {
            return;
        }
        let is_paused = self.connection.as_ref().is_some_and(Connection::is_paused);
        if !is_paused {
            while let Some(job) = self.held.pop_back() {
                self.ready.push_front(Job::Publish(job));
            }
        }
        while !self.is_congested()
            && let Some(job) = self.ready.pop_front()
        {
            match job {
                Job::Publish(job) if is_paused => self.held.push_back(job),
                Job::Publish(job) => self.publish(job),
                Job::Call(job) => self.call(job),
                Job::Settle(settling) => self.settle(settling),
                Job::Credit(slot) => self.grant(slot),
            }
        }
        self.close_when_idle();
    }

    fn on_events(&mut self, now_ms: u64) {
        while let Some(event) = self.connection.as_mut().and_then(Connection::next_event) {
            self.on_event(now_ms, event);
        }
    }

    /// What may be repeated waits for the next connection, the rest fails.
    fn on_lost(&mut self, loss: &Loss) -> Loss {
        let loss = match self.complaint.take() {
            Some(refusal) => Loss::new(format!("{refusal}; {}", loss.reason)),
            None => loss.clone(),
        };
        self.restore = None;
        for queue in self.subscriptions.detach() {
            self.on_unused(&queue);
        }
        let unanswered = self.connection.take().map(Connection::into_unanswered);
        let Unanswered {
            requests,
            publishes,
        } = unanswered.unwrap_or(Unanswered {
            requests: Vec::new(),
            publishes: Vec::new(),
        });
        let mut again = VecDeque::new();
        for context in requests.into_iter().chain(publishes) {
            match context {
                Context::Call(job) if job.is_repeatable() => again.push_back(Job::Call(job)),
                Context::Publish(job) if job.is_repeatable() => again.push_back(Job::Publish(job)),
                Context::Call(job) => fail(Job::Call(job), &loss),
                Context::Publish(job) => fail(Job::Publish(job), &loss),
                // The table of what was declared brings it back; a subscription that was to end
                // has ended.
                Context::Restore(..) | Context::Unsubscribe(_) => {}
            }
        }
        let held = std::mem::take(&mut self.held).into_iter();
        again.extend(held.map(Job::Publish));
        let waiting = std::mem::take(&mut self.ready).into_iter();
        // Deliveries and credit are gone with the connection.
        again.extend(waiting.filter(|job| matches!(job, Job::Publish(_) | Job::Call(_))));
        self.ready = again;
        loss
    }

    fn refuse(&mut self, loss: &Loss) {
        self.refusing.get_or_insert_with(|| loss.clone());
        let held = std::mem::take(&mut self.held).into_iter();
        let waiting = std::mem::take(&mut self.ready).into_iter();
        for job in held.map(Job::Publish).chain(waiting) {
            fail(job, loss);
        }
    }

    fn give_up(&mut self, loss: &Loss) {
        self.refuse(loss);
        let reason = Arc::clone(&loss.reason);
        self.subscriptions
            .end_all(&SubscriptionError::ConnectionLost { reason });
    }
}

impl Driver {
    fn close_when_idle(&mut self) {
        if !self.is_closing || !self.ready.is_empty() || !self.held.is_empty() {
            return;
        }
        if let Some(connection) = &mut self.connection
            && connection.is_idle()
        {
            self.subscriptions = Subscriptions::default();
            connection.close();
        }
    }

    fn publish(&mut self, mut job: Box<PublishJob>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        job.was_sent = true;
        let declared = &self.declared;
        if job.reply.is_none() {
            let message = &job.message;
            if let Err(error) = connection.post(&message.to_wire(declared), &message.body) {
                self.shared
                    .complain(Refusal::new(ReplyCode::FrameError, error.to_string()));
            }
            return;
        }
        let written = connection.publish(job, Context::Publish, |job, writer| {
            let message = &job.message;
            writer.write(&message.to_wire(declared), &message.body)
        });
        if let Err((job, error)) = written {
            job.finish(Err(RequestError::TooLarge(error)));
        }
    }

    fn call(&mut self, mut job: Box<CallJob>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if job.call.declares() && self.declared.is_full() {
            let max = DECLARED_MAX;
            drop(job.reply.send(Err(RequestError::TooManyDeclared { max })));
            return;
        }
        job.was_sent = true;
        let declared = &self.declared;
        let written = connection.request(job, Context::Call, |job, writer| {
            job.call
                .with_request(declared, |request| writer.write(request))
        });
        if let Err((job, error)) = written {
            drop(job.reply.send(Err(RequestError::TooLarge(error))));
        }
    }

    fn settle(&mut self, settling: Settling) {
        let Settling {
            generation,
            tag,
            multiple,
            kind,
        } = settling;
        // The connection may have been lost since the handle looked.
        if generation != self.generation {
            return;
        }
        if let Some(connection) = &mut self.connection {
            match kind {
                SettleKind::Ack => connection.ack(&Ack { tag, multiple }),
                SettleKind::Nack { requeue } => connection.nack(&Nack {
                    tag,
                    multiple,
                    requeue,
                }),
            }
        }
    }

    fn grant(&mut self, slot: u64) {
        if let Some(credit) = self.subscriptions.take_grant(slot)
            && let Some(connection) = &mut self.connection
        {
            connection.credit(slot, credit);
        }
    }

    /// Ends a subscription whose reader wants no more of it.
    fn unsubscribe(&mut self, slot: u64, waiting: Option<oneshot::Sender<()>>) {
        match self.subscriptions.begin_end(slot, waiting) {
            Begun::Ask => self.ask_to_end(slot),
            Begun::Ending => {}
            Begun::Over(queue) => {
                if let Some(queue) = queue {
                    self.on_unused(&queue);
                }
            }
        }
    }

    fn ask_to_end(&mut self, slot: u64) {
        if let Some(connection) = &mut self.connection
            && connection.is_open()
        {
            let request = Request::Unsubscribe(Unsubscribe { rid: 0, sub: slot });
            let asked = connection.request(slot, Context::Unsubscribe, |_, writer| {
                writer.write(&request)
            });
            debug_assert!(asked.is_ok(), "two numbers fit every limit");
        }
    }

    /// A subscription to a queue has ended.
    fn on_unused(&mut self, queue: &str) {
        if self.subscriptions.of_queue(queue).is_empty() {
            self.declared.on_unused(queue);
        }
    }
}

fn closed() -> Loss {
    Loss::new("the client is closed")
}

/// Tells whoever waits for it that it failed. One that went away does not want to know.
fn fail(job: Job, loss: &Loss) {
    let error = |was_sent| RequestError::lost(was_sent, &loss.reason);
    match job {
        Job::Publish(job) => {
            let error = error(job.was_sent);
            job.finish(Err(error));
        }
        Job::Call(job) => {
            let error = error(job.was_sent);
            drop(job.reply.send(Err(error)));
        }
        Job::Settle(_) | Job::Credit(_) => {}
    }
}
