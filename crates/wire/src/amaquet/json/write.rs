//! JSON that is written.

use super::text::plain_bytes;
use super::{Json, Number};

/// Appends values to bytes: commas are its business, brackets the caller's.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Something stands before the next entry.
    needs_comma: bool,
}

impl<'a> Writer<'a> {
    /// A writer of one value behind what is in `out`.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            needs_comma: false,
        }
    }

    /// What was written so far, and what was there before.
    #[must_use]
    pub const fn bytes(&self) -> &Vec<u8> {
        self.out
    }

    fn comma(&mut self) {
        if self.needs_comma {
            self.out.push(b',');
        }
        self.needs_comma = true;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.comma();
        self.out.extend_from_slice(bytes);
    }

    /// An object with the fields that `write` writes.
    pub fn object(&mut self, write: impl FnOnce(&mut Self)) {
        self.between(b"{}", write);
    }

    /// An array with the items that `write` writes.
    pub fn array(&mut self, write: impl FnOnce(&mut Self)) {
        self.between(b"[]", write);
    }

    fn between(&mut self, brackets: &[u8; 2], write: impl FnOnce(&mut Self)) {
        let [open, close] = *brackets;
        self.put(&[open]);
        self.needs_comma = false;
        write(self);
        self.out.push(close);
        self.needs_comma = true;
    }

    /// The key of a field, whose value comes next.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.str(key);
        self.out.push(b':');
        self.needs_comma = false;
        self
    }

    /// `null`
    pub fn null(&mut self) {
        self.put(b"null");
    }

    /// A bool.
    pub fn bool(&mut self, value: bool) {
        self.put(if value { b"true" } else { b"false" });
    }

    /// An integer.
    pub fn u64(&mut self, value: u64) {
        self.put(value.to_string().as_bytes());
    }

    /// An integer or `null`.
    pub fn u64_or_null(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.u64(value),
            None => self.null(),
        }
    }

    /// An integer.
    pub fn i64(&mut self, value: i64) {
        self.put(value.to_string().as_bytes());
    }

    /// A double, with as many digits as bring it back; one that is no number in JSON is null.
    pub fn f64(&mut self, value: f64) {
        if value.is_finite() {
            self.put(format!("{value:?}").as_bytes());
        } else {
            self.null();
        }
    }

    /// A number.
    pub fn number(&mut self, number: Number) {
        match number {
            Number::Unsigned(value) => self.u64(value),
            Number::Negative(value) => self.i64(value),
            Number::Double(value) => self.f64(value),
        }
    }

    /// A value as it is.
    pub fn json(&mut self, value: Json<'_>) {
        self.put(value.text().as_bytes());
    }

    /// A text that is known to be one value of JSON.
    pub(in crate::amaquet) fn raw(&mut self, json: &str) {
        self.put(json.as_bytes());
    }

    /// A text of which `write` appends what is between the quotes; it needs no escapes.
    pub(in crate::amaquet) fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.put(b"\"");
        write(self.out);
        self.out.push(b'"');
    }

    /// A text.
    pub fn str(&mut self, text: &str) {
        self.put(b"\"");
        let mut left = text.as_bytes();
        while let Some((plain, rest)) = left.split_at_checked(plain_bytes(left)) {
            self.out.extend_from_slice(plain);
            let Some((byte, rest)) = rest.split_first() else {
                break;
            };
            self.escape(*byte);
            left = rest;
        }
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                let digit = |half: u8| half + if half < 10 { b'0' } else { b'a' - 10 };
                let (high, low) = (digit(byte >> 4), digit(byte & 15));
                self.out
                    .extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }
}
