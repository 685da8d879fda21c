//! The envelope around messages that came through AMQP or FireMQ.
//!
//! ```text
//! u8 length, exchange | u8 length, routing key | u32 length, properties | u32 length, body
//! ```

/// A message in its envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    /// Exchange and routing key with their lengths, as AMQP frames have them too.
    pub(crate) names: &'a [u8],
    /// The exchange; empty for the default one.
    pub(crate) exchange: &'a [u8],
    /// The routing key.
    pub(crate) routing_key: &'a [u8],
    /// The properties in their protocol's bytes.
    pub(crate) properties: &'a [u8],
    /// The body.
    pub(crate) body: &'a [u8],
    /// Bytes of all this.
    pub(crate) len: usize,
}

impl<'a> Envelope<'a> {
    /// Appends everything before the properties, of which the exchange and the routing key have at
    /// most 255 bytes.
    #[inline]
    pub(crate) fn write_names(out: &mut Vec<u8>, exchange: &[u8], routing_key: &[u8]) {
        for name in [exchange, routing_key] {
            debug_assert!(u8::try_from(name.len()).is_ok(), "names are bounded");
            out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(name);
        }
    }

    /// Reads the one at the front of `bytes`; `None` when it is cut short.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (exchange, rest) = short(bytes)?;
        let (routing_key, rest) = short(rest)?;
        let names = bytes.get(..bytes.len() - rest.len())?;
        let (properties, rest) = long(rest)?;
        let (body, rest) = long(rest)?;
        Some(Self {
            names,
            exchange,
            routing_key,
            properties,
            body,
            len: bytes.len() - rest.len(),
        })
    }
}

#[inline]
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

#[inline]
fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_whole_or_not_at_all() {
        let bytes = b"\x02ex\x01k\0\0\0\x02\0\0\0\0\0\x03abc";
        let longer = [&bytes[..], b"rest"].concat();
        let envelope = Envelope {
            names: b"\x02ex\x01k",
            exchange: b"ex",
            routing_key: b"k",
            properties: b"\0\0",
            body: b"abc",
            len: bytes.len(),
        };
        assert_eq!(Envelope::read(&longer), Some(envelope));
        for len in 0..bytes.len() {
            assert_eq!(Envelope::read(&bytes[..len]), None, "{len}");
        }
    }
}
