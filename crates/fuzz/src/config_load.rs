//! The broker's configuration from any file, environment and flags.
//!
//! The input is a script of settings (`Part`): well-formed ones of a drawn option in a drawn
//! place, and any text. What is wrong is named with its option, what is right is what was given by
//! the strongest place, and the text of a secret is shown nowhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tanda_server::config::{Kind, Loaded, Mistake, OPTIONS, OptionSpec, Source, Sources, load};

use crate::script::Script;

/// Parts of one input.
const PARTS_MAX: usize = 64;

/// What every secret begins with, and nothing else.
const HUSH: &str = "hush-hush-hush-hush-hush-hush-hush";

/// One part of the configuration; its byte modulo their number is its place in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A line of the file: an option and its value, in quotes or bare.
    Line,
    /// Any text in the file: a length and it.
    Text,
    /// The variable of an option, and its value.
    Env,
    /// Any variable: its name, with `TANDA_` before it, and its value.
    AnyEnv,
    /// The flag of an option, and its value.
    Flag,
    /// The secret: where it stands, and how much of it.
    Secret,
    /// The rest of the input is the rest of the file.
    Rest,
}

impl Part {
    pub(crate) const ALL: [Self; 7] = [
        Self::Line,
        Self::Text,
        Self::Env,
        Self::AnyEnv,
        Self::Flag,
        Self::Secret,
        Self::Rest,
    ];
}

/// Values that are drawn besides any text, an option's default and its bounds.
pub(crate) const VALUES: [&str; 24] = [
    "true",
    "false",
    "0",
    "1",
    "-1",
    "65536",
    "18446744073709551616",
    "1.5",
    "10ms",
    "1h",
    "365d",
    "99999999999999999d",
    "1KiB",
    "64MiB",
    "16777215TiB",
    "auto",
    "required",
    "exponential",
    "127.0.0.1:0",
    "0.0.0.0:5555",
    "[::1]:5556",
    "localhost:15672",
    "",
    "tls.pem",
];

/// The configuration of one input.
#[derive(Debug, Default)]
struct Given {
    file: String,
    /// The file holds nothing but lines of options, each once.
    is_plain: bool,
    in_file: BTreeMap<&'static str, String>,
    sources: Sources,
    /// The word that stands for a secret may be elsewhere too.
    hush_elsewhere: bool,
}

/// Runs one input.
///
/// # Panics
/// When a promise does not hold.
pub fn run(input: &[u8]) {
    let given = read(&mut Script::new(input));
    match load(&given.sources) {
        Ok(loaded) => {
            check_loaded(&given, &loaded);
            check_again(&loaded);
        }
        Err(mistakes) => {
            let text = mistakes.to_string();
            assert!(!mistakes.0.is_empty(), "refused without a reason");
            assert!(given.hush_elsewhere || !text.contains("hush"), "{text}");
            for mistake in &mistakes.0 {
                check_mistake(mistake);
            }
        }
    }
}

fn read(script: &mut Script<'_>) -> Given {
    let mut given = Given {
        is_plain: true,
        ..Given::default()
    };
    for _ in 0..PARTS_MAX {
        if script.is_empty() {
            break;
        }
        let at = script.pick(Part::ALL.len());
        read_part(script, &mut given, Part::ALL.get(at).copied());
    }
    let file = core::mem::take(&mut given.file);
    given.sources.file = Some(("tanda.toml".to_owned(), file));
    given
}

fn read_part(script: &mut Script<'_>, given: &mut Given, part: Option<Part>) {
    match part {
        None | Some(Part::Line) => {
            let spec = option(script);
            let quoted = script.byte().is_multiple_of(2);
            let value = given.value(script, spec);
            given.write_line(spec, &value, quoted);
        }
        Some(Part::Text) => {
            let text = given.text(script.short());
            given.file.push_str(&text);
            given.is_plain = false;
        }
        Some(Part::Env) => {
            let spec = option(script);
            let value = given.value(script, spec);
            given.sources.env.push((spec.env(), value));
        }
        Some(Part::AnyEnv) => {
            let name = format!("TANDA_{}", given.text(script.short()));
            let value = given.text(script.short());
            given.sources.env.push((name, value));
        }
        Some(Part::Flag) => {
            let spec = option(script);
            let value = given.value(script, spec);
            given.sources.flags.push((spec.key.to_owned(), value));
        }
        Some(Part::Secret) => secret(script, given),
        Some(Part::Rest) => {
            let text = given.text(script.rest());
            given.file.push_str(&text);
            given.is_plain = false;
        }
    }
}

fn secret(script: &mut Script<'_>, given: &mut Given) {
    let Some(spec) = OPTIONS.iter().find(|spec| spec.kind == Kind::Secret) else {
        unreachable!("there is an option for a secret");
    };
    let place = script.pick(3);
    let len = script.pick(HUSH.len() + 1).max(4);
    let value = HUSH.get(..len).unwrap_or(HUSH).to_owned();
    match place {
        0 => given.write_line(spec, &value, true),
        1 => given.sources.env.push((spec.env(), value)),
        _ => given.sources.flags.push((spec.key.to_owned(), value)),
    }
}

