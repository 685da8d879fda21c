//! The Lua scripts of a queue, read from files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde_json::json;
use tanda_client::admin::{QueueChanges, QueueSettings, ScriptFailure};
use tanda_client::{ErrorCode, RequestError};

use crate::{failure::Failure, target::Target};

/// The scripts of a new queue, and what is fixed about them.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewScriptArgs {
    /// Lua file with the function on_enqueue, which classifies new messages
    #[arg(long, value_name = "FILE")]
    on_enqueue: Option<PathBuf>,
    /// Lua file with the function on_failure, which decides about failed deliveries
    #[arg(long, value_name = "FILE")]
    on_failure: Option<PathBuf>,
    /// What becomes of a message on which on_enqueue fails. Fixed at creation [default: reject]
    #[arg(long, value_enum)]
    script_failure: Option<OnScriptFailure>,
    /// Failed tries after which a parked message goes to the dead-letter queue; 0 = never
    #[arg(long, value_name = "N")]
    park_dead_letter_after: Option<u32>,
}

/// Changes of the scripts of a queue.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptChangeArgs {
    /// Lua file with the function on_enqueue; parked messages meet it again
    #[arg(long, value_name = "FILE")]
    on_enqueue: Option<PathBuf>,
    /// Classify no more; parked messages keep what their senders said
    #[arg(long, conflicts_with = "on_enqueue")]
    remove_on_enqueue: bool,
    /// Lua file with the function on_failure
    #[arg(long, value_name = "FILE")]
    on_failure: Option<PathBuf>,
    /// Leave failed deliveries to the retry policy
    #[arg(long, conflicts_with = "on_failure")]
    remove_on_failure: bool,
    /// Failed tries after which a parked message goes to the dead-letter queue; 0 = never
    #[arg(long, value_name = "N")]
    park_dead_letter_after: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnScriptFailure {
    /// The sender gets an error and nothing is stored.
    Reject,
    /// It is stored, and waits until the script can classify it.
    Park,
}

impl NewScriptArgs {
    /// What is in the files.
    pub(super) fn texts(&self) -> [Option<String>; 2] {
        texts([&self.on_enqueue, &self.on_failure])
    }

    /// Reads the files.
    pub(super) fn put_into(&self, mut settings: QueueSettings) -> Result<QueueSettings, Failure> {
        if let Some(path) = &self.on_enqueue {
            settings = settings.on_enqueue(read(path)?);
        }
        if let Some(path) = &self.on_failure {
            settings = settings.on_failure(read(path)?);
        }
        if let Some(policy) = self.script_failure {
            settings = settings.script_failure(match policy {
                OnScriptFailure::Reject => ScriptFailure::Reject,
                OnScriptFailure::Park => ScriptFailure::Park,
            });
        }
        if let Some(failures) = self.park_dead_letter_after {
            settings = settings.park_dead_letter_after(failures);
        }
        Ok(settings)
    }
}

impl ScriptChangeArgs {
    /// What is in the files.
    pub(super) fn texts(&self) -> [Option<String>; 2] {
        texts([&self.on_enqueue, &self.on_failure])
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the files.
    pub(super) fn put_into(&self, mut changes: QueueChanges) -> Result<QueueChanges, Failure> {
        if let Some(path) = &self.on_enqueue {
            changes = changes.on_enqueue(read(path)?);
        }
        if self.remove_on_enqueue {
            changes = changes.remove_on_enqueue();
        }
        if let Some(path) = &self.on_failure {
            changes = changes.on_failure(read(path)?);
        }
        if self.remove_on_failure {
            changes = changes.remove_on_failure();
        }
        if let Some(failures) = self.park_dead_letter_after {
            changes = changes.park_dead_letter_after(failures);
        }
        Ok(changes)
    }
}

/// What became of a request that gives a queue these scripts. When one cannot be used, Fila says
/// only that; the HTTP door, if it is there, says why.
pub(super) async fn failed(
    action: String,
    error: &RequestError,
    (target, scripts): (&Target, [Option<String>; 2]),
) -> Failure {
    let failure = Failure::request(action, error);
    if error.code() != Some(ErrorCode::LuaCompilationError) {
        return failure;
    }
    let [on_enqueue, on_failure] = scripts;
    let scripts = json!({"on_enqueue": on_enqueue, "on_failure": on_failure});
    let problem = match target.http() {
        Ok(door) => door.ask("/api/tanda/scripts/check", &scripts).await.ok(),
        Err(_) => None,
    };
    let problem = problem.as_ref().and_then(|it| it.get("problem")?.as_str());
    match (failure, problem) {
        (Failure::Refused(text), Some(problem)) => Failure::Refused(format!("{text}\n{problem}")),
        (failure, _) => failure,
    }
}

/// The texts of scripts that are given, for [`failed`].
fn texts(paths: [&Option<PathBuf>; 2]) -> [Option<String>; 2] {
    paths.map(|path| path.as_deref().and_then(|path| read(path).ok()))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| Failure::io(format!("read the script in {}", path.display()), error))
}
