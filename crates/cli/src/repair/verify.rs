//! `tanda repair verify`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tanda_server::{Verdict, rescue::Salvaged};

use super::{DataDirArgs, failure, fault_json};
use crate::{
    failure::Failure,
    output::{Output, printable},
    table::{counted, grouped},
};

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    data_dir: DataDirArgs,
    /// Answer in JSON, for programs
    #[arg(long)]
    json: bool,
}

/// The exit code is 1 when anything is wrong.
pub(super) fn run(args: &VerifyArgs, json: bool) -> Result<ExitCode, Failure> {
    let dir = args.data_dir.open()?;
    let verdict = dir.verify().map_err(|error| failure(&error))?;
    let mut out = Output::new();
    if json || args.json {
        out.document(&document(&verdict))?;
    } else {
        print(&mut out, &verdict)?;
    }
    out.flush()?;
    Ok(if verdict.is_sound() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(out: &mut Output, verdict: &Verdict) -> Result<(), Failure> {
    let found = &verdict.found;
    let mut line = |text: String| out.line(printable(text.as_bytes()));
    if verdict.is_sound() {
        return line(format!(
            "sound: {} with {} bytes can be read",
            counted(found.messages, "message"),
            grouped(found.bytes)
        ));
    }
    match &verdict.refusal {
        Some(refusal) => line(format!("a broker would not start: {refusal}"))?,
        None => line("a broker would start, but something is wrong".to_owned())?,
    }
    if let Some(problem) = &verdict.identity {
        line(problem.clone())?;
    }
    for text in losses(found) {
        line(text)?;
    }
    line(format!(
        "{} with {} bytes can be saved: tanda repair salvage --data-dir DIR --to NEW_DIR",
        counted(found.messages, "message"),
        grouped(found.bytes)
    ))
}

/// What cannot be read, a line each.
pub(super) fn losses(found: &Salvaged) -> Vec<String> {
    let mut lines: Vec<String> = found.faults.iter().map(ToString::to_string).collect();
    let skipped = found.skipped.iter();
    lines.extend(skipped.map(|it| format!("passed over: {it}")));
    if found.lost_contents > 0 {
        let count = counted(found.lost_contents, "message");
        lines.push(format!("{count} known of, but the content cannot be read"));
    }
    if found.lost_pages > 0 {
        let count = counted(found.lost_pages, "message");
        lines.push(format!("{count} in pages of the index that cannot be read"));
    }
    let lost = found.lost_queues.iter();
    lines.extend(
        lost.map(|it| format!("a queue's name and policies are lost; its messages are in {it}")),
    );
    lines
}

fn document(verdict: &Verdict) -> Value {
    let found = &verdict.found;
    json!({
        "sound": verdict.is_sound(),
        "refusal": verdict.refusal,
        "identity": verdict.identity,
        "messages": found.messages,
        "bytes": found.bytes,
        "lost_contents": found.lost_contents,
        "lost_pages": found.lost_pages,
        "lost_queues": found.lost_queues,
        "skipped": found.skipped.iter().map(fault_json).collect::<Vec<_>>(),
        "faults": found.faults.iter().map(fault_json).collect::<Vec<_>>(),
    })
}
