//! Making maps and arrays one entry at a time, when their number is not known before.

use super::token;
use super::value::Value;

/// Bytes kept for the marker and count while entries are added.
const HEAD_BYTES: usize = 5;

/// A map or array being written at the end of `out`.
#[derive(Debug)]
struct Open<'o> {
    out: &'o mut Vec<u8>,
    at: usize,
    count: u32,
}

impl<'o> Open<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Self {
        let at = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        Self { out, at, count: 0 }
    }

    /// Puts the real marker and count in front, and closes the gap.
    fn finish(self, write_len: fn(&mut Vec<u8>, u32)) {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        write_len(&mut head, self.count);
        self.out.splice(self.at..self.at + HEAD_BYTES, head);
    }
}

/// Appends a map entry by entry. Without [`MapWriter::finish`] it is no map.
#[derive(Debug)]
#[must_use = "a map without its end has no count"]
pub struct MapWriter<'o> {
    open: Open<'o>,
}

impl<'o> MapWriter<'o> {
    /// Begins a map at the end of `out`.
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        Self {
            open: Open::begin(out),
        }
    }

    /// Adds an entry.
    pub fn entry(&mut self, key: &str, value: &Value<'_>) {
        value.encode(self.key(key));
    }

    /// Adds the key of an entry. The caller appends exactly one value to what it returns.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.open.count += 1;
        token::write_str(self.open.out, key);
        self.open.out
    }

    /// Adds a key of any type. The caller appends exactly one value to what it returns.
    pub fn any_key(&mut self, key: &Value<'_>) -> &mut Vec<u8> {
        self.open.count += 1;
        key.encode(self.open.out);
        self.open.out
    }

    /// Ends the map.
    pub fn finish(self) {
        self.open.finish(token::write_map_len);
    }
}

/// Appends an array item by item. Without [`ArrayWriter::finish`] it is no array.
#[derive(Debug)]
#[must_use = "an array without its end has no count"]
pub struct ArrayWriter<'o> {
    open: Open<'o>,
}

impl<'o> ArrayWriter<'o> {
    /// Begins an array at the end of `out`.
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        Self {
            open: Open::begin(out),
        }
    }

    /// Adds an item.
    pub fn item(&mut self, value: &Value<'_>) {
        value.encode(self.slot());
    }

    /// Adds an item. The caller appends exactly one value to what it returns.
    pub fn slot(&mut self) -> &mut Vec<u8> {
        self.open.count += 1;
        self.open.out
    }

    /// Ends the array.
    pub fn finish(self) {
        self.open.finish(token::write_array_len);
    }
}
