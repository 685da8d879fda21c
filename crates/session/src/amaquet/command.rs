//! COMMAND: what it asks for, and what is kept of it until it is answered.

use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::command::{ArgumentLimits, Command, write_commands};
use tanda_wire::amaquet::envelope::Failure;

use super::active::{Entry, Wait};
use super::fields::refused;
use super::link::Link;
use super::outbound::Asked;
use super::shared::Claim;

/// What is to be done with the answer to a command.
#[derive(Debug)]
pub(super) enum Call {}

/// A command that the engine is to be asked about.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) call: Call,
    pub(super) wait: Option<Wait>,
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
        let asked = Asked::command(request_id);
        #[expect(clippy::wildcard_enum_match_arm, reason = "others ask the engine")]
        match command {
            Command::ServerPing(_) => {
                self.outbound.result(asked, |out| {
                    out.object(|out| out.key("pong").bool(true));
                });
                Ok(())
            }
            Command::ServerCommands(_) => {
                self.outbound.result(asked, write_commands);
                Ok(())
            }
            _ => {
                drop((claim, reserved));
                let text = format!("{} is not served", command.spec().name);
                Err(Failure::new(ErrorCode::Internal, text))
            }
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
