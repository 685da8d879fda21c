//! Pages of the book whose commands are run as they stand, so that page and program agree.

mod page;
mod run;
mod text;

use std::{fs, path::PathBuf};

use page::Page;

/// The recipes, each with a test below.
const RECIPES: [&str; 6] = [
    "per-account-order",
    "poison-messages",
    "rate-limited-api",
    "redrive",
    "tenant-fairness",
    "weighted-tiers",
];

fn read(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn recipe(name: &str) {
    assert!(RECIPES.contains(&name));
    let path = format!("docs/recipes/{name}.md");
    run::run(&Page::parse(&path, &read(&path)));
}

#[test]
fn every_recipe_is_run() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    names.sort();
    let known: Vec<String> = RECIPES.iter().map(|name| format!("{name}.md")).collect();
    assert_eq!(names, known);
}

#[test]
fn quick_start() {
    let readme = read("README.md");
    let (_, rest) = readme.split_once("<!-- quick start: begin -->").unwrap();
    let (part, _) = rest.split_once("<!-- quick start: end -->").unwrap();
    run::run(&Page::parse("README.md", part));
}

#[test]
fn tenant_fairness() {
    recipe("tenant-fairness");
}

#[test]
fn weighted_tiers() {
    recipe("weighted-tiers");
}

#[test]
fn rate_limited_api() {
    recipe("rate-limited-api");
}

#[test]
fn per_account_order() {
    recipe("per-account-order");
}

#[test]
fn poison_messages() {
    recipe("poison-messages");
}

#[test]
fn redrive() {
    recipe("redrive");
}
