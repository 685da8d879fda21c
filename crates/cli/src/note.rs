//! What is said to people on standard error.

use std::{
    fmt,
    io::{self, Write},
};

/// One line on standard error. That nobody reads there is no reason to fail.
pub(crate) fn note(text: impl fmt::Display) {
    drop(writeln!(io::stderr().lock(), "tanda: {text}"));
}
