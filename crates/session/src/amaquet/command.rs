//! COMMAND: what it asks for, and what is kept of it until it is answered.

use tanda_engine::{AdminRequest, Caller, KeyRequest, Permission, QueueCounts, ReplyTo, Request};
use tanda_wire::amaquet::command::{ArgumentLimits, Command, Spec, write_commands};
use tanda_wire::amaquet::envelope::Failure;

use super::active::{Entry, Wait};
use super::claims::Claim;
use super::fields::refused;
use super::key_ops::key_op;
use super::link::Link;
use super::outbound::Asked;
use super::queue_replies::Named;

/// What is to be done with the answer to a command; texts are the names of queues.
#[derive(Debug)]
pub(super) enum Call {
    /// A command on keys.
    Keys(&'static Spec),
    /// `server.info`.
    Info,
    /// `queue.create`.
    Create(Box<str>),
    /// `queue.push`.
    Push(Box<str>),
    /// `queue.pop`.
    Pop(Box<str>),
    /// `queue.peek`.
    Peek(Box<str>),
    /// `queue.ack`, `queue.nack`, `queue.extend`.
    Settle {
        /// The messages, as they were named.
        named: Vec<Named>,
        /// It is `queue.extend`.
        extends: bool,
    },
    /// `queue.stats`.
    Stats(Box<str>),
    /// The same, when all is counted but the age.
    Counted(Box<QueueCounts>),
    /// `queue.redrive`.
    Redrive(Box<str>),
    /// The same, when it is done.
    Left {
        /// How many went.
        redriven: u64,
    },
    /// `queue.delete`.
    Delete(Box<str>),
    /// `pubsub.publish`.
    Publish,
    /// `pubsub.channels`.
    Channels,
}

/// A command that takes its place: its request id, its place among all commands, and its payload.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) request_id: u64,
    pub(super) claims: (Claim, Claim),
}

impl Begun {
    /// A command of which the engine is asked something more.
    pub(super) fn again(entry: Entry) -> Self {
        Self {
            request_id: entry.request_id,
            claims: entry.claims,
        }
    }
}

impl Link {
    /// Runs a command, or begins to.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn on_command(
        &mut self,
        request_id: u64,
        payload: &[u8],
        reserved: Claim,
    ) -> Result<(), Failure> {
        let claim = self.begin_command()?;
        let limits = ArgumentLimits {
            wait_ms_max: self.config.limits.max_wait_ms,
        };
        let command = Command::parse(payload, &limits).map_err(|error| refused(&error))?;
        self.demand(&command)?;
        let begun = Begun {
            request_id,
            claims: (claim, reserved),
        };
        self.run(begun, &command)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most commands are about keys"
    )]
    fn run(&mut self, begun: Begun, command: &Command<'_>) -> Result<(), Failure> {
        match command {
            Command::ServerPing(_) => {
                let asked = Asked::command(begun.request_id);
                self.say_object(asked, |out| out.key("pong").bool(true));
                Ok(())
            }
            Command::ServerCommands(_) => {
                let asked = Asked::command(begun.request_id);
                self.outbound.result(asked, write_commands);
                Ok(())
            }
            Command::ServerInfo(_) => {
                let vhost = self.vhost()?;
                self.ask(begun, Call::Info, AdminRequest::CountVhost { vhost })
            }
            Command::QueueCreate(_)
            | Command::QueuePush(_)
            | Command::QueuePop(_)
            | Command::QueueAck(_)
            | Command::QueueNack(_)
            | Command::QueueExtend(_)
            | Command::QueueStats(_)
            | Command::QueuePeek(_)
            | Command::QueueRedrive(_)
            | Command::QueueDelete(_) => self.on_queue(begun, command),
            Command::PubsubPublish(it) => self.on_publish(begun, it),
            Command::PubsubChannels(it) => self.on_channels(begun, it),
            _ => self.on_keys(begun, command),
        }
    }

    /// Begins a command on keys.
    fn on_keys(&mut self, begun: Begun, command: &Command<'_>) -> Result<(), Failure> {
        let vhost = self.vhost()?;
        let caller = self.authority.caller.as_ref().unwrap_or(&Caller::Anyone);
        // All that are not about keys were served before.
        let Some(op) = key_op(command, caller) else {
            return Ok(());
        };
        let request = Box::new(KeyRequest {
            vhost,
            answer_bytes_max: self.config.limits.max_payload as usize,
            op,
        });
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "no other command on keys waits"
        )]
        let wait = match command {
            Command::ListPop(it) => wait_of(&it.key.0, Permission::Produce, it.wait_ms.0),
            Command::LockAcquire(it) => wait_of(&it.key.0, Permission::Produce, it.wait_ms.0),
            _ => None,
        };
        let reply = self.begin(begun, Call::Keys(command.spec()), wait)?;
        self.requests.push(Request::Keys { reply, request });
        Ok(())
    }

    /// Asks the engine something rare.
    pub(super) fn ask(
        &mut self,
        begun: Begun,
        call: Call,
        request: AdminRequest,
    ) -> Result<(), Failure> {
        let reply = self.begin(begun, call, None)?;
        self.requests.push(Request::Admin { reply, request });
        Ok(())
    }

    /// Keeps a command until the engine answers it.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn begin(
        &mut self,
        begun: Begun,
        call: Call,
        wait: Option<Wait>,
    ) -> Result<ReplyTo, Failure> {
        let Begun { request_id, claims } = begun;
        let token = self.active.insert(Entry {
            request_id,
            call,
            wait,
            stopped: None,
            claims,
        });
        match token {
            Some(token) => Ok(self.reply_to(token)),
            None => Err(self.overloaded("too many commands are not answered yet")),
        }
    }

    /// A place among the commands that are not answered.
    fn begin_command(&self) -> Result<Claim, Failure> {
        let limits = &self.config.limits;
        let max = limits.active_per_connection;
        if self.active.len() >= max || !self.active.has_room() {
            let text = format!("{max} commands of this connection are not answered yet");
            return Err(self.overloaded(text));
        }
        let max = limits.active_total;
        let claim = self.config.shared.begin(max);
        claim.ok_or_else(|| self.overloaded(format!("{max} commands are not answered yet")))
    }
}

/// For what a command waits, if it does.
pub(super) fn wait_of(name: &str, permission: Permission, wait_ms: u64) -> Option<Wait> {
    (wait_ms > 0).then(|| Wait {
        name: name.into(),
        permission,
    })
}
