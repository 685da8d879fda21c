//! Running a command, and what becomes of it.
//!
//! Owns: cancelling by signal, and the words for refusals. Refuses to know: where results go.

use std::time::Duration;

use tanda_client::amaquet::{AmaquetClient, Command, ErrorCode, Reply, RequestError};

use crate::{failure::Failure, signals::StopSignals};

/// How long a cancelled command may take to say what became of it.
const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// Events that may wait in the broker, if nothing else is said.
pub(super) const BUFFER: u32 = 256;

/// Runs a command. A signal cancels it, a second one leaves it alone.
pub(super) async fn run(
    client: &AmaquetClient,
    command: Command,
    signals: &mut StopSignals,
) -> Result<Reply, Failure> {
    let name = command.name().to_owned();
    let failed = |error: RequestError| failure(&name, &error);
    let starting = client.start(command);
    let mut running = tokio::select! {
        running = starting => running.map_err(failed)?,
        () = signals.arrived() => return Err(stopped(&name)),
    };
    tokio::select! {
        result = &mut running => return result.map_err(failed),
        () = signals.arrived() => running.cancel(),
    }
    tokio::select! {
        result = &mut running => result.map_err(failed),
        () = signals.arrived() => Err(stopped(&name)),
        () = tokio::time::sleep(CANCEL_WAIT) => Err(stopped(&name)),
    }
}

fn stopped(name: &str) -> Failure {
    Failure::Refused(format!("{name}: stopped; what became of it is not known"))
}

/// A command that failed, with what to do about it.
pub(super) fn failure(name: &str, error: &RequestError) -> Failure {
    let hint = error.code().and_then(hint);
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let text = format!("{name}: {error}{hint}");
    match error.code() {
        Some(ErrorCode::NotFound) => Failure::NotFound(text),
        Some(ErrorCode::BadRequest | ErrorCode::UnknownCommand) => Failure::Usage(text),
        _ => Failure::Refused(text),
    }
}

const fn hint(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::UnknownCommand => {
            "the broker is of another version; server.commands lists what it has"
        }
        ErrorCode::Unauthenticated => "give an API key by --api-key-file FILE, or TANDA_API_KEY",
        ErrorCode::Forbidden => "a superadmin grants more by `tanda acl set`",
        ErrorCode::WrongType => "key.kind tells of which kind a key is",
        ErrorCode::Overloaded => "try again in a moment",
        ErrorCode::Internal => "the log of the broker says why",
        ErrorCode::BadRequest
        | ErrorCode::UnknownOpcode
        | ErrorCode::UnsupportedVersion
        | ErrorCode::BadFrame
        | ErrorCode::PayloadTooLarge
        | ErrorCode::NotFound
        | ErrorCode::Exists
        | ErrorCode::Conflict
        | ErrorCode::DuplicateRequest
        | ErrorCode::Cancelled
        | ErrorCode::Timeout => return None,
    })
}

/// An event as JSON on a line.
pub(super) fn event(key: &str, event: &tanda_client::amaquet::Event) -> String {
    use tanda_client::amaquet::JsonText;
    let mut text = format!(
        "{{\"key\":{},\"channel\":{},\"payload\":{},\"published_at\":{},\"dropped\":{}",
        JsonText::of(key),
        JsonText::of(event.channel.as_str()),
        JsonText::of(&event.payload),
        JsonText::of(event.published_at.as_str()),
        event.dropped,
    );
    if event.after_reconnect {
        text.push_str(",\"after_reconnect\":true");
    }
    text.push('}');
    text
}

/// What `subscribe` and `unsubscribe` are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channel<'a> {
    pub(super) key: &'a str,
    pub(super) channel: &'a str,
    pub(super) buffer: Option<u32>,
    pub(super) count: Option<u32>,
}

/// Reads `subscribe KEY CHANNEL [option=N]...`.
pub(super) fn channel<'a>(words: &'a [String], options: &[&str]) -> Result<Channel<'a>, Failure> {
    let usage = |problem: String| {
        let verb = words.first().map_or("subscribe", String::as_str);
        let options: String = options.iter().map(|it| format!(" [{it}=N]")).collect();
        Failure::Usage(format!("{problem}write {verb} KEY CHANNEL{options}"))
    };
    let [_, key, channel, rest @ ..] = words else {
        return Err(usage(String::new()));
    };
    let mut found = Channel {
        key: value_of(key, "key").unwrap_or(key),
        channel: value_of(channel, "channel").unwrap_or(channel),
        buffer: None,
        count: None,
    };
    for word in rest {
        let name = options.iter().find(|name| value_of(word, name).is_some());
        let number = name.and_then(|name| value_of(word, name)?.parse().ok());
        let number = number.filter(|number| *number > 0);
        match (name, number) {
            (Some(&"buffer"), Some(number)) => found.buffer = Some(number),
            (Some(_), Some(number)) => found.count = Some(number),
            _ => return Err(usage(format!("{word:?} is not understood; "))),
        }
    }
    Ok(found)
}

/// The value of `name=value`.
fn value_of<'a>(word: &'a str, name: &str) -> Option<&'a str> {
    word.strip_prefix(name)?.strip_prefix('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    #[test]
    fn a_channel_is_two_words_and_perhaps_numbers() {
        let line = words("subscribe bus a.#");
        let found = channel(&line, &["count"]).unwrap();
        assert_eq!(
            (found.key, found.channel, found.count),
            ("bus", "a.#", None)
        );
        let line = words("subscribe key=bus channel=a=b count=3 buffer=9");
        let found = channel(&line, &["buffer", "count"]).unwrap();
        assert_eq!((found.key, found.channel), ("bus", "a=b"));
        assert_eq!((found.buffer, found.count), (Some(9), Some(3)));
        for (line, said) in [
            ("subscribe bus", "write subscribe KEY CHANNEL [count=N]"),
            ("subscribe bus a count=0", "\"count=0\" is not understood"),
            ("subscribe bus a buffer=1", "\"buffer=1\" is not understood"),
        ] {
            let failure = channel(&words(line), &["count"]).unwrap_err().to_string();
            assert!(failure.contains(said), "{failure}");
        }
        assert!(channel(&words("unsubscribe a b c"), &[]).is_err());
    }
}
