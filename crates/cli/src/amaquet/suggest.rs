//! What could be typed next.
//!
//! Owns: completions and the hint behind the cursor. Refuses to know: the editor of lines, and how
//! keys of the broker are found.

use tanda_client::amaquet::{ArgumentSpec, COMMANDS, Spec, ValueType};

use super::{arguments, page::OWN_WORDS, words};

/// Finds the keys that begin with a text.
pub(super) trait KeyNames {
    /// Some of them.
    fn beginning_with(&self, text: &str) -> Vec<String>;
}

/// Where what is completed begins, and what can stand there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completions {
    pub(super) start: usize,
    pub(super) texts: Vec<String>,
}

/// Completions at the end of this part of a line.
pub(super) fn complete(line: &str, keys: &dyn KeyNames) -> Completions {
    let none = Completions {
        start: line.len(),
        texts: Vec::new(),
    };
    let Ok(mut found) = words::split(line) else {
        return none;
    };
    let is_new = line.is_empty() || line.ends_with(char::is_whitespace);
    let (start, prefix) = match found.pop_if(|_| !is_new) {
        Some(word) => (word.start, word.text),
        None => (line.len(), String::new()),
    };
    // A word in quotes would be replaced by one without.
    if line.get(start..) != Some(&prefix) {
        return none;
    }
    let before: Vec<String> = found.into_iter().map(|word| word.text).collect();
    let texts = match before.split_first() {
        None => first_words(&prefix),
        Some((word, [])) if word == "help" => help_words(&prefix),
        Some((word, given)) => match arguments::find(word) {
            Ok(spec) => argument_words(spec, given, &prefix, keys),
            Err(_) => Vec::new(),
        },
    };
    Completions { start, texts }
}

fn first_words(prefix: &str) -> Vec<String> {
    let own = OWN_WORDS.iter().map(|(word, _)| format!("{word} "));
    if prefix.contains('.') {
        return beginning(commands().map(|name| format!("{name} ")), prefix);
    }
    let mut families = beginning(families(), prefix);
    let own = beginning(own, prefix);
    if let [family] = families.as_slice()
        && own.is_empty()
    {
        let family = format!("{family}.");
        families = beginning(commands().map(|name| format!("{name} ")), &family);
    } else {
        families = families.iter().map(|family| format!("{family}.")).collect();
    }
    families.into_iter().chain(own).collect()
}

fn help_words(prefix: &str) -> Vec<String> {
    if prefix.contains('.') {
        return beginning(commands().map(String::from), prefix);
    }
    let own = OWN_WORDS.iter().map(|(word, _)| String::from(*word));
    beginning(families().chain(own), prefix)
}

fn argument_words(
    spec: &'static Spec,
    given: &[String],
    prefix: &str,
    keys: &dyn KeyNames,
) -> Vec<String> {
    let left = arguments::left(spec, given);
    if let Some((name, None, value)) = arguments::named(prefix) {
        let argument = spec.arguments.iter().find(|it| it.name == name);
        return argument.map_or(Vec::new(), |argument| {
            let values = values(spec, argument, value, keys);
            let values = values.iter().map(|value| format!("{name}={value}"));
            values.map(|it| format!("{it} ")).collect()
        });
    }
    let names = left.iter().map(|it| format!("{}=", it.name));
    let mut texts = beginning(names, prefix);
    if let Some(next) = left.iter().find(|it| it.required)
        && !prefix.is_empty()
    {
        let values = values(spec, next, prefix, keys);
        texts.extend(values.iter().map(|value| format!("{value} ")));
    }
    texts
}

/// What an argument can be.
fn values(spec: &Spec, argument: &ArgumentSpec, prefix: &str, keys: &dyn KeyNames) -> Vec<String> {
    if argument.value_type == ValueType::Bool {
        return beginning(["true", "false"].map(String::from), prefix);
    }
    let is_key = matches!(argument.name, "key" | "keys" | "to") && spec.family() != "pubsub";
    if is_key {
        let plain = |name: &String| {
            let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\' | '{' | '[');
            name.chars().all(plain)
        };
        let mut names = keys.beginning_with(prefix);
        names.retain(plain);
        return names;
    }
    // Names that are allowed stand in quotes.
    let allowed = argument.limits.split('"').skip(1).step_by(2);
    beginning(allowed.map(String::from), prefix)
}

fn beginning(texts: impl IntoIterator<Item = String>, prefix: &str) -> Vec<String> {
    let fits = texts.into_iter().filter(|it| it.starts_with(prefix));
    fits.collect()
}

fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|spec| spec.name)
}

