//! `[[users]]` in the file: users that a start makes when they are not there.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use tanda_engine::{NewVhostPermissions, PasswordHash, VhostPermissions};
use toml::{Table, Value};

use crate::users::{Pattern, password};

/// A user of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredUser {
    /// Its name.
    pub name: String,
    /// By what it logs in.
    pub password: ConfiguredPassword,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it may do, by virtual host.
    pub permissions: Vec<NewVhostPermissions>,
}

/// By what a user of the file logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfiguredPassword {
    /// No password lets it in; a certificate may.
    None,
    /// A password of which this is the hash.
    Hash(PasswordHash),
    /// The password that stands in this file, read when the user is made.
    File(PathBuf),
}

/// Reads `[[users]]`; what is wrong is added to `problems`, and no secret is in it.
pub(super) fn read(value: Value, problems: &mut Vec<String>) -> Vec<ConfiguredUser> {
    let Value::Array(items) = value else {
        problems.push("users: expected tables, each beginning with [[users]]".to_owned());
        return Vec::new();
    };
    let mut names = BTreeSet::new();
    let mut users = Vec::new();
    for (number, item) in (1..).zip(items) {
        let Value::Table(table) = item else {
            problems.push(format!("users: entry {number} is no table"));
            continue;
        };
        let name = table.get("name").and_then(Value::as_str);
        let of = name.map_or_else(
            || format!("[[users]] number {number}"),
            |name| format!("[[users]] {name:?}"),
        );
        match user(table) {
            Ok(user) if names.insert(user.name.clone()) => users.push(user),
            Ok(_) => problems.push(format!("{of} is there twice")),
            Err(problem) => problems.push(format!("{of}: {problem}")),
        }
    }
    users
}

fn user(mut table: Table) -> Result<ConfiguredUser, String> {
    let name = text(&mut table, "name")?.ok_or("it has no name")?;
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        return Err("a name has 1 to 255 bytes without control characters".to_owned());
    }
    let password = password_of(&mut table)?;
    let tags = match table.remove("tags") {
        None => Vec::new(),
        Some(Value::Array(tags)) => {
            let tags = tags.iter().map(|tag| tag.as_str().map(str::to_owned));
            let tags: Option<Vec<_>> = tags.collect();
            tags.ok_or("tags: expected an array of strings")?
        }
        Some(_) => return Err("tags: expected an array of strings".to_owned()),
    };
    let permissions = match table.remove("permissions") {
        None => Vec::new(),
        Some(Value::Array(items)) => {
            let all = items.into_iter().map(|item| permissions(&name, item));
            all.collect::<Result<_, _>>()?
        }
        Some(_) => {
            let problem = "permissions: expected tables, each beginning with [[users.permissions]]";
            return Err(problem.to_owned());
        }
    };
    nothing_else(&table)?;
    Ok(ConfiguredUser {
        name,
        password,
        tags,
        permissions,
    })
}

fn password_of(table: &mut Table) -> Result<ConfiguredPassword, String> {
    if table.contains_key("password") {
        let problem = "a password does not stand here: give password_hash, as `tanda definitions \
                       export` shows it, or password_file";
        return Err(problem.to_owned());
    }
    let hash = text(table, "password_hash")?;
    let file = text(table, "password_file")?;
    let algorithm = text(table, "hashing_algorithm")?;
    match (hash, file) {
        (Some(_), Some(_)) => {
            Err("password_hash and password_file are both set: remove one".to_owned())
        }
        (Some(hash), None) => {
            let guessed = if hash.starts_with("$argon2id$") {
                "argon2id"
            } else {
                "rabbit_password_hashing_sha256"
            };
            let algorithm = algorithm.as_deref().unwrap_or(guessed);
            let hash = password::import(algorithm, &hash)?;
            Ok(ConfiguredPassword::Hash(PasswordHash::new(&hash)))
        }
        (None, _) if algorithm.is_some() => {
            Err("hashing_algorithm is set, and password_hash is not".to_owned())
        }
        (None, Some(file)) if file.is_empty() => Err("password_file is empty".to_owned()),
        (None, Some(file)) => Ok(ConfiguredPassword::File(PathBuf::from(file))),
        (None, None) => Ok(ConfiguredPassword::None),
    }
}

fn permissions(user: &str, item: Value) -> Result<NewVhostPermissions, String> {
    let Value::Table(mut table) = item else {
        return Err("permissions: expected tables".to_owned());
    };
    let vhost = text(&mut table, "vhost")?.unwrap_or_else(|| "/".to_owned());
    let of = |problem: String| format!("permissions in {vhost:?}: {problem}");
    let mut pattern = |key: &str| -> Result<Arc<str>, String> {
        let text = text(&mut table, key).map_err(of)?;
        let text = text.ok_or_else(|| of(format!("{key} is missing; \"\" allows nothing")))?;
        Pattern::compile(&text).map_err(|problem| of(format!("{key}: {problem}")))?;
        Ok(text.into())
    };
    let permissions = VhostPermissions {
        configure: pattern("configure")?,
        write: pattern("write")?,
        read: pattern("read")?,
    };
    nothing_else(&table).map_err(of)?;
    Ok(NewVhostPermissions {
        user: user.to_owned(),
        vhost,
        permissions,
    })
}

fn text(table: &mut Table, key: &str) -> Result<Option<String>, String> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        // Not what it is: it may be a secret.
        Some(_) => Err(format!("{key}: expected a string")),
    }
}

fn nothing_else(table: &Table) -> Result<(), String> {
    match table.keys().next() {
        None => Ok(()),
        Some(key) => Err(format!("unknown key `{key}`")),
    }
}
