//! The error codes (`Error Codes`), in error frames and in per-item results.

use super::field::{EncodeError, Field};
use super::table::code_table;
use crate::cursor::{DecodeError, Reader};

code_table! {
    /// Why a request or one item of a batch was refused; `Ok` when it was not.
    #[derive(Default)]
    pub enum ErrorCode {
        /// Done; only per item, never in an error frame.
        #[default]
        Ok = 0x00,
        /// There is no queue of this name.
        QueueNotFound = 0x01,
        /// No lease is held on this message: it is unknown, settled, or its lease ended.
        MessageNotFound = 0x02,
        /// The name is in use.
        QueueAlreadyExists = 0x03,
        /// The script does not compile, or fails while it loads.
        LuaCompilationError = 0x04,
        /// The storage could not do its work.
        StorageError = 0x05,
        /// The queue is not a dead-letter queue.
        NotADLQ = 0x06,
        /// The queue that the dead letters came from is gone.
        ParentQueueNotFound = 0x07,
        /// A setting has a value that is not allowed.
        InvalidConfigValue = 0x08,
        /// The server is overloaded: wait `retry_after_ms`, then try again.
        ChannelFull = 0x09,
        /// The credential is missing, unknown, expired or revoked.
        Unauthorized = 0x0A,
        /// The credential is good but its permissions do not cover this.
        Forbidden = 0x0B,
        /// Another node leads the queue: see `leader_addr`.
        NotLeader = 0x0C,
        /// No protocol version in common: see `max_version`.
        UnsupportedVersion = 0x0D,
        /// The frame breaks the protocol.
        InvalidFrame = 0x0E,
        /// There is no API key of this ID.
        ApiKeyNotFound = 0x0F,
        /// No leader is elected yet.
        NodeNotReady = 0x10,
        /// The client's account of its credit differs from the server's: see `server_credit`.
        CreditExhausted = 0x11,
        /// Other subscribers declare this throttle with a different key.
        ThrottleConflict = 0x12,
        /// The `on_enqueue` script fails on this message, and will again.
        ScriptError = 0x13,
        /// The `on_enqueue` script ran out of time on this message; another try may pass.
        ScriptTimeout = 0x14,
        /// The queue is ordered and takes no message without its ordering key.
        OrderingKeyMissing = 0x15,
        /// Names ending in `.dlq` belong to dead-letter queues.
        ReservedQueueName = 0x16,
        /// A throttle declaration is not valid.
        InvalidThrottle = 0x17,
        /// No subscriber declares this throttle now.
        ThrottleNotFound = 0x18,
        /// The node cannot be sure that its keys and permissions are current: ask another.
        AuthStateStale = 0x19,
        /// The setting is fixed when the queue is made.
        ImmutableSetting = 0x1A,
        /// No node has this ID, or it holds no copy of the queue.
        NodeNotFound = 0x1B,
        /// The server failed in a way it did not expect.
        InternalError = 0xFF,
    }
}

impl ErrorCode {
    /// Whether this stands for success.
    #[inline]
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Whether the same request may succeed later on the same node without any change to it.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::ChannelFull | Self::NodeNotReady | Self::ScriptTimeout | Self::AuthStateStale
        )
    }
}

impl<'a> Field<'a> for ErrorCode {
    const SIZE_MIN: usize = 1;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.u8().map(Self::from_wire)
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.push(self.to_wire());
        Ok(())
    }

    fn size(&self) -> usize {
        1
    }
}
