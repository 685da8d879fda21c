//! Where a password comes from: a file, standard input, or a prompt that shows nothing.

use std::{
    fs,
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
};

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::{credentials::Secret, failure::Failure, note::note};

#[derive(Args, Debug)]
pub(super) struct PasswordArgs {
    /// File whose first line is the password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The password itself. Other users of this machine can read it in the list of processes:
    /// prefer --password-file or standard input
    #[arg(long, value_name = "PASSWORD", conflicts_with = "password_file")]
    password: Option<Secret>,
}

impl PasswordArgs {
    /// Reads the password; asks for it when nothing names one and standard input is a terminal.
    pub(super) fn load(&self) -> Result<String, Failure> {
        let password = match (&self.password, &self.password_file) {
            (Some(password), _) => {
                note(format_args!(
                    "a password on the command line can be read by others on this machine"
                ));
                password.reveal().to_owned()
            }
            (None, Some(path)) => {
                let text = fs::read_to_string(path);
                let action = || format!("read the password in {}", path.display());
                first_line(&text.map_err(|error| Failure::io(action(), error))?)
            }
            (None, None) => ask()?,
        };
        if password.is_empty() {
            return Err(Failure::Usage(
                "the password is empty: give it on standard input or by --password-file".to_owned(),
            ));
        }
        Ok(password)
    }
}

fn first_line(text: &str) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line).to_owned()
}

fn ask() -> Result<String, Failure> {
    let failed = |error| Failure::io("read the password", error);
    let stdin = io::stdin();
    let mut line = String::new();
    if !stdin.is_terminal() {
        stdin.lock().read_line(&mut line).map_err(failed)?;
        return Ok(first_line(&line));
    }
    let mut prompt = io::stderr();
    write!(prompt, "Password: ").map_err(failed)?;
    prompt.flush().map_err(failed)?;
    let before = tcgetattr(&stdin).map_err(|error| failed(error.into()))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(|error| failed(error.into()))?;
    let read = stdin.lock().read_line(&mut line);
    let restored = tcsetattr(&stdin, OptionalActions::Flush, &before);
    writeln!(prompt).map_err(failed)?;
    read.map_err(failed)?;
    restored.map_err(|error| failed(error.into()))?;
    Ok(first_line(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line() {
        for (text, password) in [
            ("pw", "pw"),
            ("pw\n", "pw"),
            (" p w \r\nmore\n", " p w "),
            ("", ""),
        ] {
            assert_eq!(first_line(text), password, "{text:?}");
        }
    }
}
