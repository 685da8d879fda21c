//! `tanda repair show`.

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use serde_json::{Value, json};
use tanda_server::{
    ReadOnlyDisk,
    rescue::{FileReport, Survey, record_kind},
};

use super::{DataDirArgs, failure, fault_json};
use crate::{
    failure::Failure,
    output::{Output, printable},
    table::{Table, counted, grouped},
};

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    data_dir: DataDirArgs,
    /// Also list every batch
    #[arg(long)]
    batches: bool,
    /// Answer in JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Records of each kind, and their bytes.
type Kinds = BTreeMap<String, (u64, u64)>;

pub(super) fn run(args: &ShowArgs, json: bool) -> Result<ExitCode, Failure> {
    let dir = args.data_dir.open()?;
    let survey = dir.survey().map_err(|error| failure(&error))?;
    let mut kinds = Kinds::new();
    survey.replay(true, &mut |_, record| {
        let (count, bytes) = kinds.entry(record_kind(record)).or_default();
        *count += 1;
        *bytes += record.len() as u64;
    });
    let mut out = Output::new();
    if json || args.json {
        out.document(&document(&survey, &kinds, args.batches))?;
    } else {
        if let Some(problem) = dir.identity_problem() {
            out.line(printable(problem.as_bytes()))?;
        }
        print(&mut out, &survey, &kinds, args.batches)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print(
    out: &mut Output,
    survey: &Survey<ReadOnlyDisk>,
    kinds: &Kinds,
    batches: bool,
) -> Result<(), Failure> {
    out.line(format_args!(
        "log {:032x}, segments of {} bytes, replayed from {}\n",
        survey.log_id(),
        grouped(survey.segment_bytes()),
        survey.start()
    ))?;
    let texts = ["FILE", "STATE", "POSITIONS"];
    let mut table = Table::new(&texts, &["EPOCH", "BATCHES", "RECORDS", "BYTES"]);
    for file in survey.files() {
        let segment = file.state.segment();
        let records = file.batches.iter().map(|it| u64::from(it.records)).sum();
        table.row([
            printable(file.name.as_bytes()),
            state(file),
            segment.map_or_else(String::new, |it| {
                let last = file.batches.last().map_or(it.base, |batch| batch.end);
                format!("{:#x} to {:#x}", it.base, it.end.unwrap_or(last))
            }),
            segment.map_or_else(String::new, |it| it.epoch.to_string()),
            grouped(file.batches.len() as u64),
            grouped(records),
            grouped(file.bytes),
        ]);
    }
    out.line(table)?;
    let mut table = Table::new(&["\nRECORDS"], &["COUNT", "BYTES"]);
    for (kind, (count, bytes)) in kinds {
        table.row([kind.clone(), grouped(*count), grouped(*bytes)]);
    }
    out.line(table)?;
    if batches {
        print_batches(out, survey.files())?;
    }
    let faults = survey.faults();
    if !faults.is_empty() {
        out.line(format_args!("\n{}:", counted(faults.len() as u64, "fault")))?;
    }
    for fault in faults {
        out.line(printable(fault.to_string().as_bytes()))?;
    }
    Ok(())
}

fn state(file: &FileReport) -> String {
    let is_guessed = file.state.segment().is_some_and(|it| it.is_guessed);
    let lost = if is_guessed { ", header lost" } else { "" };
    format!("{}{lost}", file.state.name())
}

fn print_batches(out: &mut Output, files: &[FileReport]) -> Result<(), Failure> {
    let mut table = Table::new(&["\nBATCH IN", "POSITION"], &["OFFSET", "BYTES", "RECORDS"]);
    for file in files {
        let base = file.state.segment().map_or(0, |segment| segment.base);
        for batch in &file.batches {
            table.row([
                printable(file.name.as_bytes()),
                format!("{:#x}", batch.position),
                grouped(batch.position - base),
                grouped(batch.end - batch.position),
                grouped(u64::from(batch.records)),
            ]);
        }
    }
    out.line(table)
}

fn document(survey: &Survey<ReadOnlyDisk>, kinds: &Kinds, batches: bool) -> Value {
    let files: Vec<Value> = survey
        .files()
        .iter()
        .map(|it| file_json(it, batches))
        .collect();
    let kinds: serde_json::Map<String, Value> = kinds
        .iter()
        .map(|(kind, (count, bytes))| (kind.clone(), json!({ "count": count, "bytes": bytes })))
        .collect();
    json!({
        "log_id": format!("{:032x}", survey.log_id()),
        "segment_bytes": survey.segment_bytes(),
        "start": survey.start().0,
        "files": files,
        "records": kinds,
        "faults": survey.faults().iter().map(fault_json).collect::<Vec<_>>(),
    })
}

fn file_json(file: &FileReport, batches: bool) -> Value {
    let segment = file.state.segment().map(|it| {
        json!({
            "index": it.index,
            "windows": it.windows,
            "epoch": it.epoch,
            "base": it.base,
            "previous_end": it.previous_end,
            "start": it.start,
            "end": it.end,
            "header_lost": it.is_guessed,
        })
    });
    let list = file.batches.iter().map(|batch| {
        json!({
            "position": batch.position,
            "end": batch.end,
            "records": batch.records,
            "synced": batch.synced,
            "start": batch.start,
        })
    });
    let mut value = json!({
        "name": file.name,
        "bytes": file.bytes,
        "state": file.state.name(),
        "segment": segment,
        "batch_count": file.batches.len(),
    });
    if batches && let Some(object) = value.as_object_mut() {
        object.insert("batches".to_owned(), list.collect());
    }
    value
}
