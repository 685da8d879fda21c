//! Standard output, buffered.

use std::{
    fmt,
    io::{self, BufWriter, Stdout, Write},
};

use serde_json::Value;

use crate::failure::Failure;

/// What a command prints. Flush it before anything that must come after the printing.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
        }
    }

    /// A line of text.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        writeln!(self.out, "{text}").map_err(Failure::Output)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::Output)
    }

    /// Bytes as they are, and a line end.
    pub(crate) fn bytes_line(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out
            .write_all(bytes)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(Failure::Output)
    }

    /// A JSON value on lines of its own, for answers of one document.
    pub(crate) fn document(&mut self, value: &Value) -> Result<(), Failure> {
        self.line(format_args!("{value:#}"))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::Output)
    }
}

/// Says what was done: a sentence, or a document.
pub(crate) fn done(is_json: bool, document: &Value, sentence: &str) -> Result<(), Failure> {
    let mut out = Output::new();
    if is_json {
        out.document(document)?;
    } else {
        out.line(sentence)?;
    }
    out.flush()
}

/// A text of an answer, safe for a terminal.
pub(crate) fn text(of: &Value, key: &str) -> String {
    let text = of.get(key).and_then(Value::as_str).unwrap_or_default();
    printable(text.as_bytes())
}

/// Text from outside made safe for a terminal and kept to one line: control characters are shown
/// escaped, bytes that are no UTF-8 as a replacement character.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi_control(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Characters that reorder what stands around them.
pub(crate) const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(printable("grün\n\x1b[31m".as_bytes()), "grün\\n\\u{1b}[31m");
        assert_eq!(printable(b"a\xff"), "a\u{fffd}");
        assert_eq!(printable("\u{202e}x".as_bytes()), "\\u{202e}x");
    }
}
