//! Which crate may use which.
//!
//! Owns the order of the layers, the crates that a deterministic layer must never link, and the
//! rule that its direct dependencies stand in the short list of ADR 0003. Looks at normal
//! dependencies only: what tests use is free.

use crate::Finding;
use crate::workspace::Package;

/// A crate and the crates of ours that it may use.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    /// Name of the package.
    pub name: &'static str,
    /// Our packages that it may name as normal dependencies.
    pub may_use: &'static [&'static str],
    /// Below `server`: no runtime, sockets, files, clock or randomness of its own.
    pub deterministic: bool,
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer {
        name,
        may_use,
        deterministic: true,
    }
}

const fn outer(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer {
        name,
        may_use,
        deterministic: false,
    }
}

/// All crates, bottom first. `wal` uses nothing of ours on purpose: the log knows no message. The
/// engine knows no protocol's frames; of `wire` it uses field tables and maps, which messages carry
/// as they came.
pub const LAYERS: &[Layer] = &[
    pure("tanda-wire", &[]),
    pure("tanda-engine", &["tanda-wire"]),
    pure("tanda-wal", &[]),
    pure("tanda-session", &["tanda-wire", "tanda-engine"]),
    pure("tanda-node", &["tanda-engine", "tanda-wal"]),
    outer("tanda-script", &[]),
    outer(
        "tanda-server",
        &[
            "tanda-script",
            "tanda-wire",
            "tanda-engine",
            "tanda-wal",
            "tanda-session",
            "tanda-node",
        ],
    ),
    outer("tanda-client", &["tanda-wire"]),
    outer("tanda-cli", &["tanda-wire", "tanda-server", "tanda-client"]),
    outer(
        "tanda-bench",
        &[
            "tanda-wire",
            "tanda-engine",
            "tanda-wal",
            "tanda-script",
            "tanda-client",
        ],
    ),
    pure(
        "tanda-sim",
        &[
            "tanda-wire",
            "tanda-engine",
            "tanda-wal",
            "tanda-session",
            "tanda-node",
        ],
    ),
    outer(
        "tanda-fuzz",
        &[
            "tanda-wire",
            "tanda-engine",
            "tanda-wal",
            "tanda-session",
            "tanda-node",
            "tanda-script",
            "tanda-server",
        ],
    ),
    outer("tanda-tidy", &[]),
];

/// Crates that bring a runtime, sockets or randomness; none may be linked below `server`.
pub const FORBIDDEN_BELOW_SERVER: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "mio",
    "socket2",
    "rustls",
    "axum",
    "hyper",
    "rand",
    "fastrand",
    "getrandom",
];

/// The direct dependencies between our crates follow [`LAYERS`], and every crate has its place.
#[must_use]
pub fn order(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
            let what = format!(
                "{} has no place in layers::LAYERS; give it one",
                package.name
            );
            findings.push(Finding::whole(&package.folder, what));
            continue;
        };
        for used in package
            .normal
            .iter()
            .filter(|name| name.starts_with("tanda-"))
        {
            if !layer.may_use.contains(&used.as_str()) {
                let what = format!("{} may not use {used}; see layers::LAYERS", package.name);
                findings.push(Finding::whole(&package.folder, what));
            }
        }
    }
    for layer in LAYERS {
        if !packages.iter().any(|package| package.name == layer.name) {
            findings.push(Finding::whole(
                "Cargo.toml",
                format!("{} is missing", layer.name),
            ));
        }
    }
    findings
}

/// `closure` is what the deterministic crate `package` links in all; none of it is forbidden.
#[must_use]
pub fn purity(package: &str, closure: &[String]) -> Vec<Finding> {
    let linked = closure
        .iter()
        .filter(|name| FORBIDDEN_BELOW_SERVER.contains(&name.as_str()));
    linked
        .map(|name| {
            let what = format!("links {name}; a crate below `server` must not (cargo tree -i)");
            Finding::whole(package, what)
        })
        .collect()
}

/// The names in the table of ADR 0003: first cells of the form `` | `name` | ``.
#[must_use]
pub fn short_list(adr: &str) -> Vec<String> {
    let rows = adr
        .lines()
        .filter_map(|line| line.trim().strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Every direct dependency of a deterministic crate that is not ours stands in `short_list`.
#[must_use]
pub fn listed(packages: &[Package], short_list: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages
        .iter()
        .filter(|package| is_deterministic(&package.name))
    {
        let foreign = package
            .normal
            .iter()
            .filter(|name| !name.starts_with("tanda-"));
        for name in foreign.filter(|name| !short_list.contains(name)) {
            let what = format!("{name} is not in the table of docs/adr/0003; add it with reasons");
            findings.push(Finding::whole(&package.folder, what));
        }
    }
    findings
}

/// Whether `package` stands below `server` (the simulator counts, so that a seed replays).
#[must_use]
pub fn is_deterministic(package: &str) -> bool {
    LAYERS
        .iter()
        .any(|layer| layer.name == package && layer.deterministic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, normal: &[&str]) -> Package {
        Package {
            name: name.into(),
            folder: name.replace("tanda-", "crates/"),
            normal: normal.iter().map(|name| (*name).to_owned()).collect(),
            roots: Vec::new(),
        }
    }

    fn all_layers() -> Vec<Package> {
        LAYERS
            .iter()
            .map(|layer| package(layer.name, layer.may_use))
            .collect()
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        for (index, layer) in LAYERS.iter().enumerate() {
            let above = &LAYERS[..index];
            assert!(
                layer
                    .may_use
                    .iter()
                    .all(|used| above.iter().any(|other| other.name == *used)),
                "{} uses a crate that stands below it in the table",
                layer.name
            );
        }
        assert_eq!(order(&all_layers()), []);
    }

    #[test]
    fn a_dependency_against_the_order_is_found() {
        let mut packages = all_layers();
        packages[1].normal.push("tanda-session".into());
        let findings = order(&packages);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0]
                .what
                .contains("tanda-engine may not use tanda-session")
        );
    }

    #[test]
    fn the_client_must_not_use_the_engine() {
        let mut packages = all_layers();
        let client = packages
            .iter_mut()
            .find(|package| package.name == "tanda-client")
            .unwrap();
        client.normal.push("tanda-engine".into());
        assert_eq!(order(&packages).len(), 1);
    }

    #[test]
    fn unknown_and_missing_crates_are_found() {
        let mut packages = all_layers();
        packages.pop();
        packages.push(package("tanda-extra", &[]));
        let whats: Vec<String> = order(&packages)
            .into_iter()
            .map(|found| found.what)
            .collect();
        assert_eq!(whats.len(), 2);
        assert!(whats[0].contains("tanda-extra has no place"));
        assert!(whats[1].contains("tanda-tidy is missing"));
    }

    #[test]
    fn a_linked_runtime_is_found() {
        let closure = ["bytes".to_owned(), "tokio".to_owned()];
        assert_eq!(purity("tanda-wal", &closure).len(), 1);
        assert_eq!(purity("tanda-wal", &closure[..1]), []);
    }

    #[test]
    fn a_dependency_outside_the_short_list_is_found() {
        let adr = "| crate | purpose |\n|---|---|\n| `bytes` | buffers |\n";
        let list = short_list(adr);
        assert_eq!(list, ["bytes"]);
        let packages = [
            package("tanda-wal", &["bytes", "tanda-wire", "serde"]),
            package("tanda-server", &["serde"]),
        ];
        let findings = listed(&packages, &list);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.starts_with("serde"));
    }
}
