//! `tanda check-config`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use tanda_server::config::Loaded;

use crate::config_args::ConfigArgs;

pub(crate) fn run(args: &ConfigArgs) -> ExitCode {
    let loaded = match args.load() {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("tanda: {error}");
            return ExitCode::FAILURE;
        }
    };
    for warning in &loaded.warnings {
        eprintln!("tanda: warning: {warning}");
    }
    match tanda_server::check_tls_files(&loaded.config) {
        Ok(warnings) => {
            for warning in warnings {
                eprintln!("tanda: warning: {warning}");
            }
        }
        Err(error) => {
            eprintln!("tanda: {error}");
            return ExitCode::FAILURE;
        }
    }
    match print(&loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tanda: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One line per option: key, value, source.
fn print(loaded: &Loaded) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (key, text, source) in &loaded.origins {
        writeln!(out, "{key} = {text:?}  # {source}")?;
    }
    for user in &loaded.config.users {
        writeln!(out, "[[users]] {:?}", user.name)?;
    }
    out.flush()
}
