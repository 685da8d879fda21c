//! The reply codes of the specification's XML, with what they end.

use tanda_wire::amqp::{ReplyCode, Scope};

const SPECIFIED: &[(u16, &str, Scope)] = &[
    (200, "REPLY_SUCCESS", Scope::None),
    (311, "CONTENT_TOO_LARGE", Scope::Channel),
    (312, "NO_ROUTE", Scope::None),
    (313, "NO_CONSUMERS", Scope::Channel),
    (320, "CONNECTION_FORCED", Scope::Connection),
    (402, "INVALID_PATH", Scope::Connection),
    (403, "ACCESS_REFUSED", Scope::Channel),
    (404, "NOT_FOUND", Scope::Channel),
    (405, "RESOURCE_LOCKED", Scope::Channel),
    (406, "PRECONDITION_FAILED", Scope::Channel),
    (501, "FRAME_ERROR", Scope::Connection),
    (502, "SYNTAX_ERROR", Scope::Connection),
    (503, "COMMAND_INVALID", Scope::Connection),
    (504, "CHANNEL_ERROR", Scope::Connection),
    (505, "UNEXPECTED_FRAME", Scope::Connection),
    (506, "RESOURCE_ERROR", Scope::Connection),
    (530, "NOT_ALLOWED", Scope::Connection),
    (540, "NOT_IMPLEMENTED", Scope::Connection),
    (541, "INTERNAL_ERROR", Scope::Connection),
];

#[test]
fn codes_have_their_numbers_names_and_scopes() {
    let ours: Vec<_> = ReplyCode::ALL
        .iter()
        .map(|code| (code.to_wire(), code.name(), code.scope()))
        .collect();
    assert_eq!(ours, SPECIFIED);
}

#[test]
fn numbers_become_codes() {
    for number in 0..=u16::MAX {
        let listed = SPECIFIED.iter().any(|(other, ..)| *other == number);
        let code = ReplyCode::from_wire(number);
        assert_eq!(code.map(ReplyCode::to_wire), listed.then_some(number));
    }
    assert_eq!(ReplyCode::NotFound.to_string(), "NOT_FOUND (404)");
}
