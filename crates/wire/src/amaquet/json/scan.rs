//! The one walk over a text: finds the end of a value and what is wrong with it.

use core::ops::Range;

use super::{DEPTH_MAX, JsonError, JsonProblem, number, text};

/// One bit for each array or object that is open.
type Open = u128;

const _: () = assert!(DEPTH_MAX <= Open::BITS as usize, "each level has a bit");

/// A place in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Next {
    /// A value, or the end of the array that just began.
    FirstItem,
    Value,
    /// A key, or the end of the object that just began.
    FirstKey,
    Key,
    /// A comma, or the end of what is open.
    After,
}

/// A field of an object: its key with its quotes, and its value.
pub(super) type FieldPlace = (Range<usize>, Range<usize>);

/// The place of the only value of a text. If it is an object, its fields are told.
pub(super) fn whole(bytes: &[u8], tell: impl FnMut(FieldPlace)) -> Result<Range<usize>, JsonError> {
    let mut scanner = Scanner { bytes, at: 0 };
    scanner.skip_space();
    let start = scanner.at;
    scanner.value_telling(tell)?;
    let end = scanner.at;
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(start..end),
        Some(found) => Err(scanner.unexpected(found)),
    }
}

impl Scanner<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) const fn problem(&self, problem: JsonProblem) -> JsonError {
        JsonError {
            at: self.at,
            problem,
        }
    }

    pub(super) const fn unexpected(&self, found: u8) -> JsonError {
        self.problem(JsonProblem::Unexpected { found })
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is no space.
    fn next(&mut self) -> Result<u8, JsonError> {
        self.skip_space();
        self.peek().ok_or_else(|| self.problem(JsonProblem::End))
    }

    pub(super) fn expect(&mut self, wanted: u8) -> Result<(), JsonError> {
        let found = self.next()?;
        if found != wanted {
            return Err(self.unexpected(found));
        }
        self.at += 1;
        Ok(())
    }

    /// Goes to the end of the value that starts here.
    pub(super) fn value(&mut self) -> Result<(), JsonError> {
        self.value_telling(|_| {})
    }

    /// The same; tells the fields of the value itself, not of those within it. Not recursive: depth
    /// costs a bit, no stack.
    fn value_telling(&mut self, mut tell: impl FnMut(FieldPlace)) -> Result<(), JsonError> {
        // The lowest `depth` bits say which of what is open are objects.
        let (mut open, mut depth): (Open, usize) = (0, 0);
        let mut next = Next::Value;
        let (mut key, mut value_at) = (0..0, 0);
        loop {
            let byte = self.next()?;
            if depth == 1 && matches!(next, Next::Value) {
                value_at = self.at;
            }
            match (next, byte) {
                (Next::FirstItem, b']') | (Next::FirstKey, b'}') => {
                    self.at += 1;
                    (open, depth) = (open >> 1, depth - 1);
                    next = Next::After;
                }
                (Next::FirstItem | Next::Value, b'[' | b'{') => {
                    if depth == DEPTH_MAX {
                        return Err(self.problem(JsonProblem::Depth));
                    }
                    self.at += 1;
                    let is_object = byte == b'{';
                    (open, depth) = (open << 1 | Open::from(is_object), depth + 1);
                    next = if is_object {
                        Next::FirstKey
                    } else {
                        Next::FirstItem
                    };
                }
                (Next::FirstItem | Next::Value, _) => {
                    self.scalar(byte)?;
                    next = Next::After;
                }
                (Next::FirstKey | Next::Key, b'"') => {
                    let key_at = self.at;
                    text::skip(self)?;
                    if depth == 1 {
                        key = key_at..self.at;
                    }
                    self.expect(b':')?;
                    next = Next::Value;
                }
                (Next::FirstKey | Next::Key, found) => return Err(self.unexpected(found)),
                (Next::After, found) => {
                    let is_object = open & 1 == 1;
                    let end = if is_object { b'}' } else { b']' };
                    self.at += 1;
                    if found == end {
                        (open, depth) = (open >> 1, depth - 1);
                    } else if found == b',' {
                        next = if is_object { Next::Key } else { Next::Value };
                    } else {
                        self.at -= 1;
                        return Err(self.unexpected(found));
                    }
                }
            }
            if matches!(next, Next::After) {
                if depth == 0 {
                    return Ok(());
                }
                if depth == 1 && open & 1 == 1 {
                    tell((key.clone(), value_at..self.at));
                }
            }
        }
    }

    fn scalar(&mut self, first: u8) -> Result<(), JsonError> {
        match first {
            b'"' => text::skip(self),
            b'-' | b'0'..=b'9' => number::skip(self),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            found => Err(self.unexpected(found)),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        for wanted in word {
            match self.peek() {
                None => return Err(self.problem(JsonProblem::End)),
                Some(found) if found == *wanted => self.at += 1,
                Some(found) => return Err(self.unexpected(found)),
            }
        }
        Ok(())
    }
}
