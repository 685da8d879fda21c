//! What is typed as a command.
//!
//! Owns: how words become arguments of the types that the table of commands declares.
//! Refuses to know: lines and their quotes, and what commands do.

use std::fs;

use tanda_client::amaquet::{
    ArgumentSpec, COMMANDS, Command, Json, JsonText, Payload, Spec, ValueType,
};

use crate::durations;

/// The command that these words are: a name, then arguments as `name=value`, or values alone for
/// the arguments that must be there, in their order.
pub(super) fn command(words: &[String]) -> Result<Command, String> {
    let Some((name, rest)) = words.split_first() else {
        return Err("there is no command".to_owned());
    };
    if name.starts_with('{') {
        if !rest.is_empty() {
            return Err("nothing can stand behind a command that is JSON".to_owned());
        }
        return Command::from_json(name).map_err(|error| error.to_string());
    }
    let spec = find(name)?;
    if let [json] = rest
        && json.starts_with('{')
    {
        return from_object(spec, json);
    }
    let mut given = Given::new(spec);
    for word in rest {
        given.take(word)?;
    }
    given.finish()
}

/// The command of a name.
pub(super) fn find(name: &str) -> Result<&'static Spec, String> {
    let found = COMMANDS.iter().find(|spec| spec.name == name);
    found.ok_or_else(|| {
        let near = nearest(name, COMMANDS.iter().map(|spec| spec.name));
        match near {
            Some(near) => format!("there is no command {name:?}; did you mean {near}?"),
            None => format!("there is no command {name:?}; `help` lists all"),
        }
    })
}

/// The name that was meant, if one is near.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |it: &'a str| {
        let score = distance(name, it);
        // Of those equally near one that begins alike is likelier.
        let begins_otherwise = it.chars().next() != name.chars().next();
        (score <= 1 + name.len() / 3).then_some((score, begins_otherwise, it))
    };
    let nearest = names.into_iter().filter_map(near).min();
    nearest.map(|(.., name)| name)
}

/// How many letters must be put in, taken out or changed to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut left = at + 1;
        let mut next = vec![left];
        for (b, above) in other.iter().zip(row.windows(2)) {
            let [diagonal, above] = above else {
                continue;
            };
            left = (diagonal + usize::from(a != *b)).min(above.min(&left) + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn from_object(spec: &Spec, json: &str) -> Result<Command, String> {
    let text = JsonText::parse(json).map_err(|error| error.to_string())?;
    let object = text.value().ok().and_then(Json::as_object);
    let mut command = Command::new(spec.name);
    for (name, value) in object.into_iter().flatten() {
        let value = JsonText::parse(value.text()).map_err(|error| error.to_string())?;
        command = command.arg(&name, value);
    }
    Ok(command)
}

/// What was given for one argument.
#[derive(Debug, Default)]
struct Values(Vec<String>);

/// The arguments of a command so far, each as JSON.
struct Given {
    spec: &'static Spec,
    values: Vec<(&'static ArgumentSpec, Values)>,
}

impl Given {
    const fn new(spec: &'static Spec) -> Self {
        Self {
            spec,
            values: Vec::new(),
        }
    }

    fn take(&mut self, word: &str) -> Result<(), String> {
        match named(word) {
            Some((name, form, value)) => match self.argument(name) {
                Some(argument) => self.add(argument, form, value),
                None => Err(self.unknown(name)),
            },
            None => match self.next_place() {
                Some(argument) => self.add(argument, None, word),
                None => Err(format!(
                    "{} takes no further value without a name, and {word:?} has none; {}",
                    self.spec.name,
                    usage(self.spec)
                )),
            },
        }
    }

    fn argument(&self, name: &str) -> Option<&'static ArgumentSpec> {
        self.spec.arguments.iter().find(|it| it.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        let near = nearest(name, self.spec.arguments.iter().map(|it| it.name));
        let meant = near.map(|it| format!("; did you mean {it}?"));
        format!(
            "{} has no argument {name:?}{}; {} (a value with a = in it needs its name too, as in \
             key=a=b)",
            self.spec.name,
            meant.unwrap_or_default(),
            usage(self.spec)
        )
    }

    /// The argument that a value without a name is for.
    fn next_place(&self) -> Option<&'static ArgumentSpec> {
        let required = self.spec.arguments.iter().filter(|it| it.required);
        let is_open = |it: &&ArgumentSpec| !self.has(it.name) || is_list(it.value_type);
        required.into_iter().find(is_open)
    }

    fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(it, _)| it.name == name)
    }

    fn add(
        &mut self,
        argument: &'static ArgumentSpec,
        form: Option<&str>,
        text: &str,
    ) -> Result<(), String> {
        let values = values_of(argument, form, text)
            .map_err(|problem| format!("{} {}: {problem}", self.spec.name, argument.name))?;
        if let Some((_, found)) = self
            .values
            .iter_mut()
            .find(|(it, _)| it.name == argument.name)
        {
            if !is_list(argument.value_type) {
                return Err(format!(
                    "{} {} is there twice",
                    self.spec.name, argument.name
                ));
            }
            found.0.extend(values);
        } else {
            self.values.push((argument, Values(values)));
        }
        Ok(())
    }

    fn finish(self) -> Result<Command, String> {
        let missing: Vec<&str> = self
            .spec
            .arguments
            .iter()
            .filter(|it| it.required && !self.has(it.name))
            .map(|it| it.name)
            .collect();
        if !missing.is_empty() {
            return Err(format!(
                "{} misses {}; {}",
                self.spec.name,
                missing.join(" and "),
                usage(self.spec)
            ));
        }
        let mut command = Command::new(self.spec.name);
        for (argument, values) in self.values {
            let text = if is_list(argument.value_type) {
                format!("[{}]", values.0.join(","))
            } else {
                values.0.concat()
            };
            let json = JsonText::parse(&text).map_err(|error| error.to_string())?;
            command = command.arg(argument.name, json);
        }
        Ok(command)
    }
}

