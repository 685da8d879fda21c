//! The files of the repository.
//!
//! Owns the walk and what it leaves out (build output, version control, data directories). It
//! does not ask git, so that the tests run from a plain copy of the sources too.

use std::fs;
use std::io;
use std::path::Path;

/// One file of the repository.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Path from the root of the repository, with `/` between the parts.
    pub path: String,
    /// The text; `None` for a file that is not text or not of a kind that the rules read.
    pub text: Option<String>,
}

impl SourceFile {
    /// A text file; tests of the rules make their samples with it.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: Some(text.to_owned()),
        }
    }

    /// The text when the file name ends with one of `endings`.
    #[must_use]
    pub fn text_of(&self, endings: &[&str]) -> Option<&str> {
        let wanted = endings.iter().any(|ending| self.path.ends_with(ending));
        if wanted { self.text.as_deref() } else { None }
    }
}

/// What the rules read; other files are known by their path only.
pub const TEXT_ENDINGS: &[&str] = &[
    ".rs", ".md", ".toml", ".sh", ".py", ".js", ".css", ".html", ".txt", "Makefile", ".ci/run",
];

/// Folders that hold no source, wherever they stand.
const SKIPPED_FOLDERS: &[&str] = &[
    ".git",
    "target",
    "tanda-data",
    "node_modules",
    "__pycache__",
];

/// Reads every file below `root`, ordered by path.
///
/// # Errors
/// The first folder or file that cannot be read.
pub fn read(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    read_folder(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !is_skipped(&name, &entry.path()) {
                read_folder(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() {
            let text = if TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending)) {
                String::from_utf8(fs::read(entry.path())?).ok()
            } else {
                None
            };
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

/// Cargo marks its output with `CACHEDIR.TAG`, under whatever name `CARGO_TARGET_DIR` gave it.
fn is_skipped(name: &str, folder: &Path) -> bool {
    let hidden = name.starts_with('.') && name != ".ci";
    hidden || SKIPPED_FOLDERS.contains(&name) || folder.join("CACHEDIR.TAG").exists()
}

/// Resolves `relative` against the folder of `from`; `None` when it leaves the repository.
#[must_use]
pub fn resolve(from: &str, relative: &str) -> Option<String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_follows_dots_and_refuses_to_leave() {
        assert_eq!(
            resolve("docs/adr/README.md", "../README.md").as_deref(),
            Some("docs/README.md")
        );
        assert_eq!(resolve("README.md", "./docs/").as_deref(), Some("docs"));
        assert_eq!(resolve("docs/README.md", "../../x"), None);
    }

    #[test]
    fn read_finds_this_file_and_no_build_output() {
        let files = read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let this = files
            .iter()
            .find(|file| file.path == "src/tree.rs")
            .unwrap();
        assert!(
            this.text_of(&[".rs"])
                .unwrap()
                .contains("fn read_finds_this_file")
        );
        assert_eq!(this.text_of(&[".md"]), None);
        assert!(files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
