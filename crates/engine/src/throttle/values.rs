//! The values of a throttle's key, as one string of bytes: each with its length before it.

use crate::record::put_short;

/// Appends one value.
pub(crate) fn push(out: &mut Vec<u8>, value: &[u8]) {
    put_short(out, value);
}

/// The values in the order in which they were appended.
pub(crate) fn iter(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let (value, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        rest = after;
        Some(value)
    })
}

/// The values as texts, for operators.
pub(crate) fn texts(values: &[u8]) -> Vec<String> {
    iter(values)
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect()
}
