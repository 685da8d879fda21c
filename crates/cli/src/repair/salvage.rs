//! `tanda repair salvage`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use super::{DataDirArgs, failure, verify::losses};
use crate::{
    failure::Failure,
    output::{Output, printable},
    table::{counted, grouped},
};

#[derive(Args, Debug)]
pub(crate) struct SalvageArgs {
    #[command(flatten)]
    data_dir: DataDirArgs,
    /// Where to write the new data directory; it must not exist or be empty
    #[arg(long, value_name = "NEW_DIR")]
    to: PathBuf,
}

pub(super) fn run(args: &SalvageArgs) -> Result<ExitCode, Failure> {
    let dir = args.data_dir.open()?;
    let salvaged = dir.salvage(&args.to).map_err(|error| failure(&error))?;
    let mut out = Output::new();
    let mut line = |text: String| out.line(printable(text.as_bytes()));
    line(format!(
        "{} with {} bytes saved in {}",
        counted(salvaged.messages, "message"),
        grouped(salvaged.bytes),
        args.to.display()
    ))?;
    if salvaged.is_whole() {
        line("nothing was damaged: the broker can use the old directory as well".to_owned())?;
    } else {
        line("lost:".to_owned())?;
        for text in losses(&salvaged) {
            line(format!("  {text}"))?;
        }
        line("messages that were acknowledged may be there again".to_owned())?;
    }
    line("the old directory was not changed".to_owned())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
