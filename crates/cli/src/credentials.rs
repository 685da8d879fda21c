//! The API key a command shows to the broker, on both doors.
//!
//! Owns: where the key comes from, and that it is never shown.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::failure::Failure;

pub(crate) const KEY_ENV: &str = "TANDA_API_KEY";
const FILE_ENV: &str = "TANDA_API_KEY_FILE";

/// Says how a key is given, for errors.
pub(crate) const HOW_TO_GIVE: &str = "--api-key-file FILE, or TANDA_API_KEY in the environment";

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyArgs {
    /// File whose only line is the API key [env: TANDA_API_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// The API key itself. Other users of this machine can read it in the list of processes:
    /// prefer --api-key-file or the environment [env: TANDA_API_KEY]
    #[arg(long, value_name = "KEY", conflicts_with = "api_key_file")]
    api_key: Option<Secret>,
}

impl KeyArgs {
    /// These flags, which win, and those that stood before the command.
    pub(crate) fn or(self, before: Self) -> Self {
        if self == Self::default() {
            before
        } else {
            self
        }
    }

    /// Reads the key. A flag wins over the environment, and there the key over its file.
    pub(crate) fn load(&self) -> Result<Option<Secret>, Failure> {
        if let Some(key) = &self.api_key {
            return checked(key.0.clone(), "--api-key").map(Some);
        }
        if let Some(path) = &self.api_key_file {
            return read(path).map(Some);
        }
        let set = |name| env::var_os(name).filter(|text| !text.is_empty());
        if let Some(key) = set(KEY_ENV) {
            let key = key.into_string();
            let key =
                key.map_err(|_other| Failure::Usage(format!("{KEY_ENV} is not valid UTF-8")))?;
            return checked(key, KEY_ENV).map(Some);
        }
        set(FILE_ENV).map(|path| read(Path::new(&path))).transpose()
    }
}

fn read(path: &Path) -> Result<Secret, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::io(format!("read the API key in {}", path.display()), error))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    checked(line.to_owned(), &path.display().to_string())
}

/// A key goes into a header of HTTP too, so it is text without spaces and line ends.
fn checked(key: String, from: &str) -> Result<Secret, Failure> {
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::Usage(format!(
            "{from} holds no API key: one is a single line of letters, digits and signs"
        )));
    }
    Ok(Secret(key))
}

/// Text that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line() {
        assert_eq!(
            checked("a-B_1=".to_owned(), "x").unwrap().reveal(),
            "a-B_1="
        );
        for text in ["", "a b", "a\nb", "grün"] {
            let error = checked(text.to_owned(), "the file")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("the file holds no API key"), "{error}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let args = KeyArgs {
            api_key_file: None,
            api_key: Some("topsecret".to_owned().into()),
        };
        assert!(!format!("{args:?}").contains("topsecret"));
    }

    #[test]
    fn flags_after_the_command_win() {
        let args = |name: &str| KeyArgs {
            api_key_file: Some(name.into()),
            api_key: None,
        };
        assert_eq!(args("b").or(args("a")), args("b"));
        assert_eq!(KeyArgs::default().or(args("a")), args("a"));
    }
}
