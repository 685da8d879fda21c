//! `tanda backup` and `tanda restore`.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;

use crate::{
    failure::Failure,
    output::{Output, printable},
    table::grouped,
    target::TargetArgs,
};

#[derive(Args, Debug)]
#[command(
    after_help = "The broker goes on meanwhile. The file holds everything that was confirmed \
                        when the command began; it is there once it is whole and was read again."
)]
pub(crate) struct BackupArgs {
    /// File to write; it must not exist
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
#[command(after_help = "Then start the broker with this --data-dir.")]
pub(crate) struct RestoreArgs {
    /// Backup to read
    file: PathBuf,
    /// Data directory to make; it must not exist or be empty
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

pub(crate) async fn backup(args: BackupArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let partial = partial_path(&args.file);
    if args.file.exists() {
        return Err(Failure::Usage(format!(
            "{} exists; name a file that does not",
            args.file.display()
        )));
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)
        .map_err(|error| Failure::io(format!("make {}", partial.display()), error))?;
    let written = write(&target.http()?, &mut file, &partial, &args.file).await;
    if written.is_err() {
        // Only what was made here.
        drop(fs::remove_file(&partial));
    }
    let (records, bytes) = written?;
    let mut out = Output::new();
    if target.json {
        let file = args.file.display().to_string();
        out.document(&json!({ "file": file, "records": records, "bytes": bytes }))?;
    } else {
        let text = format!("{} bytes in {}", grouped(bytes), args.file.display());
        out.line(printable(text.as_bytes()))?;
    }
    out.flush()
}

/// Downloads, reads it all again, and gives it its name. Returns records and bytes.
async fn write(
    door: &crate::http_door::HttpDoor,
    file: &mut File,
    partial: &Path,
    path: &Path,
) -> Result<(u64, u64), Failure> {
    let failed = |action: &str| {
        let action = format!("{action} {}", partial.display());
        move |error| Failure::io(action, error)
    };
    let mut bytes = 0;
    door.download("/api/tanda/backup", &mut |piece| {
        bytes += piece.len() as u64;
        file.write_all(piece)
    })
    .await?;
    file.sync_all().map_err(failed("write"))?;
    let again = File::open(partial).map_err(failed("read"))?;
    let checked = tanda_server::check_backup(BufReader::new(again));
    let records = checked.map_err(|error| {
        Failure::Refused(format!(
            "the backup cannot be used: {error}; the broker's log may say why"
        ))
    })?;
    fs::rename(partial, path).map_err(failed("rename"))?;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))
        .and_then(|parent| parent.sync_all())
        .map_err(failed("sync the directory of"))?;
    Ok((records, bytes))
}

fn partial_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

pub(crate) fn restore(args: &RestoreArgs, json: bool) -> Result<(), Failure> {
    let file = File::open(&args.file)
        .map_err(|error| Failure::io(format!("open {}", args.file.display()), error))?;
    let restored = tanda_server::restore(BufReader::new(file), &args.data_dir)
        .map_err(|error| Failure::Refused(error.to_string()))?;
    let mut out = Output::new();
    let dir = args.data_dir.display().to_string();
    if json {
        let (records, bytes) = (restored.records, restored.bytes);
        let taken_at_ms = restored.header.taken_at_ms;
        out.document(&json!({
            "data_dir": dir,
            "records": records,
            "bytes": bytes,
            "taken_at_ms": taken_at_ms,
        }))?;
    } else {
        let text = format!("{} bytes restored in {dir}", grouped(restored.bytes));
        out.line(printable(text.as_bytes()))?;
    }
    out.flush()
}
