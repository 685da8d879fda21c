//! Field tables and arrays (§4.2.5.5, §4.2.5.4): kept as bytes, read one entry at a time.
//!
//! ```text
//! table: u32 length in bytes | entries: shortstr key | u8 tag | value
//! array: u32 length in bytes | items:                  u8 tag | value
//! ```
//!
//! Owns: walking over entries, and saying where one breaks the layout. Refuses to know: what a key
//! means. Keys may repeat; the first one counts, as it does for RabbitMQ. Every entry and item
//! comes with the bytes it was read from, so that it can be copied as it came.

use core::fmt;

use super::field::Field;
use super::strings::{LONG_FIELD_BYTES_MAX, ShortStr, TooLong, long_field};
use super::value::Value;
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// How many tables and arrays may stand in each other, the outermost included.
pub const DEPTH_MAX: u8 = 64;

/// The entries of a table, unread.
#[derive(Clone, Copy, Default)]
pub struct Table<'a> {
    /// Without the length; at most [`LONG_FIELD_BYTES_MAX`].
    entries: &'a [u8],
    /// How many tables and arrays it stands in; less than [`DEPTH_MAX`].
    depth: u8,
}

/// The items of an array, unread.
#[derive(Clone, Copy, Default)]
pub struct Array<'a> {
    /// Without the length; at most [`LONG_FIELD_BYTES_MAX`].
    items: &'a [u8],
    /// How many tables and arrays it stands in; less than [`DEPTH_MAX`].
    depth: u8,
}

/// One entry of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'a> {
    /// Its key.
    pub key: ShortStr<'a>,
    /// Its value.
    pub value: Value<'a>,
    /// Tag and value as they came.
    pub raw_value: &'a [u8],
    /// Key, tag and value as they came.
    pub raw: &'a [u8],
}

/// One item of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item<'a> {
    /// Its value.
    pub value: Value<'a>,
    /// Tag and value as they came.
    pub raw: &'a [u8],
}

impl<'a> Table<'a> {
    /// No entries.
    pub const EMPTY: Self = Self {
        entries: &[],
        depth: 0,
    };

    /// A table of these entries, which are not checked: see [`Table::validate`].
    ///
    /// # Errors
    /// More bytes than [`LONG_FIELD_BYTES_MAX`].
    pub const fn new(entries: &'a [u8]) -> Result<Self, TooLong> {
        match long_field(entries, "table") {
            Ok(entries) => Ok(Self { entries, depth: 0 }),
            Err(error) => Err(error),
        }
    }

    /// The table found at `at`, in a table or array of this depth.
    pub(super) fn nested(
        entries: &'a [u8],
        at: &Reader<'_>,
        depth: u8,
    ) -> Result<Self, DecodeError> {
        let depth = deeper(entries, at, depth)?;
        Ok(Self { entries, depth })
    }

    /// The entries on the wire, without the length before them.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.entries
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in order. After an error there are no more.
    #[must_use]
    pub const fn iter(&self) -> Entries<'a> {
        Entries {
            reader: Reader::new(self.entries),
            depth: self.depth,
        }
    }

    /// The value of the first entry of this key.
    ///
    /// # Errors
    /// When an entry before it breaks the layout.
    pub fn find(&self, key: &[u8]) -> Result<Option<Value<'a>>, DecodeError> {
        for entry in *self {
            let entry = entry?;
            if entry.key.as_bytes() == key {
                return Ok(Some(entry.value));
            }
        }
        Ok(None)
    }

    /// Reads all entries, and those of the tables and arrays in them.
    ///
    /// # Errors
    /// The first place that breaks the layout, counted from the first byte of this table's entries.
    pub fn validate(&self) -> Result<(), DecodeError> {
        let mut entries = self.iter();
        loop {
            let at = entries.reader.offset();
            match entries.next() {
                Some(entry) => {
                    let Entry { value, raw, .. } = entry?;
                    validate_nested(&value, at + raw.len())?;
                }
                None => return Ok(()),
            }
        }
    }
}

impl<'a> Array<'a> {
    /// No items.
    pub const EMPTY: Self = Self {
        items: &[],
        depth: 0,
    };

