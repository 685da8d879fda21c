//! The properties of a message as bytes: flags, then the values of the flags that are set.
//!
//! ```text
//! u16 flags, highest bit first; bit 0: another flag word follows | values in the order of flags
//! ```
//!
//! Owns: checking the layout once, finding one value, and changing some without touching others.
//! The entries of the headers table are not read before someone asks. What names properties is
//! [`super::property`].

use core::fmt;

use super::field::Field;
use super::property::{KNOWN_FLAGS, LAYOUTS, Layout, Property, PropertyKind};
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// Flag bit 0: another word of flags follows (§4.2.6.1).
const FLAG_MORE: u16 = 1;

/// Checked properties, borrowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Properties<'a> {
    /// Flags and values as they came.
    raw: &'a [u8],
    /// The first word of flags.
    flags: u16,
    /// Bytes of flags; at least 2.
    values_at: usize,
}

impl Default for Properties<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const EMPTY: Self = Self {
        raw: &[0, 0],
        flags: 0,
        values_at: 2,
    };

    /// Checks flags and values that fill all of `raw`.
    ///
    /// Bit 1 names no property and is ignored, as RabbitMQ ignores it; so are further words of
    /// flags that are empty. A flag set in one of them names a value nobody knows the length of.
    ///
    /// # Errors
    /// When the values do not follow the layout or do not fill `raw`, or a further flag is set.
    #[inline]
    pub fn decode(raw: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(raw);
        let flags = r.u16_be()?;
        if flags & FLAG_MORE != 0 {
            skip_further_flags(&mut r)?;
        }
        let values_at = r.offset();
        let mut left = flags & KNOWN_FLAGS;
        while left != 0 {
            let bit = 15 - left.leading_zeros();
            left &= !(1 << bit);
            skip_value(&mut r, bit)?;
        }
        if r.remaining() != 0 {
            return Err(r.error(DecodeErrorKind::TrailingBytes {
                have: r.remaining(),
            }));
        }
        Ok(Self {
            raw,
            flags,
            values_at,
        })
    }

    /// Flags and values, exactly as they came.
    #[inline]
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.flags & KNOWN_FLAGS == 0
    }

    /// Whether there is one of this kind.
    #[inline]
    #[must_use]
    pub const fn has(&self, kind: PropertyKind) -> bool {
        self.flags & kind.flag() != 0
    }

    /// The value of a property as it came, with its length where it has one.
    #[inline]
    #[must_use]
    pub fn raw_value(&self, kind: PropertyKind) -> Option<&'a [u8]> {
        if !self.has(kind) {
            return None;
        }
        let mut r = Reader::new(self.raw.get(self.values_at..)?);
        // Values of higher bits stand before it. They were checked, so skipping them never fails.
        let mut before = self.flags & !(kind.flag() | (kind.flag() - 1));
        while before != 0 {
            let bit = 15 - before.leading_zeros();
            before &= !(1 << bit);
            skip_value(&mut r, bit).ok()?;
        }
        let start = r;
        skip_value(&mut r, kind.flag().trailing_zeros()).ok()?;
        Some(r.since(&start))
    }

    /// The value of a property, whose type the caller knows.
    #[inline]
    pub(super) fn value<T: Field<'a>>(&self, kind: PropertyKind) -> Option<T> {
        let raw = self.raw_value(kind)?;
        T::read(&mut Reader::new(raw)).ok()
    }

    /// Appends these properties with one set: replaced, or added.
    pub fn with(&self, out: &mut Vec<u8>, property: Property<'_>) {
        self.edited(out, &[property], &[]);
    }

    /// Appends these properties without one.
    pub fn without(&self, out: &mut Vec<u8>, kind: PropertyKind) {
        self.edited(out, &[], &[kind]);
    }

    /// Appends these properties without those of `remove`, and then with those of `set`, the last
    /// of a kind. All others are copied as they came.
    pub fn edited(&self, out: &mut Vec<u8>, set: &[Property<'_>], remove: &[PropertyKind]) {
        let mut flags = self.flags & KNOWN_FLAGS;
        for kind in remove {
            flags &= !kind.flag();
        }
        for property in set {
            flags |= property.kind().flag();
        }
        out.extend_from_slice(&flags.to_be_bytes());
        for kind in PropertyKind::ALL {
            if flags & kind.flag() == 0 {
                continue;
            }
            match set.iter().rfind(|property| property.kind() == *kind) {
                Some(property) => property.write(out),
                None => out.extend_from_slice(self.raw_value(*kind).unwrap_or_default()),
            }
        }
    }
}

#[cold]
fn skip_further_flags(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    loop {
        let before = *r;
        let flags = r.u16_be()?;
        if flags & !FLAG_MORE != 0 {
            return Err(before.error(DecodeErrorKind::UnknownFlags {
                what: "property flags",
                flags,
            }));
        }
        if flags == 0 {
            return Ok(());
        }
    }
}

/// Skips the value of the flag at `bit`.
#[inline]
fn skip_value(r: &mut Reader<'_>, bit: u32) -> Result<(), DecodeError> {
    let layout = LAYOUTS.get(bit as usize).copied().unwrap_or(Layout::Octet);
    let (len, what) = match layout {
        Layout::Short => (usize::from(r.u8()?), "short string"),
        Layout::Table => (r.u32_be()? as usize, "table"),
        Layout::Octet => (1, "octet"),
        Layout::Timestamp => (8, "timestamp"),
    };
    r.slice(len, what).map(|_| ())
}

/// The values, tables by their length only.
impl fmt::Debug for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values().fmt(f)
    }
}
