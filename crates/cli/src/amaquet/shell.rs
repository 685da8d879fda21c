//! Commands typed one by one.
//!
//! Owns: what is printed between the lines that are typed, and subscriptions meanwhile.
//! Refuses to know: keys of the keyboard.

use std::io::{self, IsTerminal};
use std::pin::pin;

use tanda_client::amaquet::{
    AmaquetClient, Event, JsonText, Link, LinkWatch, Subscription, SubscriptionError,
};
use tanda_client::{ReconnectPolicy, amaquet::Command};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{arguments, door::Door, editor, history, page, talk, words};
use crate::{failure::Failure, note::note, output::printable, signals::StopSignals};
use editor::{Terminal, Typed};

const PROMPT: &str = "amaquet> ";
const PROMPT_WITHOUT_CONNECTION: &str = "amaquet (no connection)> ";
/// How long a command waits for a lost connection.
const RECONNECT_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// Events that wait to be printed.
const EVENTS_AHEAD: usize = 1024;

/// What comes from a subscription.
type Told = (Place, Option<Result<Event, SubscriptionError>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    key: String,
    channel: String,
}

struct Shell {
    client: AmaquetClient,
    addr: String,
    terminal: Terminal,
    signals: StopSignals,
    link: LinkWatch,
    subscriptions: Vec<(Place, AbortHandle)>,
    events: mpsc::Receiver<Told>,
    tell: mpsc::Sender<Told>,
}

/// Whether the shell goes on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    End,
}

/// What interrupts the waiting for a line or a result.
enum Meanwhile {
    Told(Told),
    Link(Link),
}

pub(super) async fn run(door: Door) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        let text = "standard output is no terminal: give a command, or commands on standard input";
        return Err(Failure::Usage(text.to_owned()));
    }
    let signals = StopSignals::listen()?;
    let policy = ReconnectPolicy::default().request_wait(RECONNECT_WAIT);
    let client = door.connect(policy).await?;
    let history = history::file().unwrap_or_else(|error| {
        note(format_args!("lines will not be kept: {error}"));
        None
    });
    let terminal = Terminal::open(&client, history)?;
    let (tell, events) = mpsc::channel(EVENTS_AHEAD);
    let mut shell = Shell {
        link: client.watch(),
        addr: door.addr,
        client,
        terminal,
        signals,
        subscriptions: Vec::new(),
        events,
        tell,
    };
    let outcome = shell.talk().await;
    shell.client.close().await;
    outcome
}