/// The arguments of a command that these words, which stand behind its name, do not give.
pub(super) fn left(spec: &'static Spec, words: &[String]) -> Vec<&'static ArgumentSpec> {
    let mut left: Vec<&ArgumentSpec> = spec.arguments.iter().collect();
    for word in words {
        let name = match named(word) {
            Some((name, ..)) => Some(name),
            None => left.iter().find(|it| it.required).map(|it| it.name),
        };
        left.retain(|it| Some(it.name) != name);
    }
    left
}

/// How a command is written.
pub(super) fn usage(spec: &Spec) -> String {
    let mut text = spec.name.to_owned();
    for argument in spec.arguments {
        let name = argument.name;
        let value = argument.value_type.name();
        text.push_str(&match argument.required {
            true => format!(" {name}={value}"),
            false => format!(" [{name}={value}]"),
        });
    }
    format!("write {text}")
}

/// `name=value` or `name:form=value`.
pub(super) fn named(word: &str) -> Option<(&str, Option<&str>, &str)> {
    let (left, value) = word.split_once('=')?;
    let (name, form) = match left.split_once(':') {
        Some((name, form)) => (name, Some(form)),
        None => (left, None),
    };
    let is_name = |it: &str| {
        let mut letters = it.bytes();
        !it.is_empty() && letters.all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    let is_form = |it: &str| it.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_name(name) && form.is_none_or(is_form)).then_some((name, form, value))
}

const fn is_list(value_type: ValueType) -> bool {
    matches!(
        value_type,
        ValueType::Payloads | ValueType::Strings | ValueType::Messages
    )
}

/// The JSON of a value: of a list all its items, one by one.
fn values_of(
    argument: &ArgumentSpec,
    form: Option<&str>,
    text: &str,
) -> Result<Vec<String>, String> {
    if let Some(form) = form {
        if !matches!(
            argument.value_type,
            ValueType::Payload | ValueType::Payloads | ValueType::Messages
        ) {
            return Err(format!("only payloads have forms, and {form:?} is given"));
        }
        let payload = payload_as(form, text)?;
        let is_message = argument.value_type == ValueType::Messages;
        return Ok(vec![match is_message {
            true => format!("{{\"payload\":{payload}}}"),
            false => payload,
        }]);
    }
    if is_list(argument.value_type)
        && text.starts_with('[')
        && let Ok(list) = JsonText::parse(text)
        && let Ok(items) = list.value()
    {
        let items = items.as_array().into_iter().flatten();
        return Ok(items.map(|it| it.text().to_owned()).collect());
    }
    let value = match argument.value_type {
        ValueType::String | ValueType::Strings => quoted(text),
        ValueType::Payload | ValueType::Payloads => payload(text),
        ValueType::Messages => message(text),
        ValueType::Bool => match text {
            "true" | "false" => text.to_owned(),
            _ => return Err(format!("{text:?} is neither true nor false")),
        },
        ValueType::I64 | ValueType::U64 => integer(argument, text)?,
        ValueType::Number | ValueType::Object => JsonText::parse(text)
            .map_err(|error| format!("{text:?} is no JSON: {error}"))?
            .as_str()
            .to_owned(),
    };
    Ok(vec![value])
}

/// An integer; where it is a time in milliseconds, a duration with units will do.
fn integer(argument: &ArgumentSpec, text: &str) -> Result<String, String> {
    let is_integer = text.parse::<u64>().is_ok()
        || (argument.value_type == ValueType::I64 && text.parse::<i64>().is_ok());
    if is_integer {
        return Ok(text.strip_prefix('+').unwrap_or(text).to_owned());
    }
    if argument.name.ends_with("_ms") {
        let duration = durations::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
        return Ok(duration.as_millis().to_string());
    }
    Err(format!(
        "{text:?} is not {}",
        argument.value_type.described()
    ))
}

/// JSON where the text is that, otherwise a text.
fn payload(text: &str) -> String {
    match JsonText::parse(text) {
        Ok(json) => json.as_str().to_owned(),
        Err(_) => JsonText::of(Payload::text(text)).to_string(),
    }
}

fn message(text: &str) -> String {
    let json = JsonText::parse(text).ok();
    match json.filter(|it| it.as_str().starts_with('{')) {
        Some(json) => json.as_str().to_owned(),
        None => format!("{{\"payload\":{}}}", payload(text)),
    }
}

fn payload_as(form: &str, text: &str) -> Result<String, String> {
    let payload = match form {
        "text" => Payload::text(text),
        "json" => Payload::json(text).map_err(|error| format!("{text:?} is no JSON: {error}"))?,
        "file" => {
            let bytes = fs::read(text).map_err(|error| format!("cannot read {text:?}: {error}"))?;
            Payload::bytes(bytes)
        }
        "base64" => {
            let object = format!("{{\"type\":\"bytes\",\"data\":{}}}", quoted(text));
            return Ok(object);
        }
        _ => {
            return Err(format!(
                "there is no form {form:?}: text, json, base64 and file are"
            ));
        }
    };
    Ok(JsonText::of(payload).to_string())
}

fn quoted(text: &str) -> String {
    JsonText::of(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(line: &str) -> String {
        let words = super::super::words::split(line).unwrap();
        let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
        match command(&words) {
            Ok(command) => command.to_string(),
            Err(problem) => format!("! {problem}"),
        }
    }

    #[test]
    fn values_have_the_types_of_their_arguments() {
        let cases = [
            ("server.ping", r#"{"command":"server.ping"}"#),
            ("value.get a", r#"{"command":"value.get","key":"a"}"#),
            ("value.get key=1", r#"{"command":"value.get","key":"1"}"#),
            (
                "value.set a hello ttl_ms=1m30s if_absent=true",
                concat!(
                    r#"{"command":"value.set","key":"a","value":{"type":"text","data":"hello"},"#,
                    r#""ttl_ms":90000,"if_absent":true}"#
                ),
            ),
            (
                r#"value.set a {"b": [1]}"#,
                r#"{"command":"value.set","key":"a","value":{"b": [1]}}"#,
            ),
            (
                "value.set a value:text=12",
                r#"{"command":"value.set","key":"a","value":{"type":"text","data":"12"}}"#,
            ),
            (
                "value.set key=a=b value:base64=AP8=",
                r#"{"command":"value.set","key":"a=b","value":{"type":"bytes","data":"AP8="}}"#,
            ),
            (
                "counter.add n by=-5",
                r#"{"command":"counter.add","key":"n","by":-5}"#,
            ),
            (
                "list.push l 1 two 'a b' side=front",
                concat!(
                    r#"{"command":"list.push","key":"l","values":[1,{"type":"text","data":"two"},"#,
                    r#"{"type":"text","data":"a b"}],"side":"front"}"#
                ),
            ),
            (
                r#"set.add s a members=b members=["c","d e"]"#,
                r#"{"command":"set.add","key":"s","members":["a","b","c","d e"]}"#,
            ),
            (
                r#"queue.push q x {"payload":1,"weight":2}"#,
                concat!(
                    r#"{"command":"queue.push","queue":"q","messages":[{"payload":"#,
                    r#"{"type":"text","data":"x"}},{"payload":1,"weight":2}]}"#
                ),
            ),
            (
                r#"value.get {"key": "a"}"#,
                r#"{"command":"value.get","key":"a"}"#,
            ),
            (
                r#"{"command": "no.such", "n": 1}"#,
                r#"{"command": "no.such", "n": 1}"#,
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(made(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_says_what_to_do() {
        let cases = [
            ("value.gte a", "did you mean value.get?"),
            ("frobnicate", "`help` lists all"),
            (
                "value.set a",
                "misses value; write value.set key=string value=payload",
            ),
            ("value.get a kye=b", "did you mean key?"),
            ("value.get a b", "takes no further value"),
            ("value.get a key=b", "is there twice"),
            ("counter.add n by=x", "\"x\" is not an integer of 64 bits"),
            ("value.set a b ttl_ms=5x", "write it like 250ms"),
            ("value.set a b if_absent=yes", "neither true nor false"),
            ("value.set a value:xml=b", "text, json, base64 and file"),
            ("value.get key:text=b", "only payloads have forms"),
            ("value.set a value:file=/no/such", "cannot read"),
            ("{} x", "nothing can stand behind"),
            ("{}", "\"command\""),
        ];
        for (line, said) in cases {
            let made = made(line);
            assert!(
                made.starts_with("! ") && made.contains(said),
                "{line}: {made}"
            );
        }
    }

    #[test]
    fn letters_between_names_are_counted() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("value.get", "value.get"), 0);
    }
}
