//! What the protocol documents require, and the tests that show it.
//!
//! `docs/conformance/<protocol>.toml` lists the requirements by section, each with the tests that
//! show it; the page beside it is made from that list. A requirement without a test is a finding,
//! and so is a test that does not exist: the page cannot claim what nothing shows. What the broker
//! does not do is listed as `missing`, and the page begins with it.

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
    /// What the broker does instead; `None` = it does this.
    missing: Option<String>,
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
                let reason = |key| it.get(key).map(|_| string(it, key)).transpose();
                requirements.push(Requirement {
                    says: string(it, "says")?,
                    tests: tests.map(str::to_owned).collect(),
                    cluster: reason("cluster")?,
                    missing: reason("missing")?,
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
                if it.tests.is_empty() && it.cluster.is_none() && it.missing.is_none() {
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
        let needs = match cluster {
            0 => String::new(),
            some => format!("; {some} of them need a cluster and are marked so"),
        };
        let mut page = format!(
            "# {}\n\n{}\n\n{} requirements{needs}. A test is named by crate, file and function, \
             some with the folder of their file.\n",
            self.title,
            self.about,
            all().count()
        );
        page += &self.missing();
        for section in &self.sections {
            page += &format!("\n## {}\n\n", section.title);
            page += "| requirement | shown by |\n|---|---|\n";
            for it in &section.requirements {
                page += &it.row();
            }
        }
        page
    }

    /// What the broker does not do.
    fn missing(&self) -> String {
        let mut rows = String::new();
        let mut count = 0;
        for section in &self.sections {
            for it in &section.requirements {
                if let Some(missing) = &it.missing {
                    count += 1;
                    rows += &format!("- {}: {}. Instead: {missing}\n", section.title, it.says);
                }
            }
        }
        match count {
            0 => String::new(),
            1 => format!("\n**1 of them is not met:**\n\n{rows}"),
            _ => format!("\n**{count} of them are not met:**\n\n{rows}"),
        }
    }
}

impl Requirement {
    fn row(&self) -> String {
        let tests = self.tests.iter().map(|test| format!("`{test}`"));
        let cluster = self.cluster.iter();
        let cluster = cluster.map(|why| format!("needs a cluster: {why}"));
        let missing = self.missing.iter();
        let missing = missing.map(|instead| format!("**not met**: {instead}"));
        let shown: Vec<String> = missing.chain(tests).chain(cluster).collect();
        let says = self.says.replace('|', "\\|");
        format!("| {says} | {} |\n", shown.join(", ").replace('|', "\\|"))
    }
}

fn tables<'t>(table: &'t toml::Table, key: &str) -> impl Iterator<Item = &'t toml::Table> {
    let list = table.get(key).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_table)
}

/// Every test function as `crate::file::function`, and with the folders of its file as
/// `crate::folder::file::function`; `mod.rs` and `main.rs` go by their folder. Tests that a
/// `checks!` list makes are `crate::file::list::function`.
fn tests(files: &[SourceFile]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        let Some(text) = file.text_of(&[".rs"]) else {
            continue;
        };
        let parts: Vec<&str> = file.path.split('/').collect();
        let ["crates", owner, folders @ .., folder, name] = parts.as_slice() else {
            continue;
        };
        let stem = match name.trim_end_matches(".rs") {
            "mod" | "main" => folder,
            stem => stem,
        };
        let mut full = vec![*owner];
        let folders = folders.iter().chain([folder]);
        full.extend(folders.filter(|it| !["src", "tests", stem].contains(*it)));
        full.push(stem);
        let full = full.join("::");
        for function in functions(text) {
            names.insert(format!("{owner}::{stem}::{function}"));
            names.insert(format!("{full}::{function}"));
        }
    }
    names
}

/// Names of the test functions of a file.
fn functions(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    let mut list = None;
    for line in text.lines().map(str::trim) {
        if let Some(of) = list {
            match line {
                "}" => list = None,
                name => names.push(format!("{of}::{name}")),
            }
            continue;
        }
        if let Some(of) = line.strip_prefix("checks! {") {
            list = of.trim().split(',').next();
        }
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let function = line
            .strip_prefix("async ")
            .unwrap_or(line)
            .strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|it| it.split_once('(')) {
            if is_test {
                names.push(name.to_owned());
            }
            is_test = false;
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
        [[section.requirement]]
        says = "other"
        missing = "B is done"
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
        assert!(page.contains("5 requirements; 1 of them"), "{page}");
        let missing = "**1 of them is not met:**\n\n- S: other. Instead: B is done\n\n## S";
        assert!(page.contains(missing), "{page}");
        assert!(
            page.contains("| other | **not met**: B is done |"),
            "{page}"
        );
    }

    #[test]
    fn tests_are_known_by_their_file_and_by_its_folders_too() {
        let files = [
            SourceFile::new(
                "crates/session/src/amqp/tests/hostile.rs",
                "#[test]\nfn a() {}\n",
            ),
            SourceFile::new("crates/wire/tests/amqp/main.rs", "#[test]\nfn b() {}\n"),
            SourceFile::new("crates/wal/src/lib.rs", "  #[test]\n  fn c() {}\n"),
            SourceFile::new(
                "crates/cli/tests/clients.rs",
                "checks! { pika, \"pika.py\" over \"amqp\":\n    d\n}\nfn no() {}\n",
            ),
        ];
        let names: Vec<String> = tests(&files).into_iter().collect();
        let expected = [
            "cli::clients::pika::d",
            "session::amqp::hostile::a",
            "session::hostile::a",
            "wal::lib::c",
            "wire::amqp::b",
        ];
        assert_eq!(names, expected);
    }
}