impl Shell {
    async fn talk(&mut self) -> Result<(), Failure> {
        self.greet()?;
        let mut wants_out = false;
        loop {
            let prompt = match self.link.now() {
                Link::Up => PROMPT,
                Link::Lost { .. } | Link::Ended { .. } => PROMPT_WITHOUT_CONNECTION,
            };
            self.terminal.ask(prompt);
            let Some(typed) = self.wait_for_line().await? else {
                return Ok(());
            };
            match typed {
                Typed::End => return Ok(()),
                Typed::Interrupt if wants_out => return Ok(()),
                Typed::Interrupt => {
                    wants_out = true;
                    self.terminal
                        .print("Ctrl-C again, Ctrl-D or `exit` ends the shell")?;
                }
                Typed::Line(line) => {
                    wants_out = false;
                    if self.on_line(&line).await? == Next::End {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn greet(&mut self) -> Result<(), Failure> {
        let Some(hello) = self.client.server() else {
            return Ok(());
        };
        let (server, version, addr) = (&hello.server, &hello.version, &self.addr);
        let text = format!("{server} {version} at {addr}. `help` tells what there is.");
        self.terminal.print(&printable(text.as_bytes()))
    }

    /// What is typed; `None` when the process is to end.
    async fn wait_for_line(&mut self) -> Result<Option<Typed>, Failure> {
        loop {
            let meanwhile = tokio::select! {
                typed = self.terminal.typed() => return Ok(Some(typed)),
                // At the prompt Ctrl-C is a key: a signal is somebody else's wish.
                () = self.signals.arrived() => return Ok(None),
                Some(told) = self.events.recv() => Meanwhile::Told(told),
                Some(link) = self.link.changed() => Meanwhile::Link(link),
            };
            self.on_meanwhile(meanwhile)?;
        }
    }

    fn on_meanwhile(&mut self, meanwhile: Meanwhile) -> Result<(), Failure> {
        match meanwhile {
            Meanwhile::Told((place, told)) => self.on_told(place, told),
            Meanwhile::Link(Link::Up) => self.terminal.print("connected again"),
            Meanwhile::Link(Link::Lost { reason }) => {
                let text = format!("connection lost: {reason}; opening another");
                self.terminal.print(&text)
            }
            Meanwhile::Link(Link::Ended { reason }) => {
                let text = format!("there will be no other connection: {reason}; `exit`, and see");
                self.terminal.print(&text)
            }
        }
    }

    fn on_told(
        &mut self,
        place: Place,
        told: Option<Result<Event, SubscriptionError>>,
    ) -> Result<(), Failure> {
        match told {
            Some(Ok(event)) => self.terminal.print(&event_text(&place, &event)),
            Some(Err(error)) => {
                let text = format!("{} {}: {error}", place.key, place.channel);
                self.terminal.print(&printable(text.as_bytes()))
            }
            None => {
                self.subscriptions
                    .retain(|(it, task)| *it != place || !task.is_finished());
                Ok(())
            }
        }
    }

    /// Does what a line says. What fails is printed; an error is one of the terminal.
    async fn on_line(&mut self, line: &str) -> Result<Next, Failure> {
        let words = match words::split(line) {
            Ok(words) => words.into_iter().map(|word| word.text).collect::<Vec<_>>(),
            Err(error) => {
                self.terminal.print(&error.to_string())?;
                return Ok(Next::Go);
            }
        };
        let done = match words.first().map(String::as_str) {
            None => return Ok(Next::Go),
            Some("exit" | "quit") => return Ok(Next::End),
            Some("help") => {
                let help = page::help(words.get(1).map(String::as_str));
                help.map(|page| page.trim_end().to_owned())
                    .map_err(Failure::Usage)
            }
            Some("status") => Ok(self.status()),
            Some("subscribe") => self.subscribe(&words).await,
            Some("unsubscribe") => self.unsubscribe(&words),
            Some(_) => match arguments::command(&words) {
                Ok(command) => self.command(command).await,
                Err(problem) => Err(Failure::Usage(problem)),
            },
        };
        let text = match done {
            Ok(text) => text,
            Err(failure @ Failure::Output(_)) => return Err(failure),
            Err(failure) => page::message(&failure.to_string()),
        };
        self.terminal.print(&text)?;
        Ok(Next::Go)
    }

    /// Runs a command; events go on being printed.
    async fn command(&mut self, command: Command) -> Result<String, Failure> {
        let Self {
            client,
            signals,
            terminal,
            events,
            ..
        } = self;
        let mut ends = Vec::new();
        let reply = {
            let mut running = pin!(talk::run(client, command, signals));
            loop {
                let (place, told) = tokio::select! {
                    reply = &mut running => break reply,
                    Some(told) = events.recv() => told,
                };
                match told {
                    Some(Ok(event)) => terminal.print(&event_text(&place, &event))?,
                    told => ends.push((place, told)),
                }
            }
        };
        for (place, told) in ends {
            self.on_told(place, told)?;
        }
        reply.map(|reply| page::json(reply.text()))
    }

    async fn subscribe(&mut self, words: &[String]) -> Result<String, Failure> {
        let asked = talk::channel(words, &["buffer"])?;
        let (key, channel) = (asked.key, asked.channel);
        let buffer = asked.buffer.unwrap_or(talk::BUFFER);
        let subscribed = tokio::select! {
            subscribed = self.client.subscribe_with(key, channel, buffer) => subscribed,
            () = self.signals.arrived() => return Err(Failure::Refused("stopped".to_owned())),
        };
        let events = subscribed.map_err(|error| talk::failure("subscribe", &error))?;
        let place = Place {
            key: key.to_owned(),
            channel: channel.to_owned(),
        };
        let task = tokio::spawn(forward(events, place.clone(), self.tell.clone()));
        // One of the same place has ended with this one.
        self.subscriptions.retain(|(it, _)| *it != place);
        self.subscriptions.push((place, task.abort_handle()));
        Ok(format!(
            "subscribed to {channel} of {key}; `unsubscribe {key} {channel}` ends it"
        ))
    }

    fn unsubscribe(&mut self, words: &[String]) -> Result<String, Failure> {
        let talk::Channel { key, channel, .. } = talk::channel(words, &[])?;
        let is_it =
            |(place, _): &(Place, AbortHandle)| place.key == key && place.channel == channel;
        let Some(at) = self.subscriptions.iter().position(is_it) else {
            return Err(Failure::NotFound(format!(
                "this shell is not subscribed to {channel} of {key}; `status` tells to what it is"
            )));
        };
        let (_, task) = self.subscriptions.swap_remove(at);
        task.abort();
        Ok(format!("unsubscribed from {channel} of {key}"))
    }

    fn status(&self) -> String {
        let mut lines = vec![format!("address        {}", self.addr)];
        if let Some(hello) = self.client.server() {
            lines.extend([
                format!(
                    "broker         {} {}, node {}",
                    hello.server, hello.version, hello.node_id
                ),
                format!("its public key {}", hello.public_key_text()),
            ]);
        }
        lines.push(match self.client.login() {
            Some(login) => {
                let rights = if login.is_superadmin {
                    " (superadmin)"
                } else {
                    ""
                };
                format!("you are        {}{rights}", login.name)
            }
            None => "you are        anonymous: no API key was given".to_owned(),
        });
        lines.push(match self.link.now() {
            Link::Up => "connection     up".to_owned(),
            Link::Lost { reason } | Link::Ended { reason } => {
                format!("connection     lost: {reason}")
            }
        });
        for (place, _) in &self.subscriptions {
            lines.push(format!("subscribed to  {} of {}", place.channel, place.key));
        }
        page::message(&lines.join("\n"))
    }
}

/// An event on a line: when (UTC), key, channel, payload, and what is missing before it.
fn event_text(place: &Place, event: &Event) -> String {
    let clock = event.published_at.get(11..19).unwrap_or_default();
    let names = format!("{clock} {} {}  ", place.key, event.channel);
    let mut text = printable(names.as_bytes());
    text.push_str(&page::json(JsonText::of(&event.payload).as_str()));
    if event.dropped > 0 {
        text.push_str(&format!("  ({} lost before it)", event.dropped));
    }
    if event.after_reconnect {
        text.push_str("  (the first after a lost connection)");
    }
    text
}

/// Hands events on until there are no more.
async fn forward(mut events: Subscription, place: Place, tell: mpsc::Sender<Told>) {
    while let Some(told) = events.next().await {
        if tell.send((place.clone(), Some(told))).await.is_err() {
            return;
        }
    }
    drop(tell.send((place, None)).await);
}
