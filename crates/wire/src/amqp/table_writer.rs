//! Writing field tables and arrays, also from parts of others as they came.
//!
//! ```no_run
//! # use tanda_wire::amqp::{ShortStr, Table, TableWriter, Value};
//! # fn f(old: Table<'_>) -> Result<(), tanda_wire::cursor::DecodeError> {
//! let mut entries = Vec::new();
//! let mut writer = TableWriter::new(&mut entries);
//! writer.value(ShortStr::clip("x-first-death-queue"), &Value::text("orders"));
//! writer.copy_without(old, &[b"x-first-death-queue"])?;
//! # Ok(()) }
//! ```

use super::field::Field;
use super::strings::ShortStr;
use super::table::{Entry, Table};
use super::value::Value;
use crate::cursor::DecodeError;

/// What becomes of an entry that is copied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edit<'v> {
    /// It is copied as it came.
    Keep,
    /// It is left out.
    Remove,
    /// It keeps key and place, and has this value.
    Replace(Value<'v>),
}

/// Appends entries of a table, without the length before them: what [`Table::new`] takes.
#[derive(Debug)]
pub struct TableWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> TableWriter<'o> {
    /// Appends to `out`.
    pub const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends a key and a value.
    pub fn value(&mut self, key: ShortStr<'_>, value: &Value<'_>) -> &mut Self {
        key.write(self.out);
        value.write(self.out);
        self
    }

    /// Appends a key and a value with its tag, as [`Entry::raw_value`] and [`Item::raw`] hold it.
    ///
    /// [`Item::raw`]: super::table::Item::raw
    pub fn raw_value(&mut self, key: ShortStr<'_>, raw: &[u8]) -> &mut Self {
        key.write(self.out);
        self.out.extend_from_slice(raw);
        self
    }

    /// Appends entries with their keys, as [`Entry::raw`] and [`Table::as_bytes`] hold them.
    pub fn raw_entries(&mut self, raw: &[u8]) -> &mut Self {
        self.out.extend_from_slice(raw);
        self
    }

    /// Appends a key and a table, whose entries `entries` writes.
    pub fn table(
        &mut self,
        key: ShortStr<'_>,
        entries: impl FnOnce(&mut TableWriter<'_>),
    ) -> &mut Self {
        key.write(self.out);
        write_table(self.out, entries);
        self
    }

    /// Appends a key and an array, whose items `items` writes.
    pub fn array(
        &mut self,
        key: ShortStr<'_>,
        items: impl FnOnce(&mut ArrayWriter<'_>),
    ) -> &mut Self {
        key.write(self.out);
        write_array(self.out, items);
        self
    }

    /// Appends the entries of `table` whose keys are not in `keys`, as they came.
    ///
    /// # Errors
    /// When an entry of `table` breaks the layout; those before it are then written.
    pub fn copy_without(&mut self, table: Table<'_>, keys: &[&[u8]]) -> Result<(), DecodeError> {
        self.copy_edited(table, |entry| {
            if keys.contains(&entry.key.as_bytes()) {
                Edit::Remove
            } else {
                Edit::Keep
            }
        })
    }

    /// Appends the entries of `table` as `edit` decides for each.
    ///
    /// # Errors
    /// When an entry of `table` breaks the layout; those before it are then written.
    pub fn copy_edited<'t, 'v>(
        &mut self,
        table: Table<'t>,
        mut edit: impl FnMut(&Entry<'t>) -> Edit<'v>,
    ) -> Result<(), DecodeError> {
        for entry in table {
            let entry = entry?;
            match edit(&entry) {
                Edit::Keep => self.out.extend_from_slice(entry.raw),
                Edit::Remove => {}
                Edit::Replace(value) => {
                    self.value(entry.key, &value);
                }
            }
        }
        Ok(())
    }
}

/// Appends items of an array, without the length before them: what [`Array::new`] takes.
///
/// [`Array::new`]: super::table::Array::new
#[derive(Debug)]
pub struct ArrayWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> ArrayWriter<'o> {
    /// Appends to `out`.
    pub const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends a value.
    pub fn value(&mut self, value: &Value<'_>) -> &mut Self {
        value.write(self.out);
        self
    }

    /// Appends values with their tags, as [`Item::raw`] and [`Array::as_bytes`] hold them.
    ///
    /// [`Item::raw`]: super::table::Item::raw
    /// [`Array::as_bytes`]: super::table::Array::as_bytes
    pub fn raw(&mut self, raw: &[u8]) -> &mut Self {
        self.out.extend_from_slice(raw);
        self
    }

    /// Appends a table, whose entries `entries` writes.
    pub fn table(&mut self, entries: impl FnOnce(&mut TableWriter<'_>)) -> &mut Self {
        write_table(self.out, entries);
        self
    }

    /// Appends an array, whose items `items` writes.
    pub fn array(&mut self, items: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        write_array(self.out, items);
        self
    }
}

fn write_table(out: &mut Vec<u8>, entries: impl FnOnce(&mut TableWriter<'_>)) {
    write_nested(out, b'F', |out| entries(&mut TableWriter { out }));
}

fn write_array(out: &mut Vec<u8>, items: impl FnOnce(&mut ArrayWriter<'_>)) {
    write_nested(out, b'A', |out| items(&mut ArrayWriter { out }));
}

/// Appends a tag, a length, and what `inner` appends.
fn write_nested(out: &mut Vec<u8>, tag: u8, inner: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    inner(out);
    let len = out.len().saturating_sub(length_at + 4);
    // A length that does not fit stands in a table that `Table::new` refuses.
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let place = out.get_mut(length_at..length_at + 4);
    if let Some(place) = place {
        place.copy_from_slice(&len.to_be_bytes());
    }
}
