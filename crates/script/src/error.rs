//! Why a script gave no result.

use std::fmt;

/// Longest text of an error, in bytes; what a script says may be as long as its memory.
pub const ERROR_BYTES_MAX: usize = 512;

/// Why a hook gave no result for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// It raised an error, used up its memory, or returned what it may not. Trying again with the
    /// same message will not help. At most [`ERROR_BYTES_MAX`] bytes.
    Failed(String),
    /// It used up its time. Trying again may help.
    TimedOut,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::TimedOut => f.write_str("the script used up its time"),
        }
    }
}

impl std::error::Error for ScriptError {}

/// How one call ended without a result, before it is decided what becomes of the state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The script's own fault; the state is sound.
    Failed(String),
    /// The memory limit was met. The state may hold too much to go on with.
    Memory,
    /// The time limit was met. The state was stopped wherever it was.
    Time,
}

impl Broken {
    pub(crate) fn of(error: &mlua::Error) -> Self {
        let error = root(error);
        if let mlua::Error::MemoryError(_) = error {
            return Self::Memory;
        }
        if let mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } =
            error
        {
            return Self::Failed(bounded(strip(text)));
        }
        Self::Failed(bounded(strip(&error.to_string())))
    }
}

/// The error inside what callbacks were wrapped in.
fn root(mut error: &mlua::Error) -> &mlua::Error {
    while let mlua::Error::CallbackError { cause, .. } = error {
        error = cause;
    }
    error
}

/// Without the stack, which names nothing of the script that the first line does not, and without
/// addresses of tables, which mean nothing outside.
fn strip(text: &str) -> &str {
    let text = text.split("\nstack traceback:").next().unwrap_or(text);
    if text.starts_with("table: 0x") {
        return "the script raised a table as its error; raise a string";
    }
    text
}

/// At most [`ERROR_BYTES_MAX`] bytes of `text`.
pub(crate) fn bounded(text: &str) -> String {
    const MORE: &str = "..";
    if text.len() <= ERROR_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = ERROR_BYTES_MAX - MORE.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut short = text.get(..end).unwrap_or_default().to_owned();
    short.push_str(MORE);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ä".repeat(ERROR_BYTES_MAX);
        let cut = bounded(&long);
        assert!(cut.len() <= ERROR_BYTES_MAX && cut.ends_with("ä.."));
        assert_eq!(bounded("short"), "short");
    }

    #[test]
    fn stacks_and_addresses_are_left_out() {
        assert_eq!(strip("a: b\nstack traceback:\nx"), "a: b");
        assert!(!strip("table: 0x55aa").contains("0x"));
    }
}
