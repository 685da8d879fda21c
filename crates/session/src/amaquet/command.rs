//! COMMAND: what it asks for, and what is kept of it until it is answered.

use tanda_engine::{Caller, KeyRequest, Permission, ReplyTo, Request};
use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::command::{ArgumentLimits, Command, Spec, write_commands};
use tanda_wire::amaquet::envelope::Failure;

use super::active::{Entry, Wait};
use super::fields::refused;
use super::key_ops::key_op;
use super::link::Link;
use super::outbound::Asked;
use super::shared::Claim;

/// What is to be done with the answer to a command.
#[derive(Debug)]
pub(super) enum Call {
    /// A command on keys.
    Keys(&'static Spec),
}

/// A command that takes its place: its request id, its place among all commands, and its payload.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) request_id: u64,
    pub(super) claims: (Claim, Claim),
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
        self.run(begun, command)
    }

    fn run(&mut self, begun: Begun, command: Command<'_>) -> Result<(), Failure> {
        let asked = Asked::command(begun.request_id);
        match command {
            Command::ServerPing(_) => {
                self.outbound.result(asked, |out| {
                    out.object(|out| out.key("pong").bool(true));
                });
                return Ok(());
            }
            Command::ServerCommands(_) => {
                self.outbound.result(asked, write_commands);
                return Ok(());
            }
            _ => {}
        }
        let vhost = self.vhost()?;
        let spec = command.spec();
        let caller = self.authority.caller.as_ref().unwrap_or(&Caller::Anyone);
        if let Some(op) = key_op(&command, caller) {
            let answer_bytes_max = self.config.limits.max_payload as usize;
            let reply = self.begin(begun, Call::Keys(spec), wait_of(&command))?;
            let request = Box::new(KeyRequest {
                vhost,
                answer_bytes_max,
                op,
            });
            self.requests.push(Request::Keys { reply, request });
            return Ok(());
        }
        let text = format!("{} is not served", spec.name);
        Err(Failure::new(ErrorCode::Internal, text))
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
            _claims: claims,
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
fn wait_of(command: &Command<'_>) -> Option<Wait> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other command waits")]
    let (name, permission, wait_ms) = match command {
        Command::ListPop(it) => (&it.key.0, Permission::Produce, it.wait_ms),
        Command::LockAcquire(it) => (&it.key.0, Permission::Produce, it.wait_ms),
        Command::QueuePop(it) => (&it.queue, Permission::Consume, it.wait_ms),
        _ => return None,
    };
    (wait_ms.0 > 0).then(|| Wait {
        name: (&**name).into(),
        permission,
    })
}
