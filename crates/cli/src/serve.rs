//! `tanda serve`.

use std::process::ExitCode;

use crate::config_args::ConfigArgs;

pub(crate) fn run(args: &ConfigArgs) -> ExitCode {
    let loaded = match args.load() {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("tanda: {error}");
            return ExitCode::FAILURE;
        }
    };
    match tanda_server::run(loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tanda: {error}");
            ExitCode::FAILURE
        }
    }
}
