//! The broker speaks the protocol: frames parse, answers belong to requests, errors are expected.
//!
//! Source: `fila.md`; settled details, "a failed request answers its own result frame".

use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::{ErrorCode, Opcode};

use crate::failure::Violation;

pub(crate) const NAME: &str = "the broker speaks Fila";

pub(crate) fn bad_body(opcode: Opcode, error: DecodeError) -> Violation {
    Violation {
        invariant: NAME,
        what: format!("{opcode}: {error}"),
    }
}

pub(crate) fn unexpected(what: &str, code: ErrorCode) -> Violation {
    Violation {
        invariant: NAME,
        what: format!("{what}: {code:?}"),
    }
}

pub(crate) fn stray(opcode: Opcode, request_id: u32) -> Violation {
    Violation {
        invariant: NAME,
        what: format!("{opcode} answers no request: {request_id}"),
    }
}
