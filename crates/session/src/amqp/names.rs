//! Names and arguments as they come from the wire, and names that the server makes.

use bytes::Bytes;
use tanda_wire::amqp::{ReplyCode, ShortStr, Table};

use super::fault::Fault;
use super::link::Link;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Characters of a name that nobody can foresee: 128 bits of them.
const UNIQUE_CHARS: usize = 22;

/// A short string as text. RabbitMQ takes others for a broken frame.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn text<'a>(value: ShortStr<'a>) -> Result<&'a str, Fault> {
    value.to_str().map_err(|_utf8| {
        let text = format!("\"{value}\" is not valid UTF-8");
        Fault::new(ReplyCode::FrameError, text)
    })
}

/// The name of an exchange or queue: without line breaks, which RabbitMQ takes out.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn name(value: ShortStr<'_>) -> Result<String, Fault> {
    let name = text(value)?;
    Ok(name
        .chars()
        .filter(|it| !matches!(it, '\r' | '\n'))
        .collect())
}

/// Arguments, checked, as they are kept.
///
/// # Errors
/// They break the layout.
pub(super) fn arguments(table: Table<'_>) -> Result<Bytes, Fault> {
    table
        .validate()
        .map_err(|error| Fault::of_layout("arguments", error))?;
    Ok(Bytes::copy_from_slice(table.as_bytes()))
}

impl Link {
    /// A name that no other has.
    pub(super) fn unique_name(&mut self, prefix: &str) -> String {
        let entropy = self.config.entropy.as_ref();
        let bits = entropy.and_then(|entropy| entropy.draw());
        let bits = bits.unwrap_or_else(|| {
            // Foreseeable, but nobody else's: connections have their own numbers.
            self.names_made += 1;
            let mut bits = [0; 32];
            let (conn, made) = (self.conn.0.to_be_bytes(), self.names_made.to_be_bytes());
            for (bit, byte) in bits.iter_mut().zip(conn.iter().chain(&made)) {
                *bit = *byte;
            }
            bits
        });
        let mut name = prefix.to_owned();
        let (mut pool, mut held) = (0_u32, 0);
        let mut bytes = bits.iter();
        for _ in 0..UNIQUE_CHARS {
            if held < 6 {
                pool = pool << 8 | u32::from(bytes.next().copied().unwrap_or_default());
                held += 8;
            }
            held -= 6;
            let digit = (pool >> held) & 63;
            name.push(char::from(
                ALPHABET.get(digit as usize).copied().unwrap_or(b'A'),
            ));
        }
        name
    }
}