fn families() -> impl Iterator<Item = String> {
    let mut families: Vec<&str> = COMMANDS.iter().map(Spec::family).collect();
    families.dedup();
    families.into_iter().map(String::from)
}

/// The arguments that are still to come, to be shown behind the cursor.
pub(super) fn hint(line: &str) -> Option<String> {
    let found = words::split(line).ok()?;
    let found: Vec<String> = found.into_iter().map(|word| word.text).collect();
    let (name, given) = found.split_first()?;
    let is_in_word = !line.ends_with(char::is_whitespace);
    let mut text = match name.as_str() {
        "subscribe" | "unsubscribe" => ["KEY", "CHANNEL"]
            .into_iter()
            .skip(given.len())
            .fold(String::new(), |text, word| format!("{text} {word}")),
        name => {
            let spec = COMMANDS.iter().find(|spec| spec.name == name)?;
            let left = arguments::left(spec, given);
            left.iter()
                .fold(String::new(), |text, it| match it.required {
                    true => format!("{text} {}=", it.name),
                    false => format!("{text} [{}=]", it.name),
                })
        }
    };
    if !is_in_word {
        text = text.trim_start().to_owned();
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Keys;

    impl KeyNames for Keys {
        fn beginning_with(&self, text: &str) -> Vec<String> {
            beginning(["alpha", "al pha", "beta"].map(String::from), text)
        }
    }

    fn texts(line: &str) -> Vec<String> {
        complete(line, &Keys).texts
    }

    #[test]
    fn commands_are_completed_by_family() {
        let all = texts("");
        assert!(all.contains(&"value.".to_owned()) && all.contains(&"help ".to_owned()));
        assert!(!all.iter().any(|it| it.contains("value.get")));
        assert_eq!(texts("val").first().unwrap(), "value.set ");
        assert_eq!(texts("s"), ["server.", "set.", "subscribe ", "status "]);
        assert_eq!(texts("value.get"), ["value.get ", "value.get_many "]);
        assert_eq!(texts("help val"), ["value"]);
        assert_eq!(texts("help value.sw"), ["value.swap"]);
        assert!(texts("frobnicate a").is_empty());
    }

    #[test]
    fn arguments_and_their_values_are_completed() {
        assert_eq!(texts("counter.add "), ["key=", "by=", "ttl_ms="]);
        assert_eq!(texts("counter.add key=a "), ["by=", "ttl_ms="]);
        assert_eq!(texts("counter.add a b"), ["by="]);
        assert_eq!(texts("list.push l x side="), ["side=front ", "side=back "]);
        assert_eq!(texts("value.set a b if_absent=t"), ["if_absent=true "]);
        assert_eq!(texts("value.get key=a"), ["key=alpha "]);
        assert_eq!(texts("value.get b"), ["beta "]);
        assert_eq!(complete("value.get  al", &Keys).start, 11);
        assert!(texts("value.get \"al").is_empty());
        assert!(texts("pubsub.publish b").is_empty());
    }

    #[test]
    fn the_hint_is_what_is_still_to_come() {
        assert_eq!(hint("counter.add").unwrap(), " key= [by=] [ttl_ms=]");
        assert_eq!(hint("counter.add ").unwrap(), "key= [by=] [ttl_ms=]");
        assert_eq!(hint("counter.add n by=2 ").unwrap(), "[ttl_ms=]");
        assert_eq!(hint("subscribe bus").unwrap(), " CHANNEL");
        assert_eq!(hint("value.get a"), None);
        assert_eq!(hint("value.ge"), None);
        assert_eq!(hint(""), None);
    }
}
