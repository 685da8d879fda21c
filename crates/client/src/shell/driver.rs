//! What the task does with commands and events, without its sockets and timers.
//!
//! Owns: the order of requests, sharing of frames, further tries after overload, and what survives
//! the loss of a connection. Refuses to know: sockets, and how a connection is opened.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tanda_wire::fila::Opcode;
use tokio::sync::oneshot;

use super::endpoint::Drive;
use super::gather::{Gathering, write_body};
use super::handle::Command;
use super::job::{EnqueueJob, Group, Job, Loss, Overload, SettleJob, SettleKind};
use super::results::{answer_enqueue, answer_settle};
use super::subscriptions::{Delivered, SlotId, Subscriptions};
use crate::core::{Connection, Event, Failure};
use crate::error::{Rejection, RequestError, SubscriptionError};
use crate::policy::OverloadRetry;

/// While so much output is not sent, no further requests are encoded.
const OUTPUT_BYTES_HIGH: usize = 1024 * 1024;

/// All requests and subscriptions of a client, and its connection while there is one.
#[derive(Debug)]
pub(crate) struct Driver {
    connection: Option<Connection<Group>>,
    /// Requests in the order they were made, not yet encoded.
    ready: VecDeque<Job>,
    /// Requests refused for overload, by (time in ms, number) of the next try.
    delayed: BTreeMap<(u64, u64), Job>,
    delayed_count: u64,
    subscriptions: Subscriptions,
    overload: OverloadRetry,
    /// Set while new requests are to fail at once.
    refusing: Option<Loss>,
    /// The newest refusal that belonged to no request.
    complaint: Option<Rejection>,
    is_closing: bool,
    /// Dropped at the end, which is what its receivers wait for.
    closers: Vec<oneshot::Sender<()>>,
}

impl Driver {
    pub(crate) fn new(overload: OverloadRetry) -> Self {
        Self {
            connection: None,
            ready: VecDeque::new(),
            delayed: BTreeMap::new(),
            delayed_count: 0,
            subscriptions: Subscriptions::default(),
            overload,
            refusing: None,
            complaint: None,
            is_closing: false,
            closers: Vec::new(),
        }
    }
}

impl Drive for Driver {
    type Endpoint = Connection<Group>;
    type Command = Command;

    /// Takes a connection whose handshake is done, and opens all subscriptions on it again.
    fn attach(&mut self, connection: Connection<Group>) {
        self.connection = Some(connection);
        self.complaint = None;
        self.refusing = None;
        let overload = Overload::new(self.overload);
        for slot in self.subscriptions.slots() {
            self.ready.push_back(Job::Resubscribe(slot, overload));
        }
    }

    fn connection(&mut self) -> Option<&mut Connection<Group>> {
        self.connection.as_mut()
    }

    /// Whether the client is to end: it was closed, or nobody holds it any more.
    fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Whether closing has come so far that the socket may be closed.
    fn is_finished(&self) -> bool {
        self.is_closing && self.connection.as_ref().is_none_or(Connection::is_finished)
    }

    /// When [`on_timer`](Self::on_timer) has something to do.
    fn next_deadline_ms(&self) -> Option<u64> {
        let own = self.delayed.keys().next().map(|(due_ms, _)| *due_ms);
        let connection = self.connection.as_ref().map(Connection::next_deadline_ms);
        own.into_iter().chain(connection).min()
    }

