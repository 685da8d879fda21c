//! `tanda repair`: looking at a data directory that no broker uses.

mod salvage;
mod show;
mod verify;

use std::{env, path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tanda_server::{Inspection, RepairError, rescue::Fault};

use crate::failure::Failure;

const DATA_DIR_ENV: &str = "TANDA_DATA_DIR";
const DATA_DIR_DEFAULT: &str = "tanda-data";

/// Works on a data directory while no broker uses it; nothing in it is ever changed.
#[derive(Subcommand, Debug)]
pub(crate) enum RepairCommand {
    /// Show the files of a data directory and what is in them.
    Show(show::ShowArgs),
    /// Read everything, check every checksum, and start from it as a broker would, in memory.
    Verify(verify::VerifyArgs),
    /// Write everything that can be read into a new data directory.
    Salvage(salvage::SalvageArgs),
}

/// The directory to look at.
#[derive(Args, Debug)]
struct DataDirArgs {
    /// The data directory [env: TANDA_DATA_DIR] [default: tanda-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataDirArgs {
    fn open(&self) -> Result<Inspection, Failure> {
        let set = || env::var_os(DATA_DIR_ENV).filter(|it| !it.is_empty());
        let path = self.data_dir.clone().or_else(|| set().map(PathBuf::from));
        let path = path.unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT));
        Inspection::open(&path).map_err(|error| failure(&error))
    }
}

fn failure(error: &RepairError) -> Failure {
    Failure::Refused(error.to_string())
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "file": fault.file,
        "offset": fault.offset,
        "bytes": fault.bytes,
        "detail": fault.detail,
    })
}

pub(crate) fn run(command: &RepairCommand, json: bool) -> ExitCode {
    let outcome = match command {
        RepairCommand::Show(args) => show::run(args, json),
        RepairCommand::Verify(args) => verify::run(args, json),
        RepairCommand::Salvage(args) => salvage::run(args),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
