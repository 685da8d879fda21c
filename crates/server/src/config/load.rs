//! Layers of configuration: command line over environment over file over default.

use std::{collections::BTreeMap, fmt};

use super::{
    Config, ConfiguredUser, OPTIONS,
    nearest::nearest,
    options::OptionSpec,
    setting::{HIDDEN, Kind, Setting},
    users,
};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File(String),
    /// An environment variable.
    Env(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => f.write_str(path),
            Self::Env(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// Something wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is.
    pub source: Source,
    /// What is wrong, with the value, and what is allowed.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source == Source::Default {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.source, self.problem)
    }
}

/// Everything that is wrong with the configuration, found in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "{} mistake{plural} in the configuration", self.0.len())?;
        for mistake in &self.0 {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// What the configuration is made from. Pure data: nothing is read from the process here.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file's path and text.
    pub file: Option<(String, String)>,
    /// Environment variables; others than `TANDA_*` are ignored.
    pub env: Vec<(String, String)>,
    /// Flags given: the option's key and the value.
    pub flags: Vec<(String, String)>,
}

/// A configuration and where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Each option's value as text, and its source; in the order of [`OPTIONS`].
    pub origins: Vec<(&'static str, String, Source)>,
    /// What is suspicious but not wrong, such as an unknown `TANDA_*` variable.
    pub warnings: Vec<String>,
}

/// Texts of options by key; a stronger layer has replaced a weaker one.
#[derive(Debug, Default)]
pub(super) struct Layers {
    values: BTreeMap<String, (String, Source)>,
    pub(super) users: Vec<ConfiguredUser>,
}

impl Layers {
    /// Reads one option; a wrong value becomes a mistake.
    pub(super) fn read<T: Setting>(
        &self,
        key: &str,
        default: &str,
        range: Option<(&str, &str)>,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<T> {
        let (text, source) = match self.values.get(key) {
            Some((text, source)) => (text.as_str(), source.clone()),
            None => (default, Source::Default),
        };
        let problem = match T::parse(text) {
            Ok(value) => match out_of_range(&value, range) {
                None => return Some(value),
                Some(problem) => problem,
            },
            Err(problem) => problem,
        };
        let problem = if T::KIND == Kind::Secret {
            format!("{key}: {problem}")
        } else {
            format!("{key} = {text:?}: {problem}")
        };
        mistakes.push(Mistake { source, problem });
        None
    }
}

fn out_of_range<T: Setting>(value: &T, range: Option<(&str, &str)>) -> Option<String> {
    let (low_text, high_text) = range?;
    let low = T::parse(low_text).ok()?;
    let high = T::parse(high_text).ok()?;
    (!value.within(&low, &high)).then(|| format!("allowed is {low_text} to {high_text}"))
}

/// Makes the configuration from its sources.
///
/// # Errors
/// All mistakes at once.
pub fn load(sources: &Sources) -> Result<Loaded, Mistakes> {
    let mut layers = Layers::default();
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    if let Some((path, text)) = &sources.file {
        read_file(path, text, &mut layers, &mut mistakes);
    }
    read_env(&sources.env, &mut layers, &mut warnings);
    for (key, text) in &sources.flags {
        let source = Source::Flag(key.replace(['.', '_'], "-"));
        layers.values.insert(key.clone(), (text.clone(), source));
    }
    let config = Config::resolve(&layers, &mut mistakes);
    if let Some(config) = &config {
        mistakes.extend(config.contradictions().into_iter().map(|problem| Mistake {
            source: Source::Default,
            problem,
        }));
    }
    match config {
        Some(config) if mistakes.is_empty() => Ok(Loaded {
            config,
            origins: origins(&mut layers),
            warnings,
        }),
        _ => Err(Mistakes(mistakes)),
    }
}

fn origins(layers: &mut Layers) -> Vec<(&'static str, String, Source)> {
    let of = |spec: &OptionSpec| match layers.values.remove(spec.key) {
        Some((_, source)) if spec.kind == Kind::Secret => (spec.key, HIDDEN.to_owned(), source),
        Some((text, source)) => (spec.key, text, source),
        None => (spec.key, spec.default.to_owned(), Source::Default),
    };
    OPTIONS.iter().map(of).collect()
}

/// Variables that are ours and no options of the broker: where its file is, and where the commands
/// of an operator find it.
const NO_OPTIONS: [&str; 9] = [
    "TANDA_CONFIG",
    "TANDA_ADDR",
    "TANDA_API_KEY",
    "TANDA_API_KEY_FILE",
    "TANDA_TLS",
    "TANDA_CA",
    "TANDA_CLIENT_CERT",
    "TANDA_CLIENT_KEY",
    "TANDA_SERVER_NAME",
];

fn read_env(env: &[(String, String)], layers: &mut Layers, warnings: &mut Vec<String>) {
    for (name, text) in env.iter().filter(|(name, _)| name.starts_with("TANDA_")) {
        if let Some(spec) = OPTIONS.iter().find(|spec| spec.env() == *name) {
            layers.values.insert(
                spec.key.to_owned(),
                (text.clone(), Source::Env(name.clone())),
            );
        } else if !NO_OPTIONS.contains(&name.as_str()) {
            // A warning only: orchestrators put variables of their own under a service's name.
            let names: Vec<String> = OPTIONS.iter().map(OptionSpec::env).collect();
            let hint = nearest(name, names.iter().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            warnings.push(format!(
                "the environment variable {name} is no option{hint}"
            ));
        }
    }
}

fn read_file(path: &str, text: &str, layers: &mut Layers, mistakes: &mut Vec<Mistake>) {
    let source = Source::File(path.to_owned());
    let mut table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            // Not the line itself: it may hold a secret.
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let problem = format!("line {line}: {}", error.message());
            mistakes.push(Mistake { source, problem });
            return;
        }
    };
    let mut problems = Vec::new();
    if let Some(value) = table.remove("users") {
        layers.users = users::read(value, &mut problems);
    }
    mistakes.extend(problems.into_iter().map(|problem| Mistake {
        source: source.clone(),
        problem,
    }));
    let mut flat = Vec::new();
    flatten("", table, &mut flat);
    for (key, value) in flat {
        let problem = match spec_of(&key) {
            None => Some(unknown_key(&key)),
            Some(spec) => match text_of(spec, &value) {
                Ok(text) => {
                    let value = (text, source.clone());
                    layers.values.insert(spec.key.to_owned(), value);
                    None
                }
                Err(problem) => Some(problem),
            },
        };
        mistakes.extend(problem.map(|problem| Mistake {
            source: source.clone(),
            problem,
        }));
    }
}