    /// Whether so much waits to be sent that commands had better wait too.
    fn is_congested(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|it| it.output().len() >= OUTPUT_BYTES_HIGH)
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Job(job) => match self.refusing.clone() {
                Some(loss) => self.fail(job, &loss.error(false)),
                None => self.ready.push_back(job),
            },
            Command::Credit(slot) => self.grant(slot),
            Command::Cancel(slot) => {
                if let Some(request_id) = self.subscriptions.remove(slot) {
                    self.cancel(request_id);
                }
            }
            Command::Close(closer) => {
                self.closers.push(closer);
                self.close();
            }
        }
    }

    /// Ends the client once what was asked before is answered.
    fn close(&mut self) {
        self.is_closing = true;
        self.refusing = Some(Loss::new("the client is closed"));
    }

    /// Encodes what waits, as far as the connection takes it.
    fn flush(&mut self, now_ms: u64) {
        self.wake_delayed(now_ms);
        if self.connection.as_ref().is_none_or(|it| !it.is_open()) {
            return;
        }
        let mut sends = Gathering::<EnqueueJob>::default();
        let mut settles = <[Gathering<SettleJob>; 3]>::default();
        while !self.is_congested()
            && let Some(job) = self.ready.pop_front()
        {
            match job {
                Job::Enqueue(job) => {
                    if let Some(full) = sends.push(job) {
                        self.request(Opcode::Enqueue, Group::Enqueue(full));
                    }
                }
                Job::Settle(job) => {
                    let [acks, nacks, extensions] = &mut settles;
                    let gathering = match job.kind {
                        SettleKind::Ack => acks,
                        SettleKind::Nack => nacks,
                        SettleKind::Extend => extensions,
                    };
                    let opcode = job.kind.opcode();
                    if let Some(full) = gathering.push(job) {
                        self.request(opcode, Group::Settle(full));
                    }
                }
                Job::Call(job) => self.request(job.opcode, Group::Call(job)),
                Job::Subscribe(job) => self.request(Opcode::Consume, Group::Subscribe(job)),
                Job::Resubscribe(slot, overload) => self.resubscribe(slot, overload),
            }
        }
        if let Some(jobs) = sends.take() {
            self.request(Opcode::Enqueue, Group::Enqueue(jobs));
        }
        for (mut gathering, kind) in
            settles
                .into_iter()
                .zip([SettleKind::Ack, SettleKind::Nack, SettleKind::Extend])
        {
            if let Some(jobs) = gathering.take() {
                self.request(kind.opcode(), Group::Settle(jobs));
            }
        }
        self.disconnect_when_idle();
    }

    /// Handles all that the connection has to say.
    fn on_events(&mut self, now_ms: u64) {
        while let Some(event) = self.connection.as_mut().and_then(Connection::next_event) {
            match event {
                Event::Answer {
                    request_id,
                    context,
                    body,
                } => {
                    self.on_answer(request_id, context, body);
                }
                Event::Failed { context, failure } => self.on_failed(now_ms, context, &failure),
                Event::Delivery {
                    request_id,
                    messages,
                    body,
                } => {
                    if self.subscriptions.deliver(request_id, messages, body) == Delivered::Ended {
                        self.cancel(request_id);
                    }
                }
                Event::SubscriptionEnded {
                    request_id,
                    failure,
                } => {
                    self.subscriptions
                        .end_request(request_id, subscription_error(failure));
                }
                Event::Complaint(rejection) | Event::Refused(rejection) => {
                    self.complaint = Some(rejection);
                }
                // The handshake is over when the connection comes here, and the end of a
                // connection is seen on its socket.
                Event::Ready(_) | Event::Closing => {}
            }
        }
    }

    /// The connection is gone. What may be repeated waits for the next one, the rest fails.
    fn on_lost(&mut self, loss: &Loss) -> Loss {
        let loss = match self.complaint.take() {
            Some(rejection) => Loss::new(format!("{rejection}; {}", loss.reason)),
            None => loss.clone(),
        };
        self.subscriptions.detach();
        let unanswered = self.connection.take().map(Connection::into_unanswered);
        let jobs = unanswered.into_iter().flatten().flat_map(Group::into_jobs);
        let mut repeated = VecDeque::new();
        for job in jobs.collect::<Vec<Job>>() {
            if job.is_repeatable() {
                repeated.push_back(job);
            } else if !matches!(job, Job::Resubscribe(..)) {
                self.fail(job, &loss.error(true));
            }
        }
        // Subscriptions are all opened again by the next connection, each once.
        let waiting = std::mem::take(&mut self.ready).into_iter();
        repeated.extend(waiting.filter(|job| !matches!(job, Job::Resubscribe(..))));
        self.ready = repeated;
        self.delayed
            .retain(|_, job| !matches!(job, Job::Resubscribe(..)));
        loss
    }

    /// There was no connection for too long: what waits fails, and so does what comes until there
    /// is one.
    fn refuse(&mut self, loss: &Loss) {
        self.refusing.get_or_insert_with(|| loss.clone());
        let delayed = std::mem::take(&mut self.delayed).into_values();
        let waiting: Vec<Job> = std::mem::take(&mut self.ready)
            .into_iter()
            .chain(delayed)
            .collect();
        for job in waiting {
            self.fail(job, &loss.error(false));
        }
    }

    /// There will be no connection any more.
    fn give_up(&mut self, loss: &Loss) {
        self.refuse(loss);
        let reason = Arc::clone(&loss.reason);
        self.subscriptions
            .end_all(&SubscriptionError::ConnectionLost { reason });
    }
}

