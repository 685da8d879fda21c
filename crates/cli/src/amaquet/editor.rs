//! Lines typed on a terminal.
//!
//! Owns: the thread that waits for keys, its history, and printing above what is typed.
//! Refuses to know: what lines mean.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use tanda_client::amaquet::AmaquetClient;
use tokio::runtime::Handle;
use tokio::sync::mpsc as tasks;

use super::suggest::{self, KeyNames};
use super::words;
use crate::failure::Failure;

/// Lines that are kept.
const HISTORY_LINES_MAX: usize = 1000;
/// How long a completion may ask the broker.
const KEYS_WAIT: Duration = Duration::from_millis(500);
/// Keys that a completion shows.
const KEYS_MAX: u64 = 50;

/// What was typed.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
}

type LineEditor = Editor<Suggestions, FileHistory>;

/// A terminal with a thread that reads it when it is asked for.
pub(super) struct Terminal {
    asks: mpsc::Sender<String>,
    typed: tasks::UnboundedReceiver<Typed>,
    printer: Box<dyn ExternalPrinter + Send>,
}

impl Terminal {
    /// Takes the terminal. Lines are kept in the file, if there is one.
    pub(super) fn open(client: &AmaquetClient, history: Option<PathBuf>) -> Result<Self, Failure> {
        let mut editor = editor(client).map_err(|error| failed(&error))?;
        if let Some(path) = &history
            && let Err(error) = editor.load_history(path)
        {
            crate::note::note(format_args!("cannot read {}: {error}", path.display()));
        }
        let printer = editor.create_external_printer();
        let printer = Box::new(printer.map_err(|error| failed(&error))?);
        let (asks, asked) = mpsc::channel();
        let (sender, typed) = tasks::unbounded_channel();
        thread::spawn(move || read(&mut editor, history.as_ref(), &asked, &sender));
        Ok(Self {
            asks,
            typed,
            printer,
        })
    }

    /// Shows the prompt; what is typed comes by [`typed`](Self::typed).
    pub(super) fn ask(&self, prompt: &str) {
        // When the thread is gone, the channel of what was typed has ended.
        drop(self.asks.send(prompt.to_owned()));
    }

    /// What was typed at the last prompt. Nothing is lost when the future is dropped.
    pub(super) async fn typed(&mut self) -> Typed {
        self.typed.recv().await.unwrap_or(Typed::End)
    }

    /// Prints lines, above what is being typed.
    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        let printed = self.printer.print(format!("{text}\n"));
        printed.map_err(|error| failed(&error))
    }
}

fn failed(error: &ReadlineError) -> Failure {
    Failure::io("use the terminal", std::io::Error::other(error.to_string()))
}

fn editor(client: &AmaquetClient) -> rustyline::Result<LineEditor> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES_MAX)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .auto_add_history(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Suggestions {
        keys: Keys {
            client: client.clone(),
            runtime: Handle::current(),
        },
    }));
    Ok(editor)
}

/// Reads a line for each that is asked for, until nobody asks any more.
fn read(
    editor: &mut LineEditor,
    history: Option<&PathBuf>,
    asked: &mpsc::Receiver<String>,
    typed: &tasks::UnboundedSender<Typed>,
) {
    while let Ok(prompt) = asked.recv() {
        let line = match editor.readline(&prompt) {
            Ok(line) => Typed::Line(line),
            Err(ReadlineError::Interrupted) => Typed::Interrupt,
            Err(_) => Typed::End,
        };
        if let (Typed::Line(_), Some(path)) = (&line, history) {
            // A line that is not kept is no reason not to run it.
            drop(editor.append_history(path));
        }
        if typed.send(line).is_err() {
            return;
        }
    }
}

/// Keys of the broker, asked for while a line is typed.
struct Keys {
    client: AmaquetClient,
    runtime: Handle,
}

impl KeyNames for Keys {
    fn beginning_with(&self, text: &str) -> Vec<String> {
        if text.contains(['*', '?']) {
            return Vec::new();
        }
        let command = tanda_client::amaquet::Command::new("key.scan")
            .arg("glob", format!("{text}*"))
            .arg("limit", KEYS_MAX);
        let found = self.runtime.block_on(async {
            let reply = tokio::time::timeout(KEYS_WAIT, self.client.run(command)).await;
            reply.ok()?.ok()?.strings("keys").ok()
        });
        let mut found = found.unwrap_or_default();
        found.retain(|name| name.starts_with(text));
        found
    }
}

/// What the editor asks while a line is typed.
struct Suggestions {
    keys: Keys,
}

impl Helper for Suggestions {}

impl Completer for Suggestions {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let found = suggest::complete(line.get(..pos).unwrap_or_default(), &self.keys);
        let pair = |text: String| Pair {
            display: text.trim_end().to_owned(),
            replacement: text,
        };
        Ok((found.start, found.texts.into_iter().map(pair).collect()))
    }
}

impl Hinter for Suggestions {
    type Hint = Remaining;

    fn hint(&self, line: &str, pos: usize, _context: &Context<'_>) -> Option<Remaining> {
        let is_at_end = pos == line.len();
        is_at_end
            .then(|| suggest::hint(line))
            .flatten()
            .map(Remaining)
    }
}

/// The arguments still to come: shown, never taken over by a key.
struct Remaining(String);

impl rustyline::hint::Hint for Remaining {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Highlighter for Suggestions {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

impl Validator for Suggestions {
    /// JSON and quotes may go on in the next line.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match words::is_open(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}