/// The option of a key of the file. TOML has no place for a text and a section of one name, so an
/// address may also stand in the section, as `address`.
fn spec_of(key: &str) -> Option<&'static OptionSpec> {
    let named = |key: &str| OPTIONS.iter().find(|spec| spec.key == key);
    let in_section = || key.strip_suffix(".address").and_then(named);
    named(key).or_else(|| in_section().filter(|spec| spec.kind == Kind::Address))
}

fn unknown_key(key: &str) -> String {
    let near = nearest(key, OPTIONS.iter().map(|spec| spec.key));
    let hint = near.map_or_else(
        || "; see docs/configuration.md for all options".to_owned(),
        |near| format!("; did you mean `{near}`?"),
    );
    format!("unknown option `{key}`{hint}")
}

/// Tables become dotted keys. An empty table of an unknown name is named too.
fn flatten(prefix: &str, table: toml::Table, flat: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, flat),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => flat.push((key, value)),
        }
    }
}

/// The text that the value would have as a flag; an error when the file's type does not fit.
fn text_of(spec: &OptionSpec, value: &toml::Value) -> Result<String, String> {
    match (spec.kind, value) {
        (_, toml::Value::String(text)) => Ok(text.clone()),
        (Kind::Flag, toml::Value::Boolean(on)) => Ok(on.to_string()),
        (Kind::Choice(words), toml::Value::Boolean(on)) if words.contains(&"true") => {
            Ok(on.to_string())
        }
        (Kind::List, toml::Value::Array(items)) => {
            let words: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            words
                .map(|words| words.join(","))
                .ok_or_else(|| format!("{}: expected an array of strings", spec.key))
        }
        // A number where a unit is needed is passed on: the option's own error says so.
        (Kind::Count | Kind::Duration | Kind::Size, toml::Value::Integer(number)) => {
            Ok(number.to_string())
        }
        (kind, other) => Err(format!(
            "{} = {}: expected a {}, like {:?}",
            spec.key,
            other.type_str(),
            kind.name(),
            spec.default
        )),
    }
}
