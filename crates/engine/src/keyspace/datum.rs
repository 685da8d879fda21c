//! What keys hold.

use core::fmt;
use std::sync::Arc;

/// What the bytes of a [`Datum`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DatumForm {
    /// The text of one JSON value.
    Json = 1,
    /// Text.
    Text = 2,
    /// Bytes.
    Bytes = 3,
}

impl DatumForm {
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Json,
            2 => Self::Text,
            3 => Self::Bytes,
            _ => return None,
        })
    }
}

/// One payload. Clones share the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Datum {
    /// What the bytes are.
    pub form: DatumForm,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

impl Datum {
    /// A payload of these bytes.
    #[must_use]
    pub fn new(form: DatumForm, bytes: &[u8]) -> Self {
        Self {
            form,
            bytes: bytes.into(),
        }
    }

    /// An integer, as JSON.
    #[must_use]
    pub(super) fn of_integer(value: i64) -> Self {
        Self::new(DatumForm::Json, value.to_string().as_bytes())
    }

    /// The integer that it is, as JSON.
    #[must_use]
    pub(super) fn integer(&self) -> Option<i64> {
        let text = (self.form == DatumForm::Json).then_some(&self.bytes)?;
        core::str::from_utf8(text).ok()?.parse().ok()
    }

    /// Rough bytes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        const SHARED: usize = 32;
        SHARED + size_of::<Self>() + self.bytes.len()
    }
}

impl fmt::Debug for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.get(..64).unwrap_or(&self.bytes);
        write!(f, "{:?}(\"{}\")", self.form, bytes.escape_ascii())
    }
}

/// What a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum KeyType {
    /// One payload with a version.
    Value = 1,
    /// An integer.
    Counter = 2,
    /// Payloads by the names of fields.
    Map = 3,
    /// Payloads in a row.
    List = 4,
    /// Texts, each once.
    Set = 5,
    /// Texts in the order of their scores.
    Ranking = 6,
    /// A lock; the key is there while somebody holds it.
    Lock = 7,
}

impl KeyType {
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Value,
            2 => Self::Counter,
            3 => Self::Map,
            4 => Self::List,
            5 => Self::Set,
            6 => Self::Ranking,
            7 => Self::Lock,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Counter => "counter",
            Self::Map => "map",
            Self::List => "list",
            Self::Set => "set",
            Self::Ranking => "ranking",
            Self::Lock => "lock",
        }
    }
}
