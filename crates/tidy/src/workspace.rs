//! What cargo says about the workspace.
//!
//! Owns the reading of `cargo metadata` (format version 1) and `cargo tree`. Knows nothing of the
//! rules.

use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// One crate of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Name as in its manifest, `tanda-engine`.
    pub name: String,
    /// Folder from the root of the repository, `crates/engine`.
    pub folder: String,
    /// Names of its direct normal dependencies: not those of tests and build scripts.
    pub normal: Vec<String>,
    /// Source files that cargo compiles as the root of a target, from the root of the repository.
    pub roots: Vec<String>,
}

/// Why cargo's answer could not be used.
#[derive(Debug)]
pub enum Error {
    /// Cargo could not be started, or ended with this text.
    Cargo(String),
    /// The answer is not the JSON that is expected; names the missing field.
    Shape(&'static str),
    /// The answer is no JSON.
    Json(serde_json::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cargo(text) => write!(f, "cargo failed: {text}"),
            Self::Shape(field) => write!(f, "cargo metadata has no usable `{field}`"),
            Self::Json(error) => write!(f, "cargo metadata is no JSON: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Asks cargo for the crates of the workspace at `root`.
///
/// # Errors
/// Cargo failed, or answered in another shape than format version 1.
pub fn packages(root: &Path) -> Result<Vec<Package>, Error> {
    let args = ["metadata", "--format-version", "1", "--no-deps"];
    parse_metadata(&cargo(root, &args)?)
}

/// Names of all crates that `package` links in normal use, itself included.
///
/// Asks `cargo tree` and not the resolve graph of `cargo metadata`, which joins the features that
/// all crates of the workspace ask for, and so shows dependencies that `package` does not have.
///
/// # Errors
/// Cargo failed, with what it wrote.
pub fn closure(root: &Path, package: &str) -> Result<Vec<String>, Error> {
    let args = [
        "tree", "-p", package, "-e", "normal", "--prefix", "none", "--locked",
    ];
    Ok(parse_tree(&cargo(root, &args)?))
}

fn cargo(root: &Path, args: &[&str]) -> Result<String, Error> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(args)
        .current_dir(root)
        .output()
        .map_err(|error| Error::Cargo(error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::Cargo(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    }
}

/// Reads the answer of `cargo metadata --format-version 1 --no-deps`.
///
/// # Errors
/// The text is no JSON, or a field is missing.
pub fn parse_metadata(json: &str) -> Result<Vec<Package>, Error> {
    let value: Value = serde_json::from_str(json).map_err(Error::Json)?;
    let root = text(&value, "workspace_root")?;
    list(&value, "packages")?
        .iter()
        .map(|package| parse_package(package, root))
        .collect()
}

fn parse_package(package: &Value, root: &str) -> Result<Package, Error> {
    let manifest = below(root, text(package, "manifest_path")?);
    let folder = manifest
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
        .to_owned();
    let mut normal = Vec::new();
    for dependency in list(package, "dependencies")? {
        // Normal dependencies have the kind null.
        if dependency.get("kind").is_some_and(Value::is_null) {
            normal.push(text(dependency, "name")?.to_owned());
        }
    }
    let mut roots = Vec::new();
    for target in list(package, "targets")? {
        roots.push(below(root, text(target, "src_path")?));
    }
    Ok(Package {
        name: text(package, "name")?.to_owned(),
        folder,
        normal,
        roots,
    })
}

/// Each line of `cargo tree --prefix none` is `name vX.Y.Z (...)`, and may stand there again.
fn parse_tree(text: &str) -> Vec<String> {
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(String::from)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn below(root: &str, path: &str) -> String {
    let path = path.replace('\\', "/");
    let root = root.replace('\\', "/");
    path.strip_prefix(&root)
        .unwrap_or(&path)
        .trim_start_matches('/')
        .to_owned()
}

fn text<'v>(value: &'v Value, field: &'static str) -> Result<&'v str, Error> {
    value
        .get(field)
        .and_then(Value::as_str)
        .ok_or(Error::Shape(field))
}

fn list<'v>(value: &'v Value, field: &'static str) -> Result<&'v Vec<Value>, Error> {
    value
        .get(field)
        .and_then(Value::as_array)
        .ok_or(Error::Shape(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{"workspace_root": "/w", "packages": [{
        "name": "tanda-engine", "manifest_path": "/w/crates/engine/Cargo.toml",
        "dependencies": [{"name": "bytes", "kind": null}, {"name": "proptest", "kind": "dev"}],
        "targets": [{"src_path": "/w/crates/engine/src/lib.rs"}]}]}"#;

    #[test]
    fn metadata_keeps_normal_dependencies_only() {
        let packages = parse_metadata(SAMPLE).unwrap();
        let expected = Package {
            name: "tanda-engine".into(),
            folder: "crates/engine".into(),
            normal: vec!["bytes".into()],
            roots: vec!["crates/engine/src/lib.rs".into()],
        };
        assert_eq!(packages, [expected]);
    }

    #[test]
    fn metadata_of_another_shape_is_an_error_and_not_an_empty_workspace() {
        assert!(matches!(
            parse_metadata("{}"),
            Err(Error::Shape("workspace_root"))
        ));
        assert!(matches!(parse_metadata("["), Err(Error::Json(_))));
    }

    #[test]
    fn tree_gives_each_name_once() {
        let tree = "tanda-wal v0.1.0 (/w/crates/wal)\nbytes v1.12.2\n\nbytes v1.12.2 (*)\n";
        assert_eq!(parse_tree(tree), ["bytes", "tanda-wal"]);
    }
}
