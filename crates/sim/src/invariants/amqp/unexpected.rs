//! The broker speaks AMQP and FireMQ: frames parse, answers belong to requests, each confirm comes
//! once, and channels and connections end for reasons that a correct client may meet.
//!
//! Source: the AMQP 0-9-1 specification, `amqp0-9-1.pdf`; `docs/amqp.md`, "Errors"; `firemq.md`,
//! "Replies" and "Publishing".

use crate::failure::{Check, Violation, ensure};

pub(crate) const NAME: &str = "the broker speaks AMQP";

pub(crate) fn of(what: String) -> Violation {
    Violation {
        invariant: NAME,
        what,
    }
}

/// The broker has ended a channel or connection.
pub(crate) fn on_close(code: u16, text: &str) -> Check {
    let is_allowed = match code {
        // The log has failed, or memory or disk are full.
        541 | 506 | 320 => true,
        406 => text.contains("a message was not taken") || text.contains("partial tx completion"),
        _ => false,
    };
    ensure(is_allowed, NAME, || format!("closed with {code}: {text}"))
}
