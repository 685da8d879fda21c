//! Documents that point at what exists.
//!
//! Owns the link rule and the index of decisions. It checks links between files of the repository;
//! addresses of the web are not asked.

use crate::Finding;
use crate::tree::{SourceFile, resolve};
use std::collections::BTreeSet;

/// Folder of the decisions.
const ADR_FOLDER: &str = "docs/adr/";

/// Every relative link of a Markdown file leads to a file or folder of the repository.
#[must_use]
pub fn broken_links(files: &[SourceFile]) -> Vec<Finding> {
    let known = paths_and_folders(files);
    let mut findings = Vec::new();
    for file in files {
        let Some(text) = file.text_of(&[".md"]) else {
            continue;
        };
        for (index, target) in links(text) {
            let is_address = target.contains("://") || target.starts_with("mailto:");
            let path = target.split('#').next().unwrap_or_default();
            if is_address || path.is_empty() {
                continue;
            }
            if resolve(&file.path, path).is_none_or(|path| !known.contains(&path)) {
                let what = format!("the link `{target}` leads nowhere");
                findings.push(Finding::at(&file.path, index + 1, what));
            }
        }
    }
    findings
}

fn paths_and_folders(files: &[SourceFile]) -> BTreeSet<String> {
    let mut known = BTreeSet::from([String::new()]);
    for file in files {
        known.insert(file.path.clone());
        let folders = file
            .path
            .match_indices('/')
            .filter_map(|(end, _)| file.path.get(..end));
        known.extend(folders.map(String::from));
    }
    known
}

/// Targets of `](target)` outside fenced code, each with the index of its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (index, target)));
    }
    found
}

/// Every decision stands in `docs/adr/README.md`, and no two have one number.
#[must_use]
pub fn adr_index(files: &[SourceFile]) -> Vec<Finding> {
    let index_path = format!("{ADR_FOLDER}README.md");
    let index = files.iter().find(|file| file.path == index_path);
    let index = index
        .and_then(|file| file.text.as_deref())
        .unwrap_or_default();
    let mut findings = Vec::new();
    let mut numbers = BTreeSet::new();
    for file in files {
        let Some(name) = file.path.strip_prefix(ADR_FOLDER) else {
            continue;
        };
        if name == "README.md" {
            continue;
        }
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            findings.push(Finding::whole(
                &file.path,
                "name it `NNNN-what-was-decided.md`",
            ));
        } else if !numbers.insert(number) {
            findings.push(Finding::whole(
                &file.path,
                format!("the number {number} is taken"),
            ));
        }
        if !links(index).iter().any(|(_, target)| *target == name) {
            findings.push(Finding::whole(
                &file.path,
                format!("{index_path} does not link to it"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() {
        let text = "[a](adr/0001-x.md#why) [b](adr) [c](https://example.org/x) [d](#here)\n\
                    ```\n[in code](nowhere.md)\n```\n[gone](gone.md)\n";
        let files = [
            SourceFile::new("docs/README.md", text),
            SourceFile::new("docs/adr/0001-x.md", ""),
        ];
        let findings = broken_links(&files);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].line, findings[0].path.as_str()),
            (5, "docs/README.md")
        );
    }

    #[test]
    fn a_decision_that_is_not_listed_is_found() {
        let files = [
            SourceFile::new(
                "docs/adr/README.md",
                "[one](0001-one.md) [same](0001-same.md) [x](x.md)",
            ),
            SourceFile::new("docs/adr/0001-one.md", ""),
            SourceFile::new("docs/adr/0001-same.md", ""),
            SourceFile::new("docs/adr/0002-two.md", ""),
            SourceFile::new("docs/adr/x.md", ""),
        ];
        let findings = adr_index(&files);
        let paths: Vec<&str> = findings.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "docs/adr/0001-same.md",
                "docs/adr/0002-two.md",
                "docs/adr/x.md"
            ]
        );
    }
}
