//! The file that is loaded at every start.

use std::{fs, path::Path};

use super::{load, read};
use crate::{ask::Asker, users::Authenticator};

/// Makes what a file defines.
///
/// # Errors
/// What is wrong with it, or what of it the broker refused.
pub(crate) async fn load_file(
    path: &Path,
    (asker, authenticator): (&Asker, &Authenticator),
) -> Result<(), String> {
    // Nobody is served yet who would wait for the disk.
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let definitions = read(&text).map_err(|mistakes| mistakes.to_string())?;
    let loaded = load(definitions, asker, authenticator).await;
    let loaded = loaded.map_err(|error| format!("the broker does not answer ({error:?})"))?;
    for skipped in &loaded.skipped {
        tracing::warn!("load_definitions: {skipped}");
    }
    if !loaded.refused.is_empty() {
        return Err(loaded.refused.join("; "));
    }
    tracing::info!(file = %path.display(), "loaded the definitions");
    Ok(())
}
