//! What the task does with commands and events, without its sockets and timers.
//!
//! Owns: the order of requests, and what survives the loss of a connection.
//! Refuses to know: sockets, and how a connection is opened.

use std::collections::VecDeque;
use std::sync::Arc;

use tanda_wire::amaquet::Opcode;
use tanda_wire::amaquet::json::Writer;
use tokio::sync::oneshot;

use super::handle::{Call, Command, RequestIds, Shared};
use super::subscriptions::{Place, Subscriptions};
use crate::amaquet::core::{Connection, Event};
use crate::amaquet::error::{Refusal, RequestError, SubscriptionError};
use crate::amaquet::link::Link;
use crate::amaquet::reply::Reply;
use crate::shell::endpoint::Drive;
use crate::shell::job::Loss;

/// While so much output is not sent, no further requests are encoded.
const OUTPUT_BYTES_HIGH: usize = 1024 * 1024;

/// What is kept for a request until its answer.
#[derive(Debug)]
pub(crate) enum Context {
    Call(Box<Call>),
    Subscribe(u64),
    /// Nobody waits for the answer of CANCEL and UNSUBSCRIBE.
    Unwatched,
}

/// Anything that waits for its turn on the connection.
#[derive(Debug)]
enum Job {
    Call(Box<Call>),
    Subscribe(u64),
    Unsubscribe(Place),
}

/// All requests and subscriptions of a client, and its connection while there is one.
#[derive(Debug)]
pub(crate) struct Driver {
    connection: Option<Connection<Context>>,
    /// What was asked, in that order, and is not encoded.
    ready: VecDeque<Job>,
    subscriptions: Subscriptions,
    ids: RequestIds,
    shared: Arc<Shared>,
    /// Set while new requests are to fail at once.
    refusing: Option<Loss>,
    is_closing: bool,
    /// Dropped at the end, which is what its receivers wait for.
    closers: Vec<oneshot::Sender<()>>,
}

impl Driver {
    pub(crate) fn new(ids: RequestIds, shared: Arc<Shared>) -> Self {
        Self {
            connection: None,
            ready: VecDeque::new(),
            subscriptions: Subscriptions::default(),
            ids,
            shared,
            refusing: None,
            is_closing: false,
            closers: Vec::new(),
        }
    }
}

impl Drive for Driver {
    type Endpoint = Connection<Context>;
    type Command = Command;

    /// Takes a connection, and subscribes on it to what the last one was subscribed to.
    fn attach(&mut self, connection: Connection<Context>) {
        if let Some((hello, login)) = connection.greeting() {
            self.shared.greet(hello.clone(), login.cloned());
        }
        self.connection = Some(connection);
        self.refusing = self.is_closing.then(closed);
        for slot in self.subscriptions.slots().into_iter().rev() {
            self.ready.push_front(Job::Subscribe(slot));
        }
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
        None
    }

    fn is_congested(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|it| it.output().len() >= OUTPUT_BYTES_HIGH)
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Call(call) => match &self.refusing {
                Some(loss) => fail(call, loss),
                None => self.ready.push_back(Job::Call(Box::new(call))),
            },
            Command::Cancel(request_id) => self.cancel(request_id),
            Command::Subscribe(new) => {
                if let Some(loss) = &self.refusing {
                    drop(new.reply.send(Err(RequestError::lost(false, &loss.reason))));
                    return;
                }
                let slot = self.subscriptions.add(*new);
                // A connection that is yet to come asks for all of them.
                if self.connection.is_some() {
                    self.ready.push_back(Job::Subscribe(slot));
                }
            }
            Command::Unsubscribe(slot) => {
                if let Some(place) = self.subscriptions.leave(slot) {
                    self.ready.push_back(Job::Unsubscribe(place));
                }
            }
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

    fn flush(&mut self, _now_ms: u64) {
        while !self.is_congested()
            && self.connection.is_some()
            && let Some(job) = self.ready.pop_front()
        {
            match job {
                Job::Call(call) => self.call(call),
                Job::Subscribe(slot) => self.subscribe(slot),
                Job::Unsubscribe(place) => self.unsubscribe(&place),
            }
        }
        if self.is_closing
            && self.ready.is_empty()
            && let Some(connection) = &mut self.connection
            && connection.is_idle()
        {
            self.subscriptions = Subscriptions::default();
            connection.close();
        }
    }

    fn on_events(&mut self, _now_ms: u64) {
        while let Some(event) = self.connection.as_mut().and_then(Connection::next_event) {
            match event {
                Event::Answered { context, answer } => match context {
                    Context::Call(call) => {
                        let answer = answer.map(Reply::new).map_err(RequestError::Refused);
                        // A caller that went away does not want the answer.
                        drop(call.reply.send(answer));
                    }
                    Context::Subscribe(slot) => match answer {
                        Ok(_) => self.subscriptions.on_made(slot),
                        Err(refusal) => {
                            let error = RequestError::Refused(refusal);
                            self.subscriptions.on_refused(slot, error);
                        }
                    },
                    Context::Unwatched => {}
                },
                Event::Told {
                    subscription,
                    payload,
                } => self.subscriptions.on_event(subscription, &payload),
                Event::Ended {
                    subscription,
                    refusal,
                } => self.on_ended(subscription, refusal),
            }
        }
    }

