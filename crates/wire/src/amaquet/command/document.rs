//! The table for readers: `server.commands`, and the page of the documentation.

use core::fmt::Write as _;

use super::COMMANDS;
use super::queue::MESSAGE;
use super::spec::{ArgumentSpec, Permission, Spec};
use crate::amaquet::json::Writer;

/// Writes the result of `server.commands`.
pub fn write_commands(out: &mut Writer<'_>) {
    out.object(|out| {
        out.key("commands").array(|out| {
            for spec in COMMANDS {
                out.object(|out| write_command(out, spec));
            }
        });
    });
}

fn write_command(out: &mut Writer<'_>, spec: &Spec) {
    out.key("name").str(spec.name);
    out.key("summary").str(spec.summary);
    out.key("arguments").array(|out| {
        for argument in spec.arguments {
            out.object(|out| {
                out.key("name").str(argument.name);
                out.key("type").str(argument.value_type.name());
                out.key("required").bool(argument.required);
                out.key("summary").str(&described(argument));
            });
        }
    });
    out.key("result").object(|out| {
        for result in spec.result {
            out.key(result.name).str(result.value_type.name());
        }
    });
    out.key("permission").str(spec.permission.letter());
}

/// What an argument means and what is allowed of it.
fn described(argument: &ArgumentSpec) -> String {
    if argument.limits.is_empty() {
        argument.summary.to_owned()
    } else {
        let limits = argument.limits;
        format!("{} Allowed: {limits}.", argument.summary)
    }
}

const HEAD: &str = "\
<!-- Made from the table of commands in crates/wire/src/amaquet/command; to change it, change \
that and run `TANDA_WRITE_DOCS=1 cargo test -p tanda-wire --test amaquet`. -->

# Commands of the Amaquet protocol

How a client uses them is on [the page of the door](amaquet.md).

A request of the opcode COMMAND is `{\"command\":\"<family>.<verb>\", ...arguments}`; its answer \
is `{\"ok\":true,\"result\":{}}` or \
`{\"ok\":false,\"error\":{\"code\",\"message\"}}`. Arguments in italics may be left out, or be \
`null`. Arguments that are not known are ignored; one that is missing, of another type or beyond \
what is allowed is BAD_REQUEST, and the message names it.

Permissions: `r` = consume, `w` = produce, `a` = admin, on the names in the arguments that are \
listed with it; `-` = none. The command `server.commands` tells all of this page as JSON; there \
an array of objects, and an array with `null` in it, has the type `object`.
";

const TAIL: &str = "
## Payloads

A payload is `{\"type\":\"json\",\"data\":any}`, `{\"type\":\"text\",\"data\":\"...\"}` or \
`{\"type\":\"bytes\",\"data\":\"<base64>\"}`. Any other JSON in its place means itself, of type \
json. Payloads are given back in the first form; what is of type json is the text that came, \
space and digits included. Integers have 64 bits: one that does not fit is BAD_REQUEST, also \
within a payload, and never rounded. JSON may be 128 arrays and objects deep.
";

/// The page of the documentation.
#[must_use]
pub fn document() -> String {
    let mut page = String::from(HEAD);
    let mut family = "";
    for spec in COMMANDS {
        if spec.family() != family {
            family = spec.family();
            add(&mut page, format_args!("\n## {family}\n"));
        }
        add_command(&mut page, spec);
    }
    page.push_str("\n## Messages\n\nEach of the messages of `queue.push` is an object:\n\n");
    add_arguments(&mut page, MESSAGE);
    page.push_str(TAIL);
    page
}

fn add(page: &mut String, text: core::fmt::Arguments<'_>) {
    let written = page.write_fmt(text);
    debug_assert!(written.is_ok(), "a string takes everything");
}

fn add_command(page: &mut String, spec: &Spec) {
    add(
        page,
        format_args!("\n### {}\n\n{}\n\n", spec.name, spec.summary),
    );
    let on = match (spec.permission, spec.on) {
        (Permission::Nothing, _) => String::new(),
        (Permission::Read, []) => "; shows what the caller may read".to_owned(),
        (Permission::Write | Permission::Admin, []) => " on `*`".to_owned(),
        (Permission::Read | Permission::Write | Permission::Admin, on) => {
            let on: Vec<String> = on.iter().map(|name| format!("`{name}`")).collect();
            format!(" on {}", on.join(" and "))
        }
    };
    let letter = spec.permission.letter();
    add(page, format_args!("Permission: `{letter}`{on}.\n\n"));
    if !spec.arguments.is_empty() {
        add_arguments(page, spec.arguments);
        page.push('\n');
    }
    page.push_str("| result | type | |\n|---|---|---|\n");
    for result in spec.result {
        let (name, of, summary) = (result.name, result.value_type.name(), result.summary);
        add(page, format_args!("| `{name}` | {of} | {summary} |\n"));
    }
}

fn add_arguments(page: &mut String, arguments: &[ArgumentSpec]) {
    page.push_str("| argument | type | allowed | |\n|---|---|---|---|\n");
    for argument in arguments {
        let mark = if argument.required { "" } else { "*" };
        let (name, of) = (argument.name, argument.value_type.name());
        let (limits, summary) = (argument.limits, argument.summary);
        let line = format_args!("| {mark}`{name}`{mark} | {of} | {limits} | {summary} |\n");
        add(page, line);
    }
}
