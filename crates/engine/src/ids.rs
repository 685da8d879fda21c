//! Identities, positions and time, each its own type.

use core::fmt;

/// Engine time: Unix milliseconds, anchored to the wall clock at start and advanced by the
/// monotonic clock, so it never runs backwards while the process lives (ADR-0002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// The moment `ms` later, saturating.
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `self` until `later`; 0 when that is past.
    #[must_use]
    pub const fn until(self, later: Self) -> u64 {
        later.0.saturating_sub(self.0)
    }
}

/// A position in the log, in bytes. `Lsn::ZERO` is durable by definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before everything: an effect after it waits for nothing.
    pub const ZERO: Self = Self(0);
}

/// A message's identity: a UUIDv7 as a big-endian number. It never changes, also across redrive.
/// Its first 48 bits are the message's `enqueued_at`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u128);

impl MessageId {
    /// Nobody's id; stands for "none" where the wire wants 16 bytes.
    pub const NIL: Self = Self(0);

    /// The 16 bytes in RFC 9562 order.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From 16 bytes in RFC 9562 order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// When the message was enqueued.
    #[must_use]
    pub const fn enqueued_at(self) -> Millis {
        Millis((self.0 >> 80) as u64)
    }

    /// Reads the 36-character text form (case-insensitive); `None` when it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut value: u128 = 0;
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 8 | 13 | 18 | 23) {
                if *byte != b'-' {
                    return None;
                }
                continue;
            }
            let digit = char::from(*byte).to_digit(16)?;
            value = (value << 4) | u128::from(digit);
        }
        Some(Self(value))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            v >> 96,
            (v >> 80) & 0xffff,
            (v >> 64) & 0xffff,
            (v >> 48) & 0xffff,
            v & 0xffff_ffff_ffff
        )
    }
}

/// A place in the page file; only who keeps the pages knows where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSlot(pub u32);

/// A queue's identity in the log; never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// A virtual host's identity in the log; never reused. The default one, `/`, is 0 and always
/// exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VhostId(pub u32);

impl VhostId {
    /// The virtual host `/`, which Fila serves.
    pub const DEFAULT: Self = Self(0);
}

/// A connection, unique while the process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Where an answer goes: the connection and the session's own token (Fila: the request id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyTo {
    /// The asking connection.
    pub conn: ConnId,
    /// The session's token, given back unread.
    pub token: u32,
}

/// A subscription: the connection and the session's token for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubId {
    /// The subscribing connection.
    pub conn: ConnId,
    /// The session's token, given back unread.
    pub token: u32,
}

/// A range inside a batch's shared bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes; 0 stands for absent where absence and emptiness mean the same.
    pub len: u32,
}

impl Span {
    /// The bytes of this span; empty when it does not lie inside `data`.
    #[must_use]
    pub fn of(self, data: &[u8]) -> &[u8] {
        let start = self.start as usize;
        data.get(start..start.saturating_add(self.len as usize))
            .unwrap_or_default()
    }

    /// The text of this span; empty when it is not UTF-8 (sessions check it before).
    #[must_use]
    pub fn text(self, data: &[u8]) -> &str {
        core::str::from_utf8(self.of(data)).unwrap_or_default()
    }
}