    /// What may be repeated waits for the next connection, the rest fails.
    fn on_lost(&mut self, loss: &Loss) -> Loss {
        let reason = Arc::clone(&loss.reason);
        self.shared.part(Link::Lost { reason });
        self.subscriptions.detach();
        let unanswered = self.connection.take().map(Connection::into_unanswered);
        let mut again = VecDeque::new();
        for context in unanswered.into_iter().flatten() {
            match context {
                Context::Call(call) if call.is_repeatable && !call.reply.is_closed() => {
                    again.push_back(Job::Call(call));
                }
                Context::Call(call) => fail(*call, loss),
                // The table of subscriptions asks for them again, and ended ones have ended.
                Context::Subscribe(_) | Context::Unwatched => {}
            }
        }
        let waiting = std::mem::take(&mut self.ready).into_iter();
        again.extend(waiting.filter(|job| matches!(job, Job::Call(_))));
        self.ready = again;
        loss.clone()
    }

    fn refuse(&mut self, loss: &Loss) {
        self.refusing.get_or_insert_with(|| loss.clone());
        for job in std::mem::take(&mut self.ready) {
            if let Job::Call(call) = job {
                fail(*call, loss);
            }
        }
        self.subscriptions.refuse_new(&loss.reason);
    }

    fn give_up(&mut self, loss: &Loss) {
        let reason = Arc::clone(&loss.reason);
        self.shared.part(Link::Ended { reason });
        self.refuse(loss);
        self.subscriptions.end_all(&loss.reason);
    }
}

impl Driver {
    fn call(&mut self, mut call: Box<Call>) {
        // Whoever asked may be gone: then nobody wants it done.
        let Some(connection) = self.connection.as_mut().filter(|_| !call.reply.is_closed()) else {
            return;
        };
        call.was_sent = true;
        let (opcode, request_id) = (call.opcode, call.request_id);
        let context = Context::Call(call);
        let asked = connection.request(opcode, request_id, context, |context, out| {
            if let Context::Call(call) = context {
                out.extend_from_slice(&call.payload);
            }
        });
        match asked {
            // It is kept only for another connection.
            Ok(()) => {}
            Err((Context::Call(call), error)) => drop(call.reply.send(Err(error.into()))),
            Err(_) => {}
        }
    }

    /// Asks for a command to be cancelled, or does not make it.
    fn cancel(&mut self, request_id: u64) {
        let is_it = |job: &Job| matches!(job, Job::Call(call) if call.request_id == request_id);
        if let Some(at) = self.ready.iter().position(is_it) {
            if let Some(Job::Call(call)) = self.ready.remove(at) {
                let refusal = Refusal {
                    code: tanda_wire::amaquet::ErrorCode::Cancelled.name().to_owned(),
                    message: "cancelled before it was sent".to_owned(),
                    retry_after_ms: None,
                };
                drop(call.reply.send(Err(RequestError::Refused(refusal))));
            }
            return;
        }
        let connection = self.connection.as_ref();
        if connection.is_some_and(|it| it.is_waiting(request_id)) {
            // A number is within every limit.
            drop(self.ask(Opcode::Cancel, Context::Unwatched, |out| {
                out.key("request_id").u64(request_id);
            }));
        }
    }

    fn subscribe(&mut self, slot: u64) {
        let Some(place) = self.subscriptions.place(slot) else {
            return;
        };
        let asked = self.ask(Opcode::Subscribe, Context::Subscribe(slot), |out| {
            out.key("key").str(&place.key);
            out.key("channel").str(&place.channel);
            out.key("buffer").u64(u64::from(place.buffer));
        });
        match asked {
            Ok(request_id) => self.subscriptions.on_asked(slot, request_id),
            Err(error) => self.subscriptions.on_refused(slot, error),
        }
    }

    fn unsubscribe(&mut self, place: &Place) {
        // It is no larger than the request that subscribed.
        drop(self.ask(Opcode::Unsubscribe, Context::Unwatched, |out| {
            out.key("key").str(&place.key);
            out.key("channel").str(&place.channel);
        }));
    }

    /// Makes a request of the client's own.
    fn ask(
        &mut self,
        opcode: Opcode,
        context: Context,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<u64, RequestError> {
        let request_id = self.ids.next();
        let Some(connection) = &mut self.connection else {
            return Err(RequestError::closed(false));
        };
        let asked = connection.request(opcode, request_id, context, |_, out| {
            Writer::new(out).object(write);
        });
        match asked {
            Ok(()) => Ok(request_id),
            Err((_, error)) => Err(error.into()),
        }
    }

    fn on_ended(&mut self, request_id: u64, refusal: Refusal) {
        if let Some(slot) = self.subscriptions.of_request(request_id) {
            let error = SubscriptionError::Ended(refusal);
            self.subscriptions.end(slot, error);
        }
    }
}

fn closed() -> Loss {
    Loss::new("the client is closed")
}

/// Tells whoever waits for it that it failed. One that went away does not want to know.
fn fail(call: Call, loss: &Loss) {
    let error = RequestError::lost(call.was_sent, &loss.reason);
    drop(call.reply.send(Err(error)));
}
