//! What the refusals of Fila mean, and what to do. Most come as a code without a text.

use tanda_client::ErrorCode;

/// What to say of a code; `None` when there is nothing to add to its name.
pub(super) fn of(code: ErrorCode) -> Option<&'static str> {
    let found = HINTS.iter().find(|(known, _)| *known == code);
    found.map(|(_, hint)| *hint)
}

const HINTS: &[(ErrorCode, &str)] = &[
    (
        ErrorCode::ApiKeyNotFound,
        "there is no key of this ID; `tanda key list` shows those there are",
    ),
    (
        ErrorCode::Unauthorized,
        "the broker does not accept the API key any more: it has expired or was revoked; give \
             another one by --api-key-file FILE or TANDA_API_KEY",
    ),
    (
        ErrorCode::Forbidden,
        "the API key does not allow this: a superadmin can look at its grants by `tanda acl \
             get KEY_ID` and change them by `tanda acl set`; API keys and their grants are for \
             superadmins alone",
    ),
    (
        ErrorCode::AuthStateStale,
        "the broker cannot tell now which keys are valid; try again, or another node",
    ),
    (
        ErrorCode::LuaCompilationError,
        "the broker cannot load a script: it has a mistake of syntax, fails when it is loaded, \
             or lacks its function",
    ),
    (
        ErrorCode::ScriptError,
        "the on_enqueue script of the queue failed on the message, which was not stored; the \
             same message will fail again until the script or the message is changed",
    ),
    (
        ErrorCode::ScriptTimeout,
        "the on_enqueue script of the queue took too long, and the message was not stored; try \
             again, or make the script quicker",
    ),
    (
        ErrorCode::ThrottleConflict,
        "others declare a throttle of this name with another key; use the same key, or another \
             name. `tanda throttle stats NAME` shows theirs",
    ),
    (
        ErrorCode::InvalidThrottle,
        "the broker does not take the throttle: it needs a name of its own, limits above zero, \
             and none that another limit makes useless",
    ),
    (
        ErrorCode::ThrottleNotFound,
        "no consumer that is connected declares a throttle of this name; `tanda queue inspect` \
             shows those of a queue",
    ),
    (ErrorCode::NotLeader, "another node leads this queue"),
    (
        ErrorCode::NodeNotReady,
        "the broker is not ready yet; try again in a moment",
    ),
    (ErrorCode::NodeNotFound, "there is no such node"),
    (
        ErrorCode::StorageError,
        "the broker cannot write to its disk; `tanda health` names the cause",
    ),
    (
        ErrorCode::ChannelFull,
        "the broker has too much waiting; try again in a moment",
    ),
    (
        ErrorCode::InternalError,
        "the broker made a mistake; its log says more",
    ),
    (
        ErrorCode::UnsupportedVersion,
        "the broker speaks another version of the protocol",
    ),
    (
        ErrorCode::InvalidFrame,
        "the broker cannot read the request; a message may be larger than limits.max_message",
    ),
    (
        ErrorCode::CreditExhausted,
        "broker and client count the messages under way differently; begin again",
    ),
    (
        ErrorCode::QueueNotFound,
        "there is no such queue; `tanda queue list` shows those there are, `tanda queue \
             create` makes one",
    ),
    (
        ErrorCode::MessageNotFound,
        "the message is not leased any more: its lease ended, or it was settled before",
    ),
    (
        ErrorCode::QueueAlreadyExists,
        "a queue of this name, or its dead-letter queue, exists already; `tanda queue update` \
             changes one",
    ),
    (
        ErrorCode::ReservedQueueName,
        "names ending in .dlq belong to dead-letter queues, which are made, changed and \
             removed with their queue, and get their messages from it",
    ),
    (ErrorCode::NotADLQ, "it is not a dead-letter queue"),
    (
        ErrorCode::ParentQueueNotFound,
        "the queue that these dead letters belong to is gone",
    ),
    (
        ErrorCode::InvalidConfigValue,
        "the broker does not take one of the values, or has as many of these as its limits \
             allow",
    ),
    (
        ErrorCode::ImmutableSetting,
        "this setting is fixed when a queue is made; make another queue",
    ),
    (
        ErrorCode::OrderingKeyMissing,
        "the queue keeps an order by key, and the message lacks a part of the key",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_more_than_its_name() {
        for code in ErrorCode::ALL {
            let is_plain = of(*code).is_none();
            assert_eq!(is_plain, *code == ErrorCode::Ok, "{code}");
        }
    }
}
