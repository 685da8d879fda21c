//! Which bindings of a headers exchange match a message's headers.

use core::cell::OnceCell;
use std::borrow::Cow;

use tanda_wire::amqp::{Properties, ShortStr, Table, TableWriter, Value};
use tanda_wire::mapping::write_amqp_table;

use super::args;
use super::exchange::Target;
use crate::{Content, Form, TopologyCode, TopologyError};

/// Headers that become larger than this in AMQP's form match nothing.
const HEADERS_BYTES_MAX: usize = 1 << 20;

/// The argument that says how a binding matches.
const MATCH: &[u8] = b"x-match";

/// How many of a binding's arguments must be among the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    All,
    Any,
}

/// A binding's arguments as they match headers.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) target: Target,
    pub(super) key: Box<str>,
    pub(super) args: Box<[u8]>,
    mode: Mode,
    /// Arguments that begin with `x-` count like others.
    with_x: bool,
}

impl Rule {
    /// # Errors
    /// When the arguments do not say how to match as they should.
    pub(super) fn new(
        target: Target,
        key: Box<str>,
        args: Box<[u8]>,
    ) -> Result<Self, TopologyError> {
        let (mode, with_x) = mode_of(args::table(&args)?)?;
        Ok(Self {
            target,
            key,
            args,
            mode,
            with_x,
        })
    }

    pub(super) fn matches(&self, headers: &[(&[u8], Value<'_>)]) -> bool {
        let is_there = |(name, wanted): (&[u8], Value<'_>)| {
            let found = headers.iter().find(|(header, _)| *header == name);
            found.is_some_and(|(_, value)| wanted == Value::Void || args::is_same(&wanted, value))
        };
        match self.mode {
            Mode::All => self.wanted().all(is_there),
            Mode::Any => self.wanted().any(is_there),
        }
    }

    fn wanted(&self) -> impl Iterator<Item = (&[u8], Value<'_>)> {
        let table = Table::new(&self.args).unwrap_or_default();
        let entries = table.iter().map_while(Result::ok);
        let all = entries.map(|entry| (entry.key.as_bytes(), entry.value));
        all.filter(|(name, _)| *name != MATCH && (self.with_x || !name.starts_with(b"x-")))
    }
}

fn mode_of(args: Table<'_>) -> Result<(Mode, bool), TopologyError> {
    let refused = |text| Err(TopologyError::new(TopologyCode::PreconditionFailed, text));
    let mut entries = args.iter().map_while(Result::ok);
    let Some(entry) = entries.find(|entry| entry.key.as_bytes() == MATCH) else {
        return Ok((Mode::All, false));
    };
    let Some(mode) = entry.value.as_long_string() else {
        let (name, value) = (entry.value.type_name(), args::said(&entry.value));
        return refused(format!(
            "Invalid x-match field type {name} (value {value}); expected longstr"
        ));
    };
    match mode {
        b"all" => Ok((Mode::All, false)),
        b"any" => Ok((Mode::Any, false)),
        b"all-with-x" => Ok((Mode::All, true)),
        b"any-with-x" => Ok((Mode::Any, true)),
        other => {
            let other = String::from_utf8_lossy(other);
            refused(format!(
                "Invalid x-match field value <<\"{other}\">>; expected all, any, all-with-x, or \
                 any-with-x"
            ))
        }
    }
}

/// A message's headers, decoded when the first headers exchange asks for them.
#[derive(Debug)]
pub(super) struct MessageHeaders<'a> {
    content: Content<'a>,
    table: OnceCell<Cow<'a, [u8]>>,
}

impl<'a> MessageHeaders<'a> {
    pub(super) const fn new(content: Content<'a>) -> Self {
        Self {
            content,
            table: OnceCell::new(),
        }
    }

    /// Names and values, in AMQP's form.
    pub(super) fn entries(&self) -> Vec<(&[u8], Value<'_>)> {
        let table = self.table.get_or_init(|| table_of(self.content));
        let entries = Table::new(table).unwrap_or_default();
        let entries = entries.iter().map_while(Result::ok);
        entries
            .map(|entry| (entry.key.as_bytes(), entry.value))
            .collect()
    }
}

/// The entries of a message's headers as a table of AMQP.
fn table_of(content: Content<'_>) -> Cow<'_, [u8]> {
    match content.form() {
        Form::Amqp => {
            let properties = Properties::decode(content.properties()).ok();
            let headers = properties.and_then(|properties| properties.headers());
            Cow::Borrowed(headers.unwrap_or_default().as_bytes())
        }
        Form::Fire => {
            let map = content.fire_message().headers;
            let mut table = Vec::new();
            match write_amqp_table(&mut table, map, HEADERS_BYTES_MAX) {
                Ok(()) => Cow::Owned(table),
                Err(_) => Cow::Borrowed(&[]),
            }
        }
        Form::Fila => {
            let mut table = Vec::new();
            let mut writer = TableWriter::new(&mut table);
            for (name, value) in content.headers() {
                let name = core::str::from_utf8(&name).ok();
                let name = name.and_then(|name| ShortStr::try_from(name).ok());
                let value = core::str::from_utf8(&value).ok();
                if let (Some(name), Some(value)) = (name, value) {
                    writer.value(name, &Value::text(value));
                }
            }
            Cow::Owned(table)
        }
    }
}
