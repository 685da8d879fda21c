//! Words that must not stand in the repository.
//!
//! Owns three lists: leftovers of unfinished work, words of advertising, and places outside the
//! repository. Every word below is put together from two halves, so that this file passes its own
//! rules.

use crate::Finding;
use crate::tree::{SourceFile, TEXT_ENDINGS, resolve};

/// Marks of unfinished work, and of tests that are skipped without a word why.
const LEFTOVERS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("to", "do!("),
    concat!("un", "implemented!("),
    concat!("db", "g!("),
    concat!("#[ig", "nore]"),
];

/// Words that promise instead of telling. A number or a fact goes in their place.
const ADVERTISING: &[&str] = &[
    concat!("bla", "zing"),
    concat!("lightning", "-fast"),
    concat!("lightning", " fast"),
    concat!("blister", "ing"),
    concat!("seam", "less"),
    concat!("effort", "less"),
    concat!("cutting", "-edge"),
    concat!("bleeding", "-edge"),
    concat!("world", "-class"),
    concat!("best", "-in-class"),
    concat!("next", "-generation"),
    concat!("next", "-gen"),
    concat!("state", "-of-the-art"),
    concat!("revolu", "tionary"),
    concat!("game", "-chang"),
    concat!("super", "charge"),
    concat!("battle", "-tested"),
    concat!("enterprise", "-grade"),
    concat!("production", "-grade"),
    concat!("turn", "key"),
    concat!("unpar", "alleled"),
    concat!("delight", "ful"),
    concat!("em", "power"),
    concat!("lever", "age"),
    concat!("para", "digm"),
    concat!("syn", "erg"),
    concat!("holis", "tic"),
    concat!("un", "leash"),
    concat!("rock", "-solid"),
    concat!("bullet", "proof"),
    concat!("top", "-notch"),
];

/// Places of one machine. The repository must make sense on every other.
const PLACES: &[&str] = &[
    concat!("../sha", "red"),
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// No mark of unfinished work in any text.
#[must_use]
pub fn leftovers(files: &[SourceFile]) -> Vec<Finding> {
    find(files, TEXT_ENDINGS, |line| {
        let word = LEFTOVERS.iter().find(|word| has_word(line, word))?;
        Some(format!(
            "`{word}` is left over; finish it, or file an issue and remove it"
        ))
    })
}

/// No advertising in documents and in the comments of sources.
#[must_use]
pub fn advertising(files: &[SourceFile]) -> Vec<Finding> {
    find(files, &[".md", ".rs", ".html"], |line| {
        let line = line.to_lowercase();
        let word = ADVERTISING.iter().find(|word| line.contains(*word))?;
        Some(format!(
            "`{word}` advertises; say what it does or give the number"
        ))
    })
}

/// No path that leads out of the repository.
#[must_use]
pub fn outside_paths(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = find(files, TEXT_ENDINGS, |line| {
        let place = PLACES.iter().find(|place| line.contains(*place))?;
        Some(format!("`{place}` exists on one machine only"))
    });
    for file in files {
        let Some(text) = file.text_of(TEXT_ENDINGS) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            if climbs(line).any(|climb| resolve(&file.path, climb).is_none()) {
                let what = "this path leads out of the repository";
                findings.push(Finding::at(&file.path, index + 1, what));
            }
        }
    }
    findings
}

/// The runs of `../` in a line, each as far as it goes up.
fn climbs(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.match_indices("../").map(|(index, _)| index);
    starts.filter_map(|start| {
        let rest = line.get(start..)?;
        let end = rest
            .find(|byte| byte != '.' && byte != '/')
            .unwrap_or(rest.len());
        rest.get(..end)
    })
}

fn find(
    files: &[SourceFile],
    endings: &[&str],
    rule: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(text) = file.text_of(endings) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            if let Some(what) = rule(line) {
                findings.push(Finding::at(&file.path, index + 1, what));
            }
        }
    }
    findings
}

/// Whether `word` stands in `line` and not as a part of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let is_part =
        |byte: Option<char>| byte.is_some_and(|byte| byte.is_alphanumeric() || byte == '_');
    line.match_indices(word).any(|(start, _)| {
        let before = line.get(..start).and_then(|text| text.chars().next_back());
        let after = line
            .get(start + word.len()..)
            .and_then(|text| text.chars().next());
        let opens = word.ends_with(['(', ']']);
        !is_part(before) && (opens || !is_part(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Vec<SourceFile> {
        vec![SourceFile::new(path, text)]
    }

    #[test]
    fn every_leftover_is_found_as_a_word() {
        for word in LEFTOVERS {
            let text = format!("fine\n    {word} later\n");
            assert_eq!(leftovers(&file("src/a.rs", &text))[0].line, 2, "{word}");
        }
        let longer = concat!("MY_TO", "DO_LIST ", "TO", "DOS");
        assert_eq!(leftovers(&file("src/a.rs", longer)), []);
    }

    #[test]
    fn every_word_of_advertising_is_found_in_any_case() {
        for word in ADVERTISING {
            let text = format!("A {} broker\n", word.to_uppercase());
            assert_eq!(advertising(&file("README.md", &text)).len(), 1, "{word}");
        }
        assert_eq!(
            advertising(&file(
                "README.md",
                "A broker that syncs before it confirms."
            )),
            []
        );
    }

    #[test]
    fn paths_out_of_the_repository_are_found() {
        for place in PLACES {
            let text = format!("see {place}x\n");
            assert!(
                !outside_paths(&file("a/b/c/d/notes.md", &text)).is_empty(),
                "{place}"
            );
        }
        let up = ["..", "..", "x"].join("/");
        assert_eq!(outside_paths(&file("docs/README.md", &up)).len(), 1);
        assert_eq!(outside_paths(&file("docs/adr/README.md", &up)), []);
    }
}
