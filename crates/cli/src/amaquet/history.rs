//! Where the lines that were typed are kept.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file of this user, which nobody else can read: made when it is not there. `None` where no
/// place for it is known.
///
/// # Errors
/// When it cannot be made.
pub(super) fn file() -> io::Result<Option<PathBuf>> {
    let Some(folder) = folder() else {
        return Ok(None);
    };
    prepare(&folder).map(Some)
}

/// As the XDG Base Directory Specification says: state that outlives restarts.
fn folder() -> Option<PathBuf> {
    let absolute = |name| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|it| it.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("tanda"))
}

fn prepare(folder: &Path) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let path = folder.join("amaquet_history");
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)?;
    // One that was there may be open to others.
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_read_it() {
        let folder = env::temp_dir().join(format!("tanda-history-{}", std::process::id()));
        let path = prepare(&folder.join("state/tanda")).unwrap();
        fs::write(&path, "a line\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(prepare(&folder.join("state/tanda")).unwrap(), path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a line\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&folder.join("state/tanda")), 0o700);
        fs::remove_dir_all(&folder).unwrap();
    }
}
