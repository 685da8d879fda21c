//! The table of options in `docs/configuration.md`.

use std::fmt::Write;

use super::{Kind, OPTIONS, OptionSpec};

/// All options as a Markdown table, generated from their declaration.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "| key in `tanda.toml` | flag | environment | default | allowed | what it does |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for spec in OPTIONS {
        let default = if spec.default.is_empty() {
            "(empty)".to_owned()
        } else {
            format!("`{}`", spec.default)
        };
        let written = writeln!(
            text,
            "| `{}` | `--{}` | `{}` | {default} | {} | {} |",
            spec.key,
            spec.flag(),
            spec.env(),
            allowed(spec),
            spec.doc.trim()
        );
        debug_assert!(written.is_ok(), "writing to a String does not fail");
    }
    text
}

fn allowed(spec: &OptionSpec) -> String {
    if let Some((low, high)) = spec.range {
        return format!("{low} to {high}");
    }
    match spec.kind {
        Kind::Choice(words) => words.join(", "),
        Kind::Path
        | Kind::Address
        | Kind::Flag
        | Kind::Count
        | Kind::Duration
        | Kind::Size
        | Kind::Text
        | Kind::List
        | Kind::Secret => spec.kind.name().to_owned(),
    }
}