    /// An array of these items, which are not checked: see [`Array::validate`].
    ///
    /// # Errors
    /// More bytes than [`LONG_FIELD_BYTES_MAX`].
    pub const fn new(items: &'a [u8]) -> Result<Self, TooLong> {
        match long_field(items, "array") {
            Ok(items) => Ok(Self { items, depth: 0 }),
            Err(error) => Err(error),
        }
    }

    /// The array found at `at`, in a table or array of this depth.
    pub(super) fn nested(items: &'a [u8], at: &Reader<'_>, depth: u8) -> Result<Self, DecodeError> {
        let depth = deeper(items, at, depth)?;
        Ok(Self { items, depth })
    }

    /// The items on the wire, without the length before them.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.items
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items in order. After an error there are no more.
    #[must_use]
    pub const fn iter(&self) -> Items<'a> {
        Items {
            reader: Reader::new(self.items),
            depth: self.depth,
        }
    }

    /// Reads all items, and those of the tables and arrays in them.
    ///
    /// # Errors
    /// The first place that breaks the layout, counted from the first byte of this array's items.
    pub fn validate(&self) -> Result<(), DecodeError> {
        let mut items = self.iter();
        loop {
            let at = items.reader.offset();
            match items.next() {
                Some(item) => {
                    let Item { value, raw } = item?;
                    validate_nested(&value, at + raw.len())?;
                }
                None => return Ok(()),
            }
        }
    }
}

/// Validates what stands in a value that ends at `end`; the recursion ends at [`DEPTH_MAX`].
fn validate_nested(value: &Value<'_>, end: usize) -> Result<(), DecodeError> {
    let (inner, len) = if let Value::Table(table) = value {
        (table.validate(), table.entries.len())
    } else if let Value::Array(array) = value {
        (array.validate(), array.items.len())
    } else {
        return Ok(());
    };
    inner.map_err(|error| DecodeError {
        offset: error.offset + end.saturating_sub(len),
        kind: error.kind,
    })
}

/// The depth of a table or array found at `at` in another of `depth`.
fn deeper(bytes: &[u8], at: &Reader<'_>, depth: u8) -> Result<u8, DecodeError> {
    let depth = depth.saturating_add(1);
    if depth >= DEPTH_MAX {
        return Err(at.error(DecodeErrorKind::TooDeep {
            depth_max: DEPTH_MAX,
        }));
    }
    // What is in a table or array is not larger than it.
    debug_assert!(bytes.len() <= LONG_FIELD_BYTES_MAX);
    Ok(depth)
}

/// The entries of a [`Table`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    reader: Reader<'a>,
    depth: u8,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.remaining() == 0 {
            return None;
        }
        let entry = read_entry(&mut self.reader, self.depth);
        if entry.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(entry)
    }
}

fn read_entry<'a>(r: &mut Reader<'a>, depth: u8) -> Result<Entry<'a>, DecodeError> {
    let before = *r;
    let key = ShortStr::read(r)?;
    let before_value = *r;
    let value = Value::read(r, depth)?;
    Ok(Entry {
        key,
        value,
        raw_value: r.since(&before_value),
        raw: r.since(&before),
    })
}

/// The items of an [`Array`].
#[derive(Debug, Clone)]
pub struct Items<'a> {
    reader: Reader<'a>,
    depth: u8,
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.remaining() == 0 {
            return None;
        }
        let before = self.reader;
        let value = Value::read(&mut self.reader, self.depth);
        let raw = self.reader.since(&before);
        if value.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(value.map(|value| Item { value, raw }))
    }
}

/// Equal when their bytes are, wherever they stand.
impl PartialEq for Table<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for Table<'_> {}

/// Equal when their bytes are, wherever they stand.
impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Eq for Array<'_> {}

impl<'a> IntoIterator for Table<'a> {
    type Item = Result<Entry<'a>, DecodeError>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Result<Item<'a>, DecodeError>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

/// Only the length: headers are the business of those who send them.
impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} bytes)", self.entries.len())
    }
}

/// Only the length: headers are the business of those who send them.
impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} bytes)", self.items.len())
    }
}
