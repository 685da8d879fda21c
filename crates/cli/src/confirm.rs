//! Asks before something is lost for good.

use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;

/// Whether the user has agreed in advance.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ConfirmArgs {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl ConfirmArgs {
    /// Asks `question` unless `--yes` was given. `action` completes "will not ...".
    ///
    /// # Errors
    /// When the answer is no, or nobody can be asked.
    pub(crate) fn ask(self, action: &str, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Err(Failure::Usage(format!(
                "will not {action} without --yes: standard input is no terminal, so nobody can be \
                 asked"
            )));
        }
        let mut err = io::stderr().lock();
        let asked = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
        asked.map_err(|source| Failure::io("ask on standard error", source))?;
        let mut answer = String::new();
        stdin
            .read_line(&mut answer)
            .map_err(|source| Failure::io("read the answer", source))?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::Refused(format!(
                "did not {action}: the answer was no"
            ))),
        }
    }
}
