//! What is shown of commands and results to people.
//!
//! Owns: the texts of `help`, and JSON as it is laid out on a terminal.
//! Refuses to know: where it is shown.

use std::fmt::Write as _;

use tanda_client::amaquet::{COMMANDS, Json, Permission, Spec};

use super::arguments::{find, nearest};
use crate::output::{is_bidi_control, printable};

/// Results up to so many bytes stay on one line.
const LINE_BYTES: usize = 96;

/// Words of the shell that are no commands of the broker, with what they do.
pub(super) const OWN_WORDS: [(&str, &str); 6] = [
    (
        "help",
        "help [COMMAND or FAMILY]: what there is, and how it is written",
    ),
    (
        "subscribe",
        "subscribe KEY CHANNEL [buffer=N]: prints what is published to a channel or pattern from \
         now on (* is one word, # any number)",
    ),
    ("unsubscribe", "unsubscribe KEY CHANNEL: ends that"),
    (
        "status",
        "the broker, who you are there, and what you are subscribed to",
    ),
    ("exit", "ends the shell, as Ctrl-D does"),
    ("quit", "the same"),
];

const HOW_TO_WRITE: &str = "\
Arguments are written name=value, or as values alone for those that are required, in their order:
  value.set greeting hello          is  value.set key=greeting value=hello
  value.set doc {\"a\": [1, 2]}       what is JSON stays JSON, anything else is a text
  value.set n value:text=1          value:text, value:json, value:base64, value:file=PATH say which
  set.add colors red green blue     lists take several values, or a JSON array
  list.pop jobs wait_ms=30s         times in milliseconds may have units
  {\"command\":\"value.get\",\"key\":\"a\"}  and a whole command may be JSON
Ctrl-C cancels the command that runs, Tab completes, a line with a space before it is not kept.
";

/// The page of `help`, with or without a word behind it.
pub(super) fn help(about: Option<&str>) -> Result<String, String> {
    let Some(about) = about else {
        return Ok(overview());
    };
    if let Some((_, text)) = OWN_WORDS.iter().find(|(word, _)| *word == about) {
        return Ok(format!("{text}\n"));
    }
    let family: Vec<&Spec> = COMMANDS.iter().filter(|it| it.family() == about).collect();
    if !family.is_empty() {
        return Ok(family.into_iter().map(line).collect());
    }
    if about.contains('.') {
        return find(about).map(whole);
    }
    let families = COMMANDS.iter().map(Spec::family);
    let words = OWN_WORDS.iter().map(|(word, _)| *word);
    Err(match nearest(about, families.chain(words)) {
        Some(near) => format!("there is no help about {about:?}; did you mean {near}?"),
        None => format!("there is no help about {about:?}; `help` alone lists all"),
    })
}

fn overview() -> String {
    let mut page = String::from("Commands of the broker (`help COMMAND` tells all of one):\n");
    let mut family = "";
    for spec in COMMANDS {
        if spec.family() != family {
            family = spec.family();
            add(&mut page, format_args!("\n  {family:<8}"));
        }
        let verb = spec.name.split_once('.').map_or("", |(_, verb)| verb);
        add(&mut page, format_args!(" {verb}"));
    }
    page.push_str("\n\nWords of this shell:\n\n");
    for (word, text) in OWN_WORDS {
        let text = text.strip_prefix(word).unwrap_or(text);
        let text = text.trim_start_matches(':').trim_start();
        add(&mut page, format_args!("  {word:<12} {text}\n"));
    }
    page.push('\n');
    page.push_str(HOW_TO_WRITE);
    page
}

/// A command on a line.
fn line(spec: &Spec) -> String {
    let summary = spec.summary.split_inclusive(". ").next();
    let summary = summary.unwrap_or_default().trim();
    format!("  {:<16} {summary}\n", spec.name)
}

/// All of a command.
fn whole(spec: &Spec) -> String {
    let mut page = format!("{}: {}\n", spec.name, spec.summary.replace('`', ""));
    if !spec.arguments.is_empty() {
        page.push_str("\nArguments ([] may be left out):\n");
    }
    let width = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or_default();
    let longest = width(&mut spec.arguments.iter().map(|it| it.name.len() + 2));
    for argument in spec.arguments {
        let name = match argument.required {
            true => argument.name.to_owned(),
            false => format!("[{}]", argument.name),
        };
        let kind = argument.value_type.name();
        let summary = argument.summary.replace('`', "");
        add(
            &mut page,
            format_args!("  {name:<longest$}  {kind:<9}  {summary}"),
        );
        if !argument.limits.is_empty() {
            add(&mut page, format_args!(" Allowed: {}.", argument.limits));
        }
        page.push('\n');
    }
    page.push_str("\nResult:\n");
    let longest = width(&mut spec.result.iter().map(|it| it.name.len()));
    for result in spec.result {
        let (name, kind) = (result.name, result.value_type.name());
        let summary = result.summary.replace('`', "");
        add(
            &mut page,
            format_args!("  {name:<longest$}  {kind:<9}  {summary}\n"),
        );
    }
    let permission = match spec.permission {
        Permission::Nothing => "none",
        Permission::Read => "consume",
        Permission::Write => "produce",
        Permission::Admin => "admin",
    };
    add(&mut page, format_args!("\nPermission: {permission}"));
    match (spec.permission, spec.on) {
        (Permission::Nothing, _) => {}
        (Permission::Read, []) => page.push_str(" on what is shown"),
        (Permission::Write | Permission::Admin, []) => page.push_str(" on *"),
        (_, on) => add(&mut page, format_args!(" on {}", on.join(" and "))),
    }
    page.push('\n');
    page
}

fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    let written = page.write_fmt(text);
    debug_assert!(written.is_ok(), "a string takes everything");
}

/// JSON for a terminal: on one line when it is short, otherwise laid out; control characters, and
/// those that reorder text, are escaped as JSON does it.
pub(super) fn json(text: &str) -> String {
    let mut page = String::new();
    match Json::parse(text.as_bytes()) {
        Ok(value) => lay_out(&mut page, value, 0),
        Err(_) => page.push_str(text),
    }
    let mut shown = String::with_capacity(page.len());
    for c in page.chars() {
        let is_layout = c == '\n';
        if !is_layout && (c.is_control() || is_bidi_control(c)) {
            add(&mut shown, format_args!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A text of several lines for a terminal.
pub(super) fn message(text: &str) -> String {
    let lines = text.lines().map(|line| printable(line.as_bytes()));
    lines.collect::<Vec<_>>().join("\n")
}

/// What is short stays on its line; what is long has its entries on lines of their own.
fn lay_out(page: &mut String, value: Json<'_>, depth: usize) {
    let indent = |depth: usize| "  ".repeat(depth);
    if value.text().len() + 2 * depth <= LINE_BYTES {
        page.push_str(&value.text().replace(['\n', '\r', '\t'], " "));
        return;
    }
    let mut between = "\n";
    if let Some(fields) = value.as_object() {
        page.push('{');
        for (name, field) in fields {
            let name = tanda_client::amaquet::JsonText::of(&*name);
            add(page, format_args!("{between}{}{name}: ", indent(depth + 1)));
            lay_out(page, field, depth + 1);
            between = ",\n";
        }
        add(page, format_args!("\n{}}}", indent(depth)));
    } else if let Some(items) = value.as_array() {
        page.push('[');
        for item in items {
            add(page, format_args!("{between}{}", indent(depth + 1)));
            lay_out(page, item, depth + 1);
            between = ",\n";
        }
        add(page, format_args!("\n{}]", indent(depth)));
    } else {
        page.push_str(value.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_about_everything() {
        let all = help(None).unwrap();
        for spec in COMMANDS {
            assert!(all.contains(spec.family()));
            let page = help(Some(spec.name)).unwrap();
            for argument in spec.arguments {
                assert!(page.contains(argument.name), "{page}");
            }
            assert!(help(Some(spec.family())).unwrap().contains(spec.name));
        }
        for (word, _) in OWN_WORDS {
            assert!(all.contains(word));
            help(Some(word)).unwrap();
        }
        assert!(help(Some("value.gte")).unwrap_err().contains("value.get"));
        assert!(help(Some("lsit")).unwrap_err().contains("list"));
        assert!(help(Some("frobnicate")).unwrap_err().contains("lists all"));
    }

    #[test]
    fn short_json_stays_as_it_is_and_long_json_is_laid_out() {
        let short = r#"{"value":{"type":"text","data":"x"},"version":1.50}"#;
        assert_eq!(json(short), short);
        let word = "x".repeat(90);
        let long = format!(r#"{{"a":["{word}",{{"b":1}}],"c":18446744073709551615}}"#);
        let lines = [
            "{",
            "  \"a\": [",
            &format!("    \"{word}\","),
            "    {\"b\":1}",
            "  ],",
            "  \"c\": 18446744073709551615",
            "}",
        ];
        let expected = lines.join("\n");
        assert_eq!(json(&long), expected);
        assert_eq!(json("\"a\u{7f}\u{202e}\""), "\"a\\u007f\\u202e\"");
        // Layout of its own does not reach the terminal within a short part.
        let spaced = format!("[\n\"{word}\",\n[1,\r\n2]\n]");
        assert_eq!(json(&spaced), format!("[\n  \"{word}\",\n  [1,  2]\n]"));
    }
}
