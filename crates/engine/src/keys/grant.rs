//! One permission of a key.

use super::glob;

/// What may be done with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Permission {
    /// Enqueue.
    Produce = 1,
    /// Consume, ack, nack, extend.
    Consume = 2,
    /// Create, change, delete, inspect, redrive, purge.
    Admin = 3,
}

impl Permission {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Produce, Self::Consume, Self::Admin];

    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Produce,
            2 => Self::Consume,
            3 => Self::Admin,
            _ => return None,
        })
    }
}

/// A permission for all queues whose names follow a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What may be done.
    pub permission: Permission,
    /// With which queues: `*` stands for any characters (dots included, also none), `?` for one
    /// character.
    pub pattern: Box<str>,
}

impl Grant {
    /// Whether it covers the queue of this name.
    #[must_use]
    pub fn covers(&self, queue: &str) -> bool {
        glob::matches(&self.pattern, queue)
    }

    /// Whether it covers every queue there may ever be.
    #[must_use]
    pub fn covers_everything(&self) -> bool {
        glob::is_everything(&self.pattern)
    }
}
