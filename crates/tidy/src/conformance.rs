//! What the protocol documents require, and the tests that show it.
//!
//! `docs/conformance/<protocol>.toml` lists the requirements by section, each with the tests that
//! show it; the page beside it is made from that list. A requirement without a test is a finding,
//! and so is a test that does not exist: the page cannot claim what nothing shows.

use crate::Finding;
use crate::tree::SourceFile;
use std::collections::BTreeSet;

/// Folder of the lists and the pages made from them.
pub const FOLDER: &str = "docs/conformance/";

/// The requirements of one protocol document.
#[derive(Debug)]
pub struct Conformance {
    title: String,
    about: String,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    title: String,
    requirements: Vec<Requirement>,
}

#[derive(Debug)]
struct Requirement {
    says: String,
    tests: Vec<String>,
    /// Why no test of one node can show it; `None` = one must.
    cluster: Option<String>,
}

impl Conformance {
    /// Reads a list.
    ///
    /// # Errors
    /// What in it is not as it should be, with the path of the list.
    pub fn parse(path: &str, text: &str) -> Result<Self, Vec<Finding>> {
        let problem = |what: String| vec![Finding::whole(path, what)];
        let table: toml::Table = text.parse().map_err(|error| problem(format!("{error}")))?;
        let string = |table: &toml::Table, key: &str| {
            let value = table.get(key).and_then(toml::Value::as_str);
            value
                .map(str::to_owned)
                .ok_or_else(|| problem(format!("`{key}` is missing or no string near {table:?}")))
        };
        let mut sections = Vec::new();
        for section in tables(&table, "section") {
            let mut requirements = Vec::new();
            for it in tables(section, "requirement") {
                let tests = it.get("tests").and_then(toml::Value::as_array);
                let tests = tests.into_iter().flatten().filter_map(toml::Value::as_str);
                requirements.push(Requirement {
                    says: string(it, "says")?,
                    tests: tests.map(str::to_owned).collect(),
                    cluster: it
                        .get("cluster")
                        .map(|_| string(it, "cluster"))
                        .transpose()?,
                });
            }
            sections.push(Section {
                title: string(section, "title")?,
                requirements,
            });
        }
        Ok(Self {
            title: string(&table, "title")?,
            about: string(&table, "about")?,
            sections,
        })
    }

    /// Requirements that nothing shows, and tests that are not there.
    #[must_use]
    pub fn gaps(&self, path: &str, files: &[SourceFile]) -> Vec<Finding> {
        let known = tests(files);
        let mut findings = Vec::new();
        let mut said = BTreeSet::new();
        for section in &self.sections {
            if section.requirements.is_empty() {
                let what = format!("section `{}` lists no requirement", section.title);
                findings.push(Finding::whole(path, what));
            }
            for it in &section.requirements {
                let mut note = |what| findings.push(Finding::whole(path, what));
                if !said.insert((&section.title, &it.says)) {
                    note(format!("`{}` is listed twice", it.says));
                }
                if it.tests.is_empty() && it.cluster.is_none() {
                    note(format!("{}: no test shows `{}`", section.title, it.says));
                }
                for test in it.tests.iter().filter(|test| !known.contains(*test)) {
                    note(format!("{}: there is no test `{test}`", section.title));
                }
            }
        }
        findings
    }

    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let all = || self.sections.iter().flat_map(|it| &it.requirements);
        let cluster = all().filter(|it| it.cluster.is_some()).count();
        let mut page = format!(
            "# {}\n\n{}\n\n{} requirements; {cluster} of them need a cluster and are marked so. A \
             test is named by crate, file and function.\n",
            self.title,
            self.about,
            all().count()
        );
        for section in &self.sections {
            page += &format!("\n## {}\n\n", section.title);
            page += "| requirement | shown by |\n|---|---|\n";
            for it in &section.requirements {
                let tests = it.tests.iter().map(|test| format!("`{test}`"));
                let cluster = it.cluster.iter();
                let cluster = cluster.map(|why| format!("needs a cluster: {why}"));
                let shown: Vec<String> = tests.chain(cluster).collect();
                let says = it.says.replace('|', "\\|");
                page += &format!("| {says} | {} |\n", shown.join(", "));
            }
        }
        page
    }
}

fn tables<'t>(table: &'t toml::Table, key: &str) -> impl Iterator<Item = &'t toml::Table> {
    let list = table.get(key).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_table)
}

/// Every test function as `crate::file::function`; `mod.rs` and `main.rs` go by their folder.
fn tests(files: &[SourceFile]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        let Some(text) = file.text_of(&[".rs"]) else {
            continue;
        };
        let parts: Vec<&str> = file.path.split('/').collect();
        let ["crates", owner, .., folder, name] = parts.as_slice() else {
            continue;
        };
        let stem = match name.trim_end_matches(".rs") {
            "mod" | "main" => folder,
            stem => stem,
        };
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            }
            let function = line
                .strip_prefix("async ")
                .unwrap_or(line)
                .strip_prefix("fn ");
            if let Some((name, _)) = function.and_then(|it| it.split_once('(')) {
                if is_test {
                    names.insert(format!("{owner}::{stem}::{name}"));
                }
                is_test = false;
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        title = "A"
        about = "B."
        [[section]]
        title = "S"
        [[section.requirement]]
        says = "shown"
        tests = ["wire::frames::it_holds"]
        [[section.requirement]]
        says = "not shown"
        [[section.requirement]]
        says = "gone"
        tests = ["wire::frames::not_there"]
        [[section.requirement]]
        says = "later"
        cluster = "it is about two nodes"
    "#;

    #[test]
    fn what_nothing_shows_and_what_is_not_there_are_findings() {
        let test = SourceFile::new(
            "crates/wire/tests/frames.rs",
            "#[test]\nfn it_holds() {}\nfn not_there() {}\n",
        );
        let list = Conformance::parse("x", LIST).unwrap();
        let gaps: Vec<String> = list
            .gaps("x", &[test])
            .iter()
            .map(|it| it.what.clone())
            .collect();
        assert_eq!(
            gaps,
            [
                "S: no test shows `not shown`",
                "S: there is no test `wire::frames::not_there`"
            ]
        );
        let page = list.page();
        assert!(
            page.contains("| shown | `wire::frames::it_holds` |"),
            "{page}"
        );
        assert!(page.contains("4 requirements; 1 of them"), "{page}");
    }
}
