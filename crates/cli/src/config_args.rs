//! The broker's options as flags: one for each that the server declares.

use std::{
    env,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use tanda_server::config::{self, Kind, Loaded, Mistakes, OPTIONS, OptionSpec, Sources};

/// Read when no other file is named and it exists.
const DEFAULT_FILE: &str = "tanda.toml";
const CONFIG_ENV: &str = "TANDA_CONFIG";

/// The flags that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    file: Option<PathBuf>,
    /// Keys of options and their values.
    flags: Vec<(String, String)>,
}

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) enum ConfigArgsError {
    /// The file cannot be read.
    File { path: PathBuf, source: io::Error },
    /// It is wrong.
    Mistakes(Mistakes),
}

impl ConfigArgs {
    /// Reads file, environment and flags.
    pub(crate) fn load(&self) -> Result<Loaded, ConfigArgsError> {
        let sources = Sources {
            file: self.read_file()?,
            env: env::vars_os().filter_map(text_of).collect(),
            flags: self.flags.clone(),
        };
        config::load(&sources).map_err(ConfigArgsError::Mistakes)
    }

    fn read_file(&self) -> Result<Option<(String, String)>, ConfigArgsError> {
        let named = self
            .file
            .clone()
            .or_else(|| env::var_os(CONFIG_ENV).map(PathBuf::from));
        let path = named.as_deref().unwrap_or_else(|| Path::new(DEFAULT_FILE));
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some((path.display().to_string(), text))),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigArgsError::File {
                path: path.to_owned(),
                source,
            }),
        }
    }
}

/// Variables of ours are plain text; others do not matter.
fn text_of((name, value): (OsString, OsString)) -> Option<(String, String)> {
    let name = name.into_string().ok()?;
    Some((name, value.to_string_lossy().into_owned()))
}

impl fmt::Display for ConfigArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => {
                write!(
                    f,
                    "cannot read the configuration {}: {source}",
                    path.display()
                )
            }
            Self::Mistakes(mistakes) => mistakes.fmt(f),
        }
    }
}

impl Args for ConfigArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Configuration file [env: TANDA_CONFIG] [default: ./tanda.toml, if it exists]");
        command.arg(file).args(OPTIONS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ConfigArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |spec: &OptionSpec| {
            let text = matches.get_one::<String>(spec.key)?;
            Some((spec.key.to_owned(), text.clone()))
        };
        Ok(Self {
            file: matches.get_one::<PathBuf>("config").cloned(),
            flags: OPTIONS.iter().filter_map(given).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Values are read as text and checked with those of the other sources, so that all mistakes are
/// reported at once.
fn flag(spec: &OptionSpec) -> Arg {
    let default = if spec.default.is_empty() {
        "empty"
    } else {
        spec.default
    };
    let arg = Arg::new(spec.key)
        .long(spec.flag())
        .value_name(spec.kind.name().to_uppercase())
        .action(ArgAction::Set)
        .help(format!("{} [default: {default}]", spec.doc.trim()));
    if spec.kind == Kind::Flag {
        return arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true");
    }
    arg
}
