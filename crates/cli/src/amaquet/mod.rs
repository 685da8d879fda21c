//! `tanda amaquet`: commands of the Amaquet door, one, those of a script, or typed one by one.

mod arguments;
mod door;
mod editor;
mod history;
mod once;
mod page;
mod shell;
mod suggest;
mod talk;
mod words;

use std::io::{self, IsTerminal};

use clap::Args;

use crate::{failure::Failure, target::TargetArgs};

const AFTER_HELP: &str = "\
Without a command it is a shell when standard input is a terminal; otherwise each line of standard \
input is a command, and the first that fails ends it. `tanda amaquet help` lists the commands, \
`tanda amaquet help COMMAND` tells all of one.

Results are JSON on standard output, one line each, errors go to standard error. SIGINT cancels \
the command that runs.";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AmaquetArgs {
    /// A command, `subscribe KEY CHANNEL [count=N]`, or `help`
    command: Option<String>,
    /// Its arguments as NAME=VALUE, or values alone for those that are required
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    door: door::DoorArgs,
}

pub(crate) async fn run(args: AmaquetArgs, before: TargetArgs) -> Result<(), Failure> {
    let Some(command) = args.command else {
        let door = args.door.or(before);
        return if io::stdin().is_terminal() {
            shell::run(door).await
        } else {
            once::script(&door).await
        };
    };
    let mut words = vec![command];
    words.extend(args.arguments);
    once::command(&args.door.or(before), &words).await
}