impl Driver {
    fn wake_delayed(&mut self, now_ms: u64) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now_ms {
                return;
            }
            self.ready.push_back(entry.remove());
        }
    }

    fn disconnect_when_idle(&mut self) {
        if self.is_closing && self.ready.is_empty() && self.delayed.is_empty() {
            self.subscriptions = Subscriptions::default();
            if let Some(connection) = &mut self.connection {
                connection.disconnect();
            }
        }
    }

    fn request(&mut self, opcode: Opcode, group: Group) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let subscriptions = &self.subscriptions;
        let written = connection.request(opcode, group, |group, out| match group {
            Group::Enqueue(jobs) => {
                write_body(jobs, out);
                Ok(())
            }
            Group::Settle(jobs) => {
                write_body(jobs, out);
                Ok(())
            }
            Group::Call(job) => {
                out.extend_from_slice(&job.body);
                Ok(())
            }
            Group::Subscribe(job) => job.new.write_consume(out),
            Group::Resubscribe(slot, _) => subscriptions.write_reopen(*slot, out),
        });
        if let Err((group, error)) = written {
            for job in group.into_jobs() {
                self.fail(job, &RequestError::Unencodable(error));
            }
        }
    }

    fn resubscribe(&mut self, slot: SlotId, overload: Overload) {
        // It may have been cancelled while it waited.
        if self.subscriptions.contains(slot) {
            self.request(Opcode::Consume, Group::Resubscribe(slot, overload));
        }
    }

    fn grant(&mut self, slot: SlotId) {
        if let Some((request_id, credit)) = self.subscriptions.take_grant(slot)
            && let Some(connection) = &mut self.connection
        {
            connection.grant(request_id, credit);
        }
    }

    fn cancel(&mut self, request_id: u32) {
        if let Some(connection) = &mut self.connection {
            connection.cancel(request_id);
        }
    }

    fn on_answer(&mut self, request_id: u32, group: Group, body: Bytes) {
        match group {
            Group::Enqueue(jobs) => answer_enqueue(jobs, &body),
            Group::Settle(jobs) => answer_settle(jobs, &body),
            // A caller that went away does not want the answer.
            Group::Call(job) => drop(job.reply.send(Ok(body))),
            Group::Subscribe(job) => {
                let slot = job.new.slot;
                self.subscriptions.insert(job.new, request_id);
                if job.reply.send(Ok(())).is_err() {
                    self.subscriptions.remove(slot);
                    self.cancel(request_id);
                }
            }
            Group::Resubscribe(slot, _) => {
                if self.subscriptions.attach(slot, request_id) {
                    // What was released since the request was made.
                    self.grant(slot);
                } else {
                    self.cancel(request_id);
                }
            }
        }
    }

    fn on_failed(&mut self, now_ms: u64, group: Group, failure: &Failure) {
        for mut job in group.into_jobs() {
            let error = match failure {
                Failure::Rejected(rejection) => {
                    if let Some(delay_ms) = job.retry_delay_ms(rejection) {
                        self.delay(now_ms.saturating_add(delay_ms), job);
                        continue;
                    }
                    RequestError::Rejected(rejection.clone())
                }
                Failure::InvalidFrame(reason) => RequestError::invalid_reply(reason),
            };
            self.fail(job, &error);
        }
    }

    fn delay(&mut self, due_ms: u64, job: Job) {
        self.delayed_count += 1;
        self.delayed.insert((due_ms, self.delayed_count), job);
    }

    /// Tells whoever waits for a request that it failed. One that went away does not want to know.
    fn fail(&mut self, job: Job, error: &RequestError) {
        match job {
            Job::Enqueue(job) => job.reply.fail(error.clone()),
            Job::Settle(job) => job.reply.fail(error.clone()),
            Job::Call(job) => drop(job.reply.send(Err(error.clone()))),
            Job::Subscribe(job) => drop(job.reply.send(Err(error.clone()))),
            Job::Resubscribe(slot, _) => {
                let error = match error {
                    RequestError::Rejected(rejection) => {
                        SubscriptionError::Rejected(rejection.clone())
                    }
                    RequestError::ConnectionLost { .. }
                    | RequestError::InvalidReply { .. }
                    | RequestError::Unencodable(_)
                    | RequestError::InvalidThrottle(_) => SubscriptionError::ConnectionLost {
                        reason: Arc::from(error.to_string()),
                    },
                };
                self.subscriptions.end(slot, error);
            }
        }
    }
}

fn subscription_error(failure: Failure) -> SubscriptionError {
    match failure {
        Failure::Rejected(rejection) => SubscriptionError::Rejected(rejection),
        Failure::InvalidFrame(reason) => SubscriptionError::InvalidDelivery {
            reason: Arc::from(reason),
        },
    }
}
