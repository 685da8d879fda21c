//! Every rule of `tanda-tidy`, run on this repository.

#![expect(clippy::panic, reason = "a test says with it what it could not read")]

use std::path::{Path, PathBuf};
use tanda_tidy::conformance::{self, Conformance};
use tanda_tidy::ratchet::{RATCHET_PATH, Ratchet};
use tanda_tidy::tree::{self, SourceFile};
use tanda_tidy::workspace::{self, Package};
use tanda_tidy::{Finding, docs, layers, manifest, modules, sizes, words};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files() -> Vec<SourceFile> {
    tree::read(&root()).unwrap_or_else(|error| panic!("cannot read the repository: {error}"))
}

fn packages() -> Vec<Package> {
    workspace::packages(&root()).unwrap_or_else(|error| panic!("{error}"))
}

fn text<'f>(files: &'f [SourceFile], path: &str) -> &'f str {
    let file = files.iter().find(|file| file.path == path);
    file.and_then(|file| file.text.as_deref())
        .unwrap_or_else(|| panic!("{path} is missing"))
}

fn text_or_nothing<'f>(files: &'f [SourceFile], path: &str) -> &'f str {
    let file = files.iter().find(|file| file.path == path);
    file.and_then(|file| file.text.as_deref())
        .unwrap_or_default()
}

#[track_caller]
fn assert_none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} findings:\n{}\n",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn crates_follow_the_order_of_the_layers() {
    assert_none(&layers::order(&packages()));
}

#[test]
fn crates_below_server_link_no_runtime_and_no_randomness() {
    for package in packages()
        .iter()
        .filter(|package| layers::is_deterministic(&package.name))
    {
        let closure = workspace::closure(&root(), &package.name).unwrap();
        assert!(
            closure.contains(&package.name),
            "cargo tree did not list {}",
            package.name
        );
        assert_none(&layers::purity(&package.name, &closure));
    }
}

#[test]
fn crates_below_server_use_the_short_list() {
    let files = files();
    let adr = text(&files, "docs/adr/0003-dependencies-below-server.md");
    assert_none(&layers::listed(&packages(), &layers::short_list(adr)));
}

#[test]
fn every_crate_inherits_the_lints() {
    assert_none(&manifest::inherits_lints(&packages(), &files()));
}

#[test]
fn crates_below_server_share_one_clippy_toml() {
    assert_none(&manifest::clippy_settings(&packages(), &files()));
}

#[test]
fn files_keep_their_size_and_width() {
    let files = files();
    match Ratchet::parse(text(&files, RATCHET_PATH)) {
        Ok(ratchet) => assert_none(&sizes::sizes(&files, &ratchet)),
        Err(findings) => assert_none(&findings),
    }
}

#[test]
fn nothing_is_left_over() {
    assert_none(&words::leftovers(&files()));
}

#[test]
fn documents_do_not_advertise() {
    assert_none(&words::advertising(&files()));
}

#[test]
fn no_path_leads_out_of_the_repository() {
    assert_none(&words::outside_paths(&files()));
}

#[test]
fn no_file_is_dead() {
    assert_none(&modules::dead_files(&packages(), &files()));
}

#[test]
fn names_of_modules_say_something() {
    assert_none(&modules::empty_names(&files()));
}

#[test]
fn links_lead_somewhere() {
    assert_none(&docs::broken_links(&files()));
}

#[test]
fn every_decision_is_listed() {
    assert_none(&docs::adr_index(&files()));
}

/// With `TANDA_WRITE_DOCS=1` in the environment the pages are written instead.
#[test]
fn every_requirement_of_the_protocols_is_shown_by_a_test() {
    let files = files();
    let lists = files
        .iter()
        .filter(|file| file.path.starts_with(conformance::FOLDER));
    for list in lists.filter(|file| file.path.ends_with(".toml")) {
        let text = list.text.as_deref().unwrap_or_default();
        let conformance = match Conformance::parse(&list.path, text) {
            Ok(conformance) => conformance,
            Err(findings) => return assert_none(&findings),
        };
        assert_none(&conformance.gaps(&list.path, &files));
        let page = list.path.replace(".toml", ".md");
        if std::env::var_os("TANDA_WRITE_DOCS").is_some() {
            std::fs::write(root().join(&page), conformance.page()).unwrap();
            continue;
        }
        let command = "TANDA_WRITE_DOCS=1 cargo test -p tanda-tidy";
        assert!(
            text_or_nothing(&files, &page) == conformance.page(),
            "{page} is not what {} says: run `{command}`",
            list.path
        );
    }
}
