//! The envelope around messages of AMQP and FireMQ.

/// The parts of an envelope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope<'a> {
    pub(super) exchange: &'a [u8],
    pub(super) routing_key: &'a [u8],
    pub(super) properties: &'a [u8],
    pub(super) payload: &'a [u8],
    /// What follows the payload.
    pub(super) attributes: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (exchange, rest) = take_short(bytes)?;
        let (routing_key, rest) = take_short(rest)?;
        let (properties, rest) = take_long(rest)?;
        let (payload, attributes) = take_long(rest)?;
        Some(Self {
            exchange,
            routing_key,
            properties,
            payload,
            attributes,
        })
    }
}

/// Exchange and routing key.
pub(super) fn address(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (exchange, rest) = take_short(bytes)?;
    let (routing_key, _) = take_short(rest)?;
    Some((exchange, routing_key))
}

/// Where attributes begin, which may be beyond these bytes.
pub(super) fn attributes_at(bytes: &[u8]) -> Option<usize> {
    let (_, rest) = take_short(bytes)?;
    let (_, rest) = take_short(rest)?;
    let (_, rest) = take_long(rest)?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let payload_at = bytes.len() - rest.len();
    payload_at.checked_add(u32::from_be_bytes(*len) as usize)
}

fn take_short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

fn take_long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}
