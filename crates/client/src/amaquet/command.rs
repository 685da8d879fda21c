//! Commands: a name and arguments, as JSON.

use std::fmt;
use std::time::Duration;

use tanda_wire::amaquet::command::{COMMANDS, Permission};
use tanda_wire::amaquet::json::{Json, JsonError, Writer};

use super::payload::{JsonText, Payload};
use crate::message::whole_ms;

/// A command that is being made: its name, and its arguments one by one.
///
/// The names and arguments of all commands are in `docs/amaquet-commands.md`.
#[derive(Clone)]
#[must_use = "AmaquetClient::run() runs it"]
pub struct Command {
    name: String,
    /// An object without its last brace.
    json: Vec<u8>,
}

/// A value that can be an argument.
pub trait Argument {
    /// Writes it.
    fn write(&self, out: &mut Writer<'_>);
}

impl Command {
    /// Begins one: `value.get`, for example.
    pub fn new(name: &str) -> Self {
        let mut json = b"{\"command\":".to_vec();
        Writer::new(&mut json).str(name);
        Self {
            name: name.to_owned(),
            json,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, name: &str, value: impl Argument) -> Self {
        self.json.push(b',');
        value.write(Writer::new(&mut self.json).key(name));
        self
    }

    /// Adds an argument if there is one.
    pub fn maybe(self, name: &str, value: Option<impl Argument>) -> Self {
        match value {
            Some(value) => self.arg(name, value),
            None => self,
        }
    }

    /// Adds a time in milliseconds if there is one.
    pub(crate) fn ms(self, name: &str, time: Option<Duration>) -> Self {
        self.maybe(name, time.map(whole_ms))
    }

    /// Reads a whole command: an object with `command` and its arguments.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_json(text: &str) -> Result<Self, CommandError> {
        let json = Json::parse(text.as_bytes()).map_err(CommandError::Json)?;
        let fields = json.as_object().ok_or(CommandError::NotAnObject)?;
        let name = fields
            .filter(|(key, _)| key == "command")
            .last()
            .and_then(|(_, name)| name.as_str())
            .ok_or(CommandError::NoName)?
            .into_owned();
        let open = json.text().strip_suffix('}').unwrap_or_default();
        let json = open.as_bytes().to_vec();
        Ok(Self { name, json })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It changes nothing, so that doing it twice does no harm.
    pub(crate) fn only_reads(&self) -> bool {
        let spec = COMMANDS.iter().find(|spec| spec.name == self.name);
        spec.is_some_and(|spec| match spec.permission {
            Permission::Nothing => true,
            Permission::Read => spec.family() != "queue" || spec.name == "queue.peek",
            Permission::Admin => matches!(spec.name, "server.info" | "queue.stats"),
            Permission::Write => false,
        })
    }

    pub(crate) fn into_payload(mut self) -> Vec<u8> {
        self.json.push(b'}');
        self.json
    }
}

/// As JSON.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}}}", String::from_utf8_lossy(&self.json))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}

/// Why a text is no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandError {
    /// It is no JSON.
    Json(JsonError),
    /// It is no object.
    NotAnObject,
    /// It has no `command`, or it is no string.
    NoName,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::NotAnObject => f.write_str("a command is a JSON object"),
            Self::NoName => f.write_str(
                "a command has its name in \"command\", as in {\"command\":\"server.ping\"}",
            ),
        }
    }
}

impl std::error::Error for CommandError {}

impl<T: Argument + ?Sized> Argument for &T {
    fn write(&self, out: &mut Writer<'_>) {
        (**self).write(out);
    }
}

impl<T: Argument> Argument for [T] {
    fn write(&self, out: &mut Writer<'_>) {
        out.array(|out| {
            for value in self {
                value.write(out);
            }
        });
    }
}

impl<T: Argument> Argument for Vec<T> {
    fn write(&self, out: &mut Writer<'_>) {
        self.as_slice().write(out);
    }
}

impl Argument for str {
    fn write(&self, out: &mut Writer<'_>) {
        out.str(self);
    }
}

impl Argument for String {
    fn write(&self, out: &mut Writer<'_>) {
        out.str(self);
    }
}

impl Argument for bool {
    fn write(&self, out: &mut Writer<'_>) {
        out.bool(*self);
    }
}

impl Argument for u64 {
    fn write(&self, out: &mut Writer<'_>) {
        out.u64(*self);
    }
}

impl Argument for u32 {
    fn write(&self, out: &mut Writer<'_>) {
        out.u64(u64::from(*self));
    }
}

impl Argument for i64 {
    fn write(&self, out: &mut Writer<'_>) {
        out.i64(*self);
    }
}

impl Argument for f64 {
    fn write(&self, out: &mut Writer<'_>) {
        out.f64(*self);
    }
}

impl Argument for Payload {
    fn write(&self, out: &mut Writer<'_>) {
        Self::write(self, out);
    }
}

/// As it is written: a number, a string, an array or whatever it is.
impl Argument for JsonText {
    fn write(&self, out: &mut Writer<'_>) {
        if let Ok(json) = self.value() {
            out.json(json);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(command: Command) -> String {
        String::from_utf8(command.into_payload()).unwrap()
    }

    #[test]
    fn arguments_are_written_as_json() {
        let command = Command::new("value.set")
            .arg("key", "a \"b\"")
            .arg("value", Payload::bytes(vec![0, 255]))
            .ms("ttl_ms", Some(Duration::from_secs(2)))
            .maybe("if_version", None::<u64>)
            .arg("more", vec![1_i64, -2]);
        let expected = [
            r#"{"command":"value.set","key":"a \"b\"","#,
            r#""value":{"type":"bytes","data":"AP8="},"ttl_ms":2000,"more":[1,-2]}"#,
        ]
        .concat();
        assert_eq!(text(command), expected);
        assert_eq!(
            text(Command::new("server.ping")),
            r#"{"command":"server.ping"}"#
        );
    }

    #[test]
    fn a_whole_command_stays_as_it_is() {
        let whole = r#"{ "command":"counter.add", "key":"a", "by":18446744073709551615 }"#;
        let command = Command::from_json(whole).unwrap();
        assert_eq!(command.name(), "counter.add");
        assert_eq!(
            text(command.arg("ttl_ms", 1_u64)),
            whole.replace(" }", " ,\"ttl_ms\":1}")
        );
        assert_eq!(
            Command::from_json("[]").unwrap_err(),
            CommandError::NotAnObject
        );
        assert_eq!(Command::from_json("{}").unwrap_err(), CommandError::NoName);
        assert!(matches!(
            Command::from_json("{"),
            Err(CommandError::Json(_))
        ));
    }

    #[test]
    fn what_only_reads_may_be_repeated() {
        for reads in [
            "value.get",
            "server.ping",
            "queue.peek",
            "queue.stats",
            "key.scan",
        ] {
            assert!(Command::new(reads).only_reads(), "{reads}");
        }
        for changes in [
            "value.set",
            "queue.pop",
            "queue.ack",
            "key.delete",
            "list.pop",
            "new",
        ] {
            assert!(!Command::new(changes).only_reads(), "{changes}");
        }
    }
}
