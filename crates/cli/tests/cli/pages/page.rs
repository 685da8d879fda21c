//! What of a page is run.
//!
//! A `console` block holds commands after `$ `, continued after `> `, each with what it shows. In a
//! `console worker` block they go on in the background until the end of the page. A block with a
//! file name after its language is that file. Other blocks are for the reader alone.

/// A page's steps, in order.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: String,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Write a file.
    File { name: String, text: String },
    /// Run a command to its end and compare what it shows.
    Run(Command),
    /// Start a command and leave it running.
    Start(Command),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: String,
    pub(super) shown: String,
}

impl Page {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let mut steps = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                continue;
            };
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let words: Vec<&str> = info.split_whitespace().collect();
            match words.as_slice() {
                ["console"] => steps.extend(commands(&block).map(Step::Run)),
                ["console", "worker"] => steps.extend(commands(&block).map(Step::Start)),
                [_, name] => steps.push(Step::File {
                    name: (*name).to_owned(),
                    text: block.join("\n") + "\n",
                }),
                _ => {}
            }
        }
        assert!(!steps.is_empty(), "{path} has nothing to run");
        let path = path.to_owned();
        Self { path, steps }
    }
}

fn commands(block: &[&str]) -> impl Iterator<Item = Command> + use<> {
    let mut commands: Vec<Command> = Vec::new();
    for line in block {
        if let Some(line) = line.strip_prefix("$ ") {
            commands.push(Command {
                line: line.to_owned(),
                shown: String::new(),
            });
            continue;
        }
        let command = commands.last_mut();
        let command = command.unwrap_or_else(|| panic!("{line:?} comes before a command"));
        let more = line.strip_prefix("> ").filter(|_| command.shown.is_empty());
        match more {
            Some(more) => command.line += &format!("\n{more}"),
            None => command.shown += &format!("{line}\n"),
        }
    }
    commands.into_iter()
}

#[test]
fn blocks_become_steps() {
    let text = "```sh\nmake run\n```\n```lua a.lua\nx = 1\n```\nText.\n\
                ```console\n$ one \\\n> two\nshown\n\n$ three\n```\n\
                ```console worker\n$ four\n```\n";
    let command = |line: &str, shown: &str| Command {
        line: line.to_owned(),
        shown: shown.to_owned(),
    };
    let file = Step::File {
        name: "a.lua".to_owned(),
        text: "x = 1\n".to_owned(),
    };
    assert_eq!(
        Page::parse("p", text).steps,
        [
            file,
            Step::Run(command("one \\\ntwo", "shown\n\n")),
            Step::Run(command("three", "")),
            Step::Start(command("four", "")),
        ]
    );
}