fn option(script: &mut Script<'_>) -> &'static OptionSpec {
    let at = script.pick(OPTIONS.len());
    let Some(spec) = OPTIONS.get(at) else {
        unreachable!("there are options");
    };
    spec
}

impl Given {
    fn text(&mut self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.hush_elsewhere |= text.contains("hush");
        text
    }

    /// Its default, a bound, a value of the list, or any text.
    fn value(&mut self, script: &mut Script<'_>, spec: &OptionSpec) -> String {
        let byte = usize::from(script.byte());
        match byte {
            0 => return spec.default.to_owned(),
            1 | 2 => {
                if let Some((low, high)) = spec.range {
                    return if byte == 1 { low } else { high }.to_owned();
                }
            }
            _ => {}
        }
        match VALUES.get(byte.wrapping_sub(3)) {
            Some(value) => (*value).to_owned(),
            None => self.text(script.short()),
        }
    }

    fn write_line(&mut self, spec: &'static OptionSpec, value: &str, quoted: bool) {
        let written = if quoted {
            writeln!(self.file, "{} = {value:?}", spec.key)
        } else {
            writeln!(self.file, "{} = {value}", spec.key)
        };
        assert_eq!(written, Ok(()));
        let before = self.in_file.insert(spec.key, value.to_owned());
        self.is_plain &= quoted && before.is_none();
    }
}

/// Every mistake names the option it is about, or the line of the file.
fn check_mistake(mistake: &Mistake) {
    let problem = &mistake.problem;
    let named = OPTIONS.iter().any(|spec| problem.contains(spec.key));
    let in_line = problem.strip_prefix("line ").is_some_and(|rest| {
        let digits = rest.split(':').next().unwrap_or_default();
        digits.parse::<usize>().is_ok()
    });
    let unknown = problem.starts_with("unknown option `");
    let of_file = matches!(mistake.source, Source::File(_));
    assert!(named || of_file && (in_line || unknown), "{mistake}");
    match &mistake.source {
        Source::Env(name) => {
            let is_it = |spec: &OptionSpec| spec.env() == *name && problem.starts_with(spec.key);
            assert!(OPTIONS.iter().any(is_it), "{mistake}");
        }
        Source::Flag(name) => {
            let is_it = |spec: &OptionSpec| spec.flag() == *name && problem.starts_with(spec.key);
            assert!(OPTIONS.iter().any(is_it), "{mistake}");
        }
        Source::File(_) | Source::Default => {}
    }
    let shown = mistake.to_string();
    assert!(shown.ends_with(problem.as_str()), "{shown}");
}

/// What is in force is what the strongest place says.
fn check_loaded(given: &Given, loaded: &Loaded) {
    let shown = format!("{loaded:?}");
    assert!(given.hush_elsewhere || !shown.contains("hush"), "{shown}");
    assert_eq!(loaded.origins.len(), OPTIONS.len());
    for (spec, (key, value, source)) in OPTIONS.iter().zip(&loaded.origins) {
        assert_eq!(spec.key, *key);
        let last = |list: &[(String, String)], name: &str| {
            let all = list.iter().rev();
            let found = all.clone().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone())
        };
        let flag = last(&given.sources.flags, spec.key);
        let env = last(&given.sources.env, &spec.env());
        let file = given.in_file.get(spec.key).cloned();
        let (expected, place) = match (flag, env, file) {
            (Some(value), _, _) => (value, Source::Flag(spec.flag())),
            (None, Some(value), _) => (value, Source::Env(spec.env())),
            (None, None, Some(value)) if given.is_plain => {
                (value, Source::File("tanda.toml".to_owned()))
            }
            (None, None, None) if given.is_plain => (spec.default.to_owned(), Source::Default),
            (None, None, _) => continue,
        };
        assert_eq!(*source, place, "{key}");
        assert!(spec.kind == Kind::Secret || *value == expected, "{key}");
    }
    let named = |warning: &String| {
        let names = given.sources.env.iter().map(|(name, _)| name);
        names.into_iter().any(|name| warning.contains(name))
    };
    assert!(loaded.warnings.iter().all(named), "{:?}", loaded.warnings);
}

/// What it came to can be given as flags, and comes to the same.
fn check_again(loaded: &Loaded) {
    let is_secret = |key: &str| {
        let of = OPTIONS.iter().find(|spec| spec.key == key);
        of.is_some_and(|spec| spec.kind == Kind::Secret)
    };
    let secret = loaded.config.auth_bootstrap_apikey.as_ref();
    let flags = loaded.origins.iter().map(|(key, value, _)| {
        let value = match secret {
            Some(secret) if is_secret(key) => secret.reveal().to_owned(),
            None if is_secret(key) => String::new(),
            _ => value.clone(),
        };
        ((*key).to_owned(), value)
    });
    let sources = Sources {
        flags: flags.collect(),
        ..Sources::default()
    };
    match load(&sources) {
        Ok(again) => {
            let (first, second) = (&loaded.config, &again.config);
            assert_eq!(format!("{first:?}"), format!("{second:?}"));
        }
        Err(mistakes) => unreachable!("taken before, now {mistakes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_drawn_by_one_byte() {
        assert!(OPTIONS.len() < 256, "{}", OPTIONS.len());
        let drawn = |byte: u8| option(&mut Script::new(&[byte])).key;
        let all: std::collections::BTreeSet<_> = (0..=u8::MAX).map(drawn).collect();
        assert_eq!(all.len(), OPTIONS.len());
    }

    #[test]
    fn a_mistake_that_names_nothing_is_noticed() {
        let mistake = |source: Source, problem: &str| Mistake {
            source,
            problem: problem.to_owned(),
        };
        let noticed =
            |mistake: Mistake| std::panic::catch_unwind(move || check_mistake(&mistake)).is_err();
        let flag = Source::Flag("queue-quantum".to_owned());
        assert!(!noticed(mistake(
            flag.clone(),
            "queue.quantum = \"x\": bad"
        )));
        assert!(noticed(mistake(flag, "log.level = \"x\": bad")));
        assert!(noticed(mistake(Source::Default, "something is wrong")));
        let file = Source::File("tanda.toml".to_owned());
        assert!(!noticed(mistake(file.clone(), "line 7: bad")));
        assert!(noticed(mistake(file, "bad")));
    }
}
