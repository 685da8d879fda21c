//! Dead files and names that say nothing.
//!
//! Owns the walk from the roots of cargo's targets along `mod x;`, `#[path]` and `include!`. It
//! reads text, not syntax: a file that only a macro declares is reported, and should not exist.

use crate::Finding;
use crate::tree::{SourceFile, resolve};
use crate::workspace::Package;
use std::collections::{BTreeMap, BTreeSet};

/// Module names that hide what a file is about. Test folders may share code under such a name.
const EMPTY_NAMES: &[&str] = &[
    "utils", "util", "common", "types", "helpers", "helper", "manager", "misc", "shared",
];

/// Folders with a workspace of their own.
const OTHER_WORKSPACES: [&str; 2] = ["fuzz/", "tests/clients/lapin/"];

/// Every Rust file outside of the other workspaces is compiled by some target.
#[must_use]
pub fn dead_files(packages: &[Package], files: &[SourceFile]) -> Vec<Finding> {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .filter_map(|file| Some((file.path.as_str(), file.text_of(&[".rs"])?)))
        .collect();
    let roots: BTreeSet<String> = packages
        .iter()
        .flat_map(|package| package.roots.iter().cloned())
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> = roots.iter().cloned().collect();
    while let Some(path) = waiting.pop() {
        let Some(text) = texts.get(path.as_str()) else {
            continue;
        };
        if reached.insert(path.clone()) {
            waiting.extend(declared(&path, text, roots.contains(&path)));
        }
    }
    let elsewhere = |path: &str| {
        OTHER_WORKSPACES
            .iter()
            .any(|folder| path.starts_with(folder))
    };
    let is_dead = |path: &&str| !reached.contains(*path) && !elsewhere(path);
    let dead = texts.keys().copied().filter(is_dead);
    dead.map(|path| Finding::whole(path, "no target compiles this file; declare or remove it"))
        .collect()
}

/// The files that `text` may declare: for each module both places that Rust looks at.
fn declared(path: &str, text: &str, is_root: bool) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let own_folder = is_root || path.ends_with("/mod.rs");
    let mut found = Vec::new();
    let mut path_attribute = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path_attribute = rest.split('"').next();
        } else if let Some(name) = module_name(line) {
            if let Some(relative) = path_attribute.take() {
                found.extend(resolve(path, relative));
            } else {
                let base = if own_folder {
                    path
                } else {
                    &format!("{stem}/")
                };
                found.extend(resolve(base, &format!("{name}.rs")));
                found.extend(resolve(base, &format!("{name}/mod.rs")));
            }
        }
        if let Some((_, rest)) = line.split_once("include!(\"") {
            let relative = rest.split('"').next().unwrap_or_default();
            found.extend(resolve(path, relative));
        }
    }
    found
}

fn module_name(line: &str) -> Option<&str> {
    let item = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let name = item
        .trim_start()
        .strip_prefix("mod ")?
        .strip_suffix(';')?
        .trim();
    Some(name.strip_prefix("r#").unwrap_or(name))
}

/// No module is called `utils` or the like.
#[must_use]
pub fn empty_names(files: &[SourceFile]) -> Vec<Finding> {
    let sources = files.iter().filter(|file| file.text_of(&[".rs"]).is_some());
    let ours = sources.filter(|file| !file.path.contains("/tests/"));
    ours.filter(|file| {
        let stem = file
            .path
            .strip_suffix("/mod.rs")
            .or_else(|| file.path.strip_suffix(".rs"));
        let name = stem.and_then(|stem| stem.rsplit('/').next());
        name.is_some_and(|name| EMPTY_NAMES.contains(&name))
    })
    .map(|file| {
        Finding::whole(
            &file.path,
            "the name says nothing; name it after what it owns",
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_reached_by_any_declaration_are_alive_and_others_are_found() {
        let packages = [Package {
            name: "tanda-x".into(),
            folder: "crates/x".into(),
            normal: Vec::new(),
            roots: vec!["crates/x/src/lib.rs".into(), "crates/x/tests/it.rs".into()],
        }];
        let root = "pub mod a;\npub(crate) mod b;\n#[path = \"odd/place.rs\"]\nmod c;\n";
        let files = [
            SourceFile::new("crates/x/src/lib.rs", root),
            SourceFile::new("crates/x/src/a.rs", "mod deep;\n"),
            SourceFile::new("crates/x/src/a/deep.rs", "include!(\"table.rs\");\n"),
            SourceFile::new("crates/x/src/a/table.rs", ""),
            SourceFile::new("crates/x/src/b/mod.rs", "#[cfg(test)]\nmod tests;\n"),
            SourceFile::new("crates/x/src/b/tests.rs", ""),
            SourceFile::new("crates/x/src/odd/place.rs", ""),
            SourceFile::new("crates/x/src/deep.rs", ""),
            SourceFile::new("crates/x/src/dead.rs", "mod also_dead;\n"),
            SourceFile::new("crates/x/tests/it.rs", ""),
            SourceFile::new("fuzz/fuzz_targets/f.rs", ""),
        ];
        let dead: Vec<String> = dead_files(&packages, &files)
            .into_iter()
            .map(|found| found.path)
            .collect();
        assert_eq!(dead, ["crates/x/src/dead.rs", "crates/x/src/deep.rs"]);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let files = [
            SourceFile::new("crates/x/src/utils.rs", ""),
            SourceFile::new("crates/x/src/common/mod.rs", ""),
            SourceFile::new("crates/x/src/queue.rs", ""),
            SourceFile::new("crates/x/tests/common/mod.rs", ""),
        ];
        assert_eq!(empty_names(&files).len(), 2);
    }
}
