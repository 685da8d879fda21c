//! The forms of a message's headers and body.
//!
//! A content stays the bytes in which it came, from socket to disk to socket; it is looked into
//! only when a key, a headers exchange, a script or another protocol asks. All integers are
//! big-endian.
//!
//! - [`Form::Fila`]: `u16 count`, `count` times `u16 length, name, u16 length, value`, then
//!   `u32 length, payload`.
//! - [`Form::Amqp`] and [`Form::Fire`] share an envelope: `u8 length, exchange`,
//!   `u8 length, routing key`, `u32 length, properties`, `u32 length, payload`. The properties of
//!   AMQP are what follows the body's size in a content header: flags, then values. Those of
//!   FireMQ are `u32 length, props` and then headers, each a MessagePack map as it came; the
//!   highest bit of that length says persistent.
//!
//! What a script says of a message follows its payload in the same bytes: `u16 count`, `count`
//! times `u16 length, name, u16 length, value`. So it goes wherever the content goes; consumers
//! are not shown it.

mod envelope;
mod fila;

use std::borrow::Cow;

use tanda_wire::amqp::Properties;
use tanda_wire::mapping::{FireMessage, write_fila_headers_of_amqp, write_fila_headers_of_fire};

use envelope::Envelope;
use fila::Fila;
pub(crate) use fila::Pairs;

/// Headers that are larger than this as texts are not looked at.
const TEXTS_BYTES_MAX: usize = 16 << 20;

/// The layout of a content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// It came through Fila.
    #[default]
    Fila,
    /// It came through AMQP 0-9-1 or Amaquet.
    Amqp,
    /// It came through FireMQ.
    Fire,
}

impl Form {
    /// Its number in records; 0 is never written.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Fila => 0,
            Self::Amqp => 1,
            Self::Fire => 2,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Fila,
            1 => Self::Amqp,
            2 => Self::Fire,
            _ => return None,
        })
    }
}

/// Why bytes are not a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentError;

/// A view on a content's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    form: Form,
    bytes: &'a [u8],
}

impl<'a> Content<'a> {
    /// Views `bytes`; nothing is checked until it is asked for.
    #[must_use]
    pub const fn new(form: Form, bytes: &'a [u8]) -> Self {
        Self { form, bytes }
    }

    /// Its layout.
    #[must_use]
    pub const fn form(self) -> Form {
        self.form
    }

