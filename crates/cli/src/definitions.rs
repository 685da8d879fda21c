//! `tanda definitions ...`: virtual hosts, users, permissions, exchanges, queues and bindings as
//! one JSON document.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    failure::Failure,
    note::note,
    output::{Output, printable},
    table::counted,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum DefinitionsCommand {
    /// Make what a document defines, as RabbitMQ exports it too; what is there stays.
    Import(ImportArgs),
    /// Print what there is. The hashes of passwords are in it: keep it as you keep passwords.
    Export(ExportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The document, in JSON; - is standard input
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: DefinitionsCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        DefinitionsCommand::Import(args) => import(args, before).await,
        DefinitionsCommand::Export(args) => export(args, before).await,
    }
}

async fn import(args: ImportArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let document = read(&args.file)?;
    let answer = target.http()?.ask("/api/definitions", &document).await?;
    let texts = |key: &str| {
        let all = answer.get(key).and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        all.map(|text| printable(text.as_bytes()))
            .collect::<Vec<_>>()
    };
    let mut out = Output::new();
    if target.json {
        out.document(&answer)?;
    } else {
        let made = answer.get("imported").and_then(Value::as_object);
        for (list, count) in made.into_iter().flatten() {
            let one = list.trim_end_matches('s').replace('_', " ");
            out.line(counted(count.as_u64().unwrap_or(0), &one))?;
        }
    }
    out.flush()?;
    for skipped in texts("skipped") {
        note(format_args!("{skipped}"));
    }
    let refused = texts("refused");
    if refused.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "not everything was made: {}",
        refused.join("; ")
    )))
}

fn read(path: &Path) -> Result<Value, Failure> {
    let shown = path.display();
    let mut text = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut text).map(drop)
    } else {
        fs::read(path).map(|bytes| text = bytes)
    };
    read.map_err(|error| Failure::io(format!("read {shown}"), error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::Usage(format!("{shown} is no JSON: {error}")))
}

async fn export(args: ExportArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let document = target.http()?.read("/api/definitions").await?;
    let mut out = Output::new();
    out.document(&document)?;
    out.flush()
}
