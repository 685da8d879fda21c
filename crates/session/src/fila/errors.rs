//! Which Fila code stands for which refusal of the engine. Each function is exhaustive.

use tanda_engine::{
    CreateApiKeyError, CreateQueueError, DeleteQueueError, PublishError, RedriveError,
    RuntimeConfigError, SetAclError, SettleError, SubscribeError, UpdateQueueError,
};
use tanda_wire::fila::ErrorCode;

/// One item of an `EnqueueResult`.
pub(super) const fn publish(error: PublishError) -> ErrorCode {
    match error {
        PublishError::QueueNotFound
        | PublishError::ExchangeNotFound
        | PublishError::ExchangeInternal
        | PublishError::ExchangeNotTopic
        | PublishError::TooManyExchanges => ErrorCode::QueueNotFound,
        PublishError::ReservedQueueName => ErrorCode::ReservedQueueName,
        PublishError::Forbidden => ErrorCode::Forbidden,
        PublishError::OrderingKeyMissing => ErrorCode::OrderingKeyMissing,
        PublishError::TooLarge => ErrorCode::InvalidFrame,
        // The one code that tells a producer to come again later.
        // As an item it arises only where a batch is answered as a whole.
        PublishError::QueueFull | PublishError::Overloaded => ErrorCode::ChannelFull,
        PublishError::ScriptFailed => ErrorCode::ScriptError,
        PublishError::ScriptTimedOut => ErrorCode::ScriptTimeout,
        PublishError::Storage => ErrorCode::StorageError,
    }
}

/// One item of an `AckResult`, `NackResult` or `ExtendLeaseResult`.
pub(super) const fn settle(error: SettleError) -> ErrorCode {
    match error {
        SettleError::MessageNotFound => ErrorCode::MessageNotFound,
        SettleError::Forbidden => ErrorCode::Forbidden,
    }
}

/// The `Error` that answers a `Consume`: code and text.
pub(super) fn subscribe(error: &SubscribeError) -> (ErrorCode, String) {
    match error {
        SubscribeError::QueueNotFound => (
            ErrorCode::QueueNotFound,
            "there is no queue of this name".to_owned(),
        ),
        SubscribeError::TokenInUse => (
            ErrorCode::InternalError,
            "the broker already knows a subscription under this token".to_owned(),
        ),
        // Waiting does not help, so it must not be ChannelFull.
        SubscribeError::TooMany { max } => (
            ErrorCode::InvalidConfigValue,
            format!("this connection has its {max} subscriptions: cancel one or open another"),
        ),
        SubscribeError::InvalidThrottle { name, problem } => (
            ErrorCode::InvalidThrottle,
            format!("throttle {name:?}: {problem}"),
        ),
        SubscribeError::ResourceLocked(text) | SubscribeError::AccessRefused(text) => {
            (ErrorCode::Forbidden, text.clone())
        }
        SubscribeError::ThrottleConflict { name } => (
            ErrorCode::ThrottleConflict,
            format!(
                "throttle {name:?} is declared by other subscribers with another key: use theirs, \
                 or another name"
            ),
        ),
    }
}

/// `CreateQueueResult`.
pub(super) const fn create_queue(error: &CreateQueueError) -> ErrorCode {
    match error {
        CreateQueueError::AlreadyExists => ErrorCode::QueueAlreadyExists,
        CreateQueueError::ReservedName => ErrorCode::ReservedQueueName,
        CreateQueueError::InvalidSetting { .. } | CreateQueueError::TooManyQueues { .. } => {
            ErrorCode::InvalidConfigValue
        }
        CreateQueueError::ScriptsUnsupported | CreateQueueError::ScriptRefused { .. } => {
            ErrorCode::LuaCompilationError
        }
        // That of Fila is always there.
        CreateQueueError::VhostNotFound | CreateQueueError::Storage => ErrorCode::StorageError,
    }
}

/// `UpdateQueueResult`. What is fixed at creation has no field in `UpdateQueue`; all that is left
/// to try are the settings of a dead-letter queue, which are fixed when its queue is made.
pub(super) const fn update_queue(error: &UpdateQueueError) -> ErrorCode {
    match error {
        UpdateQueueError::NotFound => ErrorCode::QueueNotFound,
        UpdateQueueError::ReservedName => ErrorCode::ImmutableSetting,
        UpdateQueueError::InvalidSetting { .. } => ErrorCode::InvalidConfigValue,
        UpdateQueueError::ScriptsUnsupported | UpdateQueueError::ScriptRefused { .. } => {
            ErrorCode::LuaCompilationError
        }
        UpdateQueueError::Storage => ErrorCode::StorageError,
    }
}

/// `DeleteQueueResult`.
pub(super) const fn delete_queue(error: DeleteQueueError) -> ErrorCode {
    match error {
        DeleteQueueError::NotFound => ErrorCode::QueueNotFound,
        DeleteQueueError::ReservedName => ErrorCode::ReservedQueueName,
    }
}

/// `RedriveResult`.
pub(super) const fn redrive(error: RedriveError) -> ErrorCode {
    match error {
        RedriveError::NotFound => ErrorCode::QueueNotFound,
        RedriveError::NotDeadLetterQueue => ErrorCode::NotADLQ,
    }
}

/// `SetConfigResult`.
pub(super) const fn set_config(error: RuntimeConfigError) -> ErrorCode {
    match error {
        RuntimeConfigError::BadKey { .. } | RuntimeConfigError::TooMany { .. } => {
            ErrorCode::InvalidConfigValue
        }
        RuntimeConfigError::Storage => ErrorCode::StorageError,
    }
}

/// `CreateApiKeyResult`.
pub(super) const fn create_key(error: &CreateApiKeyError) -> ErrorCode {
    match error {
        CreateApiKeyError::BadName { .. } | CreateApiKeyError::TooMany { .. } => {
            ErrorCode::InvalidConfigValue
        }
        // The secret was drawn at random.
        CreateApiKeyError::SecretInUse => ErrorCode::InternalError,
        CreateApiKeyError::Storage => ErrorCode::StorageError,
    }
}

/// `SetAclResult`.
pub(super) const fn set_acl(error: &SetAclError) -> ErrorCode {
    match error {
        SetAclError::NotFound => ErrorCode::ApiKeyNotFound,
        SetAclError::TooMany { .. }
        | SetAclError::BadPattern { .. }
        | SetAclError::TooManyBytes { .. } => ErrorCode::InvalidConfigValue,
    }
}

/// The code of a result whose success carries nothing.
pub(super) fn code_of<T, E>(result: Result<T, E>, code: impl FnOnce(E) -> ErrorCode) -> ErrorCode {
    result.map_or_else(code, |_| ErrorCode::Ok)
}