    /// The headers, in the order they were given, as text; ends early at malformed bytes.
    #[must_use]
    pub fn headers(self) -> Headers<'a> {
        match self.form {
            Form::Fila => Headers(Listed::Fila(Fila(self.bytes).headers())),
            Form::Amqp | Form::Fire => Headers(Listed::Decoded(self.decoded().into_iter())),
        }
    }

    /// The value of the header called `name`, as text. Of several, Fila's last counts, and the
    /// first of others: there, properties come before headers.
    #[must_use]
    pub fn header(self, name: &[u8]) -> Option<Cow<'a, [u8]>> {
        match self.form {
            Form::Fila => Fila(self.bytes).headers().named(name).map(Cow::Borrowed),
            Form::Amqp | Form::Fire => {
                let texts = self.texts();
                let mut pairs = Pairs::new(&texts);
                let found = pairs.find(|(n, _)| *n == name);
                found.map(|(_, value)| Cow::Owned(value.to_vec()))
            }
        }
    }

    /// Exchange and routing key, without a look at the rest.
    pub(crate) fn address(self) -> (&'a str, &'a str) {
        match self.form {
            Form::Fila => ("", ""),
            Form::Amqp | Form::Fire => {
                let (exchange, key) = envelope::address(self.bytes).unwrap_or_default();
                (text(exchange), text(key))
            }
        }
    }

    /// The exchange it was published to; empty when it has no envelope.
    #[must_use]
    pub fn exchange(self) -> &'a str {
        self.envelope()
            .map_or("", |envelope| text(envelope.exchange))
    }

    /// The routing key it was published with; empty when it has no envelope.
    #[must_use]
    pub fn routing_key(self) -> &'a str {
        self.envelope()
            .map_or("", |envelope| text(envelope.routing_key))
    }

    /// Its properties in their protocol's bytes; empty when it has no envelope.
    #[must_use]
    pub fn properties(self) -> &'a [u8] {
        self.envelope()
            .map_or(&[][..], |envelope| envelope.properties)
    }

    /// The payload.
    ///
    /// # Errors
    /// `ContentError` when the bytes are cut short.
    pub fn payload(self) -> Result<&'a [u8], ContentError> {
        self.split().map(|(payload, _)| payload)
    }

    /// The producer's part of the bytes: headers and payload. All of them when they are malformed.
    #[must_use]
    pub fn without_attributes(self) -> &'a [u8] {
        let after = self.split().map_or(0, |(_, after)| after.len());
        let len = self.bytes.len() - after;
        self.bytes.get(..len).unwrap_or(self.bytes)
    }

    /// The same in Fila's layout, as its consumers see it, without attributes; malformed bytes have
    /// no headers and no payload.
    #[must_use]
    pub fn in_fila_layout(self) -> Cow<'a, [u8]> {
        if self.form == Form::Fila {
            return Cow::Borrowed(self.bytes);
        }
        let payload = self.payload().unwrap_or_default();
        let mut out = self.texts();
        if out.is_empty() {
            out.extend_from_slice(&0_u16.to_be_bytes());
        }
        // It is a part of bytes whose length is a u32.
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(payload);
        Cow::Owned(out)
    }

    /// The attributes that a script gave the message, in the order it gave them; none when none
    /// did. Ends early at malformed bytes.
    pub fn attributes(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        Pairs::new(self.split().map_or(&[][..], |(_, after)| after))
    }

    /// The value of the attribute called `name`.
    #[must_use]
    pub fn attribute(self, name: &[u8]) -> Option<&'a [u8]> {
        let mut all = self.attributes();
        all.find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Where attributes begin, which may be beyond these bytes; `None` when what is before the
    /// payload is cut short.
    pub(crate) fn attributes_at(self) -> Option<usize> {
        match self.form {
            Form::Fila => Fila(self.bytes).attributes_at(),
            Form::Amqp | Form::Fire => envelope::attributes_at(self.bytes),
        }
    }

    /// The payload and what follows it.
    fn split(self) -> Result<(&'a [u8], &'a [u8]), ContentError> {
        match self.form {
            Form::Fila => Fila(self.bytes).split().ok_or(ContentError),
            Form::Amqp | Form::Fire => {
                let envelope = self.envelope().ok_or(ContentError)?;
                Ok((envelope.payload, envelope.attributes))
            }
        }
    }

    fn envelope(self) -> Option<Envelope<'a>> {
        match self.form {
            Form::Fila => None,
            Form::Amqp | Form::Fire => Envelope::read(self.bytes),
        }
    }

    /// What it says of itself, when it is one of FireMQ.
    pub(crate) fn fire_message(self) -> FireMessage<'a> {
        FireMessage::decode(self.properties())
    }

    /// Properties and headers as texts, in the layout of Fila's headers. None when they are
    /// malformed or become too large.
    fn texts(self) -> Vec<u8> {
        let mut out = Vec::new();
        let written = match self.form {
            Form::Fila => return out,
            Form::Amqp => Properties::decode(self.properties()).is_ok_and(|properties| {
                write_fila_headers_of_amqp(&mut out, &properties, TEXTS_BYTES_MAX).is_ok()
            }),
            Form::Fire => {
                let message = self.fire_message();
                write_fila_headers_of_fire(&mut out, &message, TEXTS_BYTES_MAX).is_ok()
            }
        };
        if !written {
            out.clear();
        }
        out
    }

    /// Headers and properties that are no text in the bytes.
    fn decoded(self) -> Vec<Pair<'a>> {
        let texts = self.texts();
        let own = |bytes: &[u8]| Cow::Owned(bytes.to_vec());
        let pairs = Pairs::new(&texts).map(|(name, value)| (own(name), own(value)));
        pairs.collect()
    }
}

/// A header's name and value.
type Pair<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Headers, as text.
#[derive(Debug)]
pub struct Headers<'a>(Listed<'a>);

#[derive(Debug)]
enum Listed<'a> {
    Fila(Pairs<'a>),
    Decoded(std::vec::IntoIter<Pair<'a>>),
}

impl<'a> Iterator for Headers<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Listed::Fila(pairs) => {
                let (name, value) = pairs.next()?;
                Some((name.into(), value.into()))
            }
            Listed::Decoded(pairs) => pairs.next(),
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests;
