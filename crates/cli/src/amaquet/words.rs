//! Lines as words, quoted as in a shell.
//!
//! Owns: where a word begins and ends. Refuses to know: what words mean.

use std::fmt;

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// What it says, without quotes.
    pub(super) text: String,
    /// Where it begins in the line, in bytes.
    pub(super) start: usize,
}

/// A quote without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclosed(pub(super) char);

impl fmt::Display for Unclosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a quote has no end: write {0} once more, or \\{0} for the sign",
            self.0
        )
    }
}

/// Splits a line at spaces. In quotes of either kind a space is a part of the word; a backslash
/// takes the next character as it is, but for inside of single quotes. A brace or bracket at the
/// start of a word, or behind its `=`, begins JSON, which ends with its last brace, quotes and
/// spaces included.
pub(super) fn split(line: &str) -> Result<Vec<Word>, Unclosed> {
    let mut words = Vec::new();
    let mut scan = Scan::new(line);
    while let Some(word) = scan.word()? {
        words.push(word);
    }
    Ok(words)
}

/// Whether a quote or JSON has no end, so that another line may bring it.
pub(super) fn is_open(line: &str) -> bool {
    let mut scan = Scan::new(line);
    loop {
        match scan.word() {
            Ok(Some(_)) => {}
            Ok(None) => return scan.is_json_open,
            Err(_) => return true,
        }
    }
}

struct Scan<'a> {
    rest: std::iter::Peekable<std::str::CharIndices<'a>>,
    /// The line ended within JSON.
    is_json_open: bool,
}

impl<'a> Scan<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            rest: line.char_indices().peekable(),
            is_json_open: false,
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().map(|(_, c)| *c)
    }

    fn next(&mut self) -> Option<char> {
        self.rest.next().map(|(_, c)| c)
    }

    fn word(&mut self) -> Result<Option<Word>, Unclosed> {
        while self.peek().is_some_and(char::is_whitespace) {
            self.next();
        }
        let Some((start, _)) = self.rest.peek().copied() else {
            return Ok(None);
        };
        let mut text = String::new();
        while let Some(c) = self.peek() {
            match c {
                c if c.is_whitespace() => break,
                '{' | '[' if text.is_empty() || text.ends_with('=') => self.json(&mut text),
                '"' | '\'' => self.quoted(&mut text)?,
                '\\' => {
                    self.next();
                    text.extend(self.next());
                }
                c => {
                    self.next();
                    text.push(c);
                }
            }
        }
        Ok(Some(Word { text, start }))
    }

    fn quoted(&mut self, text: &mut String) -> Result<(), Unclosed> {
        let Some(quote) = self.next() else {
            return Ok(());
        };
        loop {
            match self.next() {
                None => return Err(Unclosed(quote)),
                Some(c) if c == quote => return Ok(()),
                Some('\\') if quote == '"' => text.extend(self.next()),
                Some(c) => text.push(c),
            }
        }
    }

    /// Takes JSON as it is. One that does not end takes the rest of the line: whoever reads it
    /// says what is missing.
    fn json(&mut self, text: &mut String) {
        let (mut depth, mut in_string) = (0_u32, false);
        while let Some(c) = self.next() {
            text.push(c);
            match c {
                '\\' if in_string => text.extend(self.next()),
                '"' => in_string = !in_string,
                '{' | '[' if !in_string => depth += 1,
                '}' | ']' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
        self.is_json_open = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let words = split(line).unwrap();
        words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        assert_eq!(texts("  value.get  key=a "), ["value.get", "key=a"]);
        assert_eq!(
            texts(r#"a "b c" 'd "e' f\ g"#),
            ["a", "b c", "d \"e", "f g"]
        );
        assert_eq!(texts(r#"value="a \" b"x"#), ["value=a \" bx"]);
        assert_eq!(texts(r#"k="" ''"#), ["k=", ""]);
        assert_eq!(texts(""), Vec::<String>::new());
        assert_eq!(split("a 'b").unwrap_err(), Unclosed('\''));
        let words = split("grün  x").unwrap();
        assert_eq!(words.last().unwrap().start, 7);
    }

    #[test]
    fn json_is_one_word_as_it_is() {
        assert_eq!(
            texts(r#"set value={"a b": "} \" ]", "c": [1, 2]} x"#),
            ["set", r#"value={"a b": "} \" ]", "c": [1, 2]}"#, "x"]
        );
        assert_eq!(
            texts(r#"{"command": "a"} [1, "[ "]"#),
            [r#"{"command": "a"}"#, r#"[1, "[ "]"#]
        );
        // Inside of a word brackets are nothing special.
        assert_eq!(texts("scan:[a b{ c"), ["scan:[a", "b{", "c"]);
        assert_eq!(texts(r#"value={"a": 1"#), [r#"value={"a": 1"#]);
        for open in ["a {", "a 'b", r#"v={"x": "}"#, "[1,\n"] {
            assert!(is_open(open), "{open}");
        }
        for closed in ["", "a", "a {} b", "x[", "[1,\n2]"] {
            assert!(!is_open(closed), "{closed}");
        }
    }
}
