//! Manifests and lint settings.
//!
//! Owns the rules that every crate inherits the workspace lints, and that the crates below
//! `server` carry one and the same `clippy.toml`, with at least the thresholds of the root.

use crate::Finding;
use crate::layers::is_deterministic;
use crate::tree::SourceFile;
use crate::workspace::Package;

/// `[lints] workspace = true` stands in the manifest of every crate.
#[must_use]
pub fn inherits_lints(packages: &[Package], files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let path = format!("{}/Cargo.toml", package.folder);
        let text = text_at(files, &path).unwrap_or_default();
        let section = text
            .lines()
            .skip_while(|line| line.trim() != "[lints]")
            .skip(1);
        let mut lines = section.take_while(|line| !line.starts_with('['));
        if !lines.any(|line| line.replace(' ', "") == "workspace=true") {
            findings.push(Finding::whole(
                &path,
                "does not inherit the lints: [lints] workspace",
            ));
        }
    }
    findings
}

/// Each deterministic crate has the same `clippy.toml`, which repeats the root's settings.
#[must_use]
pub fn clippy_settings(packages: &[Package], files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = text_at(files, "clippy.toml").unwrap_or_default();
    let mut first: Option<(String, &str)> = None;
    for package in packages
        .iter()
        .filter(|package| is_deterministic(&package.name))
    {
        let path = format!("{}/clippy.toml", package.folder);
        let Some(text) = text_at(files, &path) else {
            findings.push(Finding::whole(
                &path,
                "missing; copy it from another crate below server",
            ));
            continue;
        };
        for setting in root
            .lines()
            .filter(|line| line.contains('=') && !line.starts_with('#'))
        {
            if !text.lines().any(|line| line == setting) {
                findings.push(Finding::whole(
                    &path,
                    format!("does not repeat `{setting}`"),
                ));
            }
        }
        match &first {
            None => first = Some((path, text)),
            Some((other, same)) if *same != text => {
                findings.push(Finding::whole(&path, format!("differs from {other}")));
            }
            Some(_) => {}
        }
    }
    findings
}

fn text_at<'f>(files: &'f [SourceFile], path: &str) -> Option<&'f str> {
    files.iter().find(|file| file.path == path)?.text.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<Package> {
        let package = |name: &str| Package {
            name: name.into(),
            folder: name.replace("tanda-", "crates/"),
            normal: Vec::new(),
            roots: Vec::new(),
        };
        vec![package("tanda-wire"), package("tanda-wal")]
    }

    #[test]
    fn a_crate_without_lints_is_found() {
        let files = [
            SourceFile::new("crates/wire/Cargo.toml", "[lints]\nworkspace = true\n"),
            SourceFile::new(
                "crates/wal/Cargo.toml",
                "[lints]\n\n[features]\nworkspace = true\n",
            ),
        ];
        let findings = inherits_lints(&packages(), &files);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/wal/Cargo.toml");
    }

    #[test]
    fn clippy_settings_that_are_missing_or_differ_are_found() {
        let good = "lines = 70\nmethods = []\n";
        let files = |wal: &str| {
            vec![
                SourceFile::new("clippy.toml", "# root\nlines = 70\n"),
                SourceFile::new("crates/wire/clippy.toml", good),
                SourceFile::new("crates/wal/clippy.toml", wal),
            ]
        };
        assert_eq!(clippy_settings(&packages(), &files(good)), []);
        let differs = clippy_settings(&packages(), &files("lines = 70\n"));
        assert!(
            differs[0]
                .what
                .contains("differs from crates/wire/clippy.toml")
        );
        let weaker = clippy_settings(&packages(), &files("lines = 90\nmethods = []\n"));
        assert!(weaker[0].what.contains("does not repeat `lines = 70`"));
        let missing = clippy_settings(&packages(), &files(good)[..2]);
        assert!(missing[0].what.contains("missing"));
    }
}
