//! Layouts that share their Rust type with another one; a struct names them with `as`.
//!
//! Owns: `text`, optional `text`, lists with a `u16` count, and strings that are cut to fit.
//! Refuses to know: which field uses which.

/// `text`: `u32` length, then UTF-8.
pub(crate) mod text {
    use crate::cursor::{DecodeError, Reader};
    use crate::fila::field::{EncodeError, write_bytes};

    pub(crate) const SIZE_MIN: usize = 4;

    pub(crate) fn read<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
        let len = r.u32_be()?;
        r.utf8(len as usize, "text")
    }

    pub(crate) fn write(value: &str, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_bytes(out, value.as_bytes(), "text")
    }

    pub(crate) const fn size(value: &str) -> usize {
        4 + value.len()
    }
}

/// `optional<text>`.
pub(crate) mod optional_text {
    use super::text;
    use crate::cursor::{DecodeError, Reader};
    use crate::fila::field::EncodeError;

    pub(crate) const SIZE_MIN: usize = 1;

    pub(crate) fn read<'a>(r: &mut Reader<'a>) -> Result<Option<&'a str>, DecodeError> {
        if r.bool("presence byte")? {
            text::read(r).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(crate) fn write(value: &Option<&str>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.push(u8::from(value.is_some()));
        value.map_or(Ok(()), |script| text::write(script, out))
    }

    pub(crate) fn size(value: &Option<&str>) -> usize {
        1 + value.map_or(0, text::size)
    }
}

/// A `string` for people, cut at [`STRING_BYTES_MAX`](crate::fila::STRING_BYTES_MAX) when longer:
/// an error must reach its reader even when its text is too long.
pub(crate) mod clipped {
    use crate::cursor::{DecodeError, Reader};
    use crate::fila::field::{EncodeError, Field, STRING_BYTES_MAX, write_string};

    pub(crate) const SIZE_MIN: usize = 2;

    fn clip(value: &str) -> &str {
        let end = value.floor_char_boundary(STRING_BYTES_MAX);
        value.get(..end).unwrap_or_default()
    }

    pub(crate) fn read<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
        Field::read(r)
    }

    pub(crate) fn write(value: &str, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, clip(value))
    }

    pub(crate) fn size(value: &str) -> usize {
        2 + clip(value).len()
    }
}

/// A list with a `u16` count.
pub(crate) mod list_u16 {
    use crate::cursor::{DecodeError, Reader};
    use crate::fila::field::{EncodeError, Field, prefix_u16, read_items};

    pub(crate) const SIZE_MIN: usize = 2;

    pub(crate) fn read<'a, T: Field<'a>>(r: &mut Reader<'a>) -> Result<Vec<T>, DecodeError> {
        let count = r.u16_be()?;
        read_items(r, usize::from(count))
    }

    pub(crate) fn write<'a, T: Field<'a>>(
        items: &[T],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let count = prefix_u16(items.len(), "list")?;
        out.extend_from_slice(&count.to_be_bytes());
        items.iter().try_for_each(|item| item.write(out))
    }

    pub(crate) fn size<'a, T: Field<'a>>(items: &[T]) -> usize {
        2 + items.iter().map(Field::size).sum::<usize>()
    }
}
