//! Commands without a shell: one of the command line, or the lines of standard input.

use std::io::{self, BufRead};
use std::thread;

use tanda_client::{ReconnectPolicy, amaquet::AmaquetClient};
use tokio::sync::mpsc;

use super::{
    arguments,
    door::Door,
    page,
    talk::{self, Channel},
    words,
};
use crate::{failure::Failure, note::note, output::Output, signals::StopSignals};

/// Lines read ahead of the command that runs.
const LINES_AHEAD: usize = 64;

/// Runs the command of the command line.
pub(super) async fn command(door: &Door, words: &[String]) -> Result<(), Failure> {
    let mut out = Output::new();
    if let Some(about) = asks_for_help(words) {
        let help = page::help(about).map_err(Failure::Usage)?;
        out.bytes(help.as_bytes())?;
        return out.flush();
    }
    // What cannot be sent needs no connection.
    let task = Task::of(words)?;
    let mut signals = StopSignals::listen()?;
    let client = tokio::select! {
        client = door.connect(ReconnectPolicy::never()) => client?,
        () = signals.arrived() => return Ok(()),
    };
    let outcome = task.run(&client, &mut signals, &mut out).await;
    client.close().await;
    outcome.map(drop)
}

fn asks_for_help(words: &[String]) -> Option<Option<&str>> {
    match words {
        [help] if help == "help" => Some(None),
        [help, about, ..] if help == "help" => Some(Some(about)),
        _ => None,
    }
}

/// Runs the commands of standard input, up to the first that fails.
pub(super) async fn script(door: &Door) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    let client = tokio::select! {
        client = door.connect(ReconnectPolicy::never()) => client?,
        () = signals.arrived() => return Ok(()),
    };
    let mut lines = lines();
    let mut out = Output::new();
    let mut number = 0_u64;
    let outcome = loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = signals.arrived() => break Ok(()),
        };
        let Some(line) = line else {
            break Ok(());
        };
        number += 1;
        match run_line(line, &client, &mut signals, &mut out).await {
            Ok(Next::Go) => {}
            Ok(Next::Stop) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    client.close().await;
    if let Err(failure) = &outcome
        && !matches!(failure, Failure::Output(_))
    {
        note(format_args!("line {number} failed, and ended the script:"));
    }
    outcome
}

/// Whether a script goes on.
enum Next {
    Go,
    Stop,
}

async fn run_line(
    line: Result<String, Failure>,
    client: &AmaquetClient,
    signals: &mut StopSignals,
    out: &mut Output,
) -> Result<Next, Failure> {
    let line = line?;
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Next::Go);
    }
    let words = words::split(line).map_err(|error| Failure::Usage(error.to_string()))?;
    let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
    if let Some(about) = asks_for_help(&words) {
        let help = page::help(about).map_err(Failure::Usage)?;
        out.bytes(help.as_bytes())?;
        out.flush()?;
        return Ok(Next::Go);
    }
    if matches!(words.first().map(String::as_str), Some("exit" | "quit")) {
        return Ok(Next::Stop);
    }
    Task::of(&words)?.run(client, signals, out).await
}

/// What a line asks for.
enum Task<'a> {
    Command(tanda_client::amaquet::Command),
    Subscribe(Channel<'a>),
}

impl<'a> Task<'a> {
    fn of(words: &'a [String]) -> Result<Self, Failure> {
        match words.first().map(String::as_str) {
            Some("subscribe") => talk::channel(words, &["buffer", "count"]).map(Self::Subscribe),
            Some(word @ ("unsubscribe" | "status")) => Err(Failure::Usage(format!(
                "{word} is a word of the shell: run `tanda amaquet` on a terminal"
            ))),
            _ => arguments::command(words)
                .map(Self::Command)
                .map_err(Failure::Usage),
        }
    }

    async fn run(
        self,
        client: &AmaquetClient,
        signals: &mut StopSignals,
        out: &mut Output,
    ) -> Result<Next, Failure> {
        match self {
            Self::Command(command) => {
                let reply = talk::run(client, command, signals).await?;
                out.line(reply.text())?;
                out.flush()?;
                Ok(Next::Go)
            }
            Self::Subscribe(channel) => listen(client, channel, signals, out).await,
        }
    }
}

/// Prints events until there were enough, or a signal comes.
async fn listen(
    client: &AmaquetClient,
    asked: Channel<'_>,
    signals: &mut StopSignals,
    out: &mut Output,
) -> Result<Next, Failure> {
    let Channel { key, channel, .. } = asked;
    let buffer = asked.buffer.unwrap_or(talk::BUFFER);
    let subscribed = tokio::select! {
        subscribed = client.subscribe_with(key, channel, buffer) => subscribed,
        () = signals.arrived() => return Ok(Next::Stop),
    };
    let mut events = subscribed.map_err(|error| talk::failure("subscribe", &error))?;
    let mut left = asked.count.map_or(u64::MAX, u64::from);
    while left > 0 {
        let event = tokio::select! {
            event = events.next() => event,
            () = signals.arrived() => return Ok(Next::Stop),
        };
        let Some(event) = event else {
            break;
        };
        let event = event.map_err(|error| Failure::Refused(format!("subscribe: {error}")))?;
        out.line(talk::event(key, &event))?;
        out.flush()?;
        left -= 1;
    }
    Ok(Next::Go)
}

/// The lines of standard input, read by a thread of its own, which ends with the process.
fn lines() -> mpsc::Receiver<Result<String, Failure>> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD);
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let line = line.map_err(|source| Failure::io("read standard input", source));
            let ends = line.is_err();
            if sender.blocking_send(line).is_err() || ends {
                return;
            }
        }
    });
    lines
}
