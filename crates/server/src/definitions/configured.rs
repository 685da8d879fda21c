//! The users of the configuration.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use tanda_engine::{NewUser, PasswordChange};

use super::{Definitions, ReadUser, load};
use crate::{
    ask::Asker,
    config::{ConfiguredPassword, ConfiguredUser},
    users::{Authenticator, password},
};

/// Makes those that are not there, and permissions of theirs that are not there. What is there
/// stays as it is, so a change that was made since is not undone by a start.
///
/// # Errors
/// A file of a password that cannot be read, or what the broker refused.
pub(crate) async fn make_users(
    users: &[ConfiguredUser],
    (asker, authenticator): (&Asker, &Authenticator),
) -> Result<(), String> {
    let mut definitions = Definitions::default();
    let newest = authenticator.newest().users;
    for user in users {
        let known = newest.find(&user.name);
        if known.is_none() {
            definitions.users.push(new_user(user)?);
        }
        let absent = user.permissions.iter().filter(|it| {
            let has = known.is_some_and(|known| known.permissions.contains_key(&*it.vhost));
            !has
        });
        for permissions in absent {
            definitions.vhosts.push(permissions.vhost.clone());
            definitions.permissions.push(permissions.clone());
        }
    }
    let made: Vec<_> = definitions.users.iter().map(|it| &it.new.name).collect();
    if !made.is_empty() {
        tracing::info!(users = ?made, "makes users of the configuration");
    }
    let loaded = load(definitions, asker, authenticator).await;
    let loaded = loaded.map_err(|error| format!("the broker does not answer ({error:?})"))?;
    if loaded.refused.is_empty() {
        return Ok(());
    }
    Err(loaded.refused.join("; "))
}

fn new_user(user: &ConfiguredUser) -> Result<ReadUser, String> {
    let (change, text) = match &user.password {
        ConfiguredPassword::None => (PasswordChange::Remove, None),
        ConfiguredPassword::Hash(hash) => (PasswordChange::Set(hash.clone()), None),
        ConfiguredPassword::File(path) => {
            let text = password_in(path);
            let text = text.map_err(|problem| {
                let path = path.display();
                format!("user {:?}: password_file {path}: {problem}", user.name)
            })?;
            (PasswordChange::Keep, Some(text))
        }
    };
    Ok(ReadUser {
        new: NewUser {
            name: user.name.clone(),
            password: change,
            tags: Some(user.tags.clone()),
        },
        password: text,
    })
}

/// Nobody is served yet who would wait for the disk.
fn password_in(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mode = fs::metadata(path).map_err(|error| error.to_string())?;
    if mode.permissions().mode() & 0o077 != 0 {
        let path = path.display();
        tracing::warn!(%path, "others than its owner may read the file of a user's password");
    }
    let text = text.trim_end_matches(['\r', '\n']);
    let max = password::PASSWORD_BYTES_MAX;
    if text.is_empty() || text.len() > max {
        return Err(format!(
            "a password has 1 to {max} bytes, not {}",
            text.len()
        ));
    }
    Ok(text.to_owned())
}
