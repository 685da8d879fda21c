//! `ok` and `error`: replies to requests.

use super::ReplyCode;
use super::header_struct::header_struct;

header_struct! {
    /// A request succeeded (`ok`).
    #[derive(Debug, Copy, Eq)]
    pub struct OkReply<'a>: Ok {
        /// The request.
        rid: u64,
        /// The queue's name; for `declare_queue`.
        name: &'a str,
        /// Messages ready, deleted or purged; for `declare_queue`, `delete_queue`, `purge_queue`.
        messages: u64,
        /// Consumers of the queue; for `declare_queue`.
        consumers: u64,
        /// Whether there was no message; for `get`.
        empty: bool,
    }

    /// A request failed, or something that was no request (`error`).
    #[derive(Debug, Copy, Eq)]
    pub struct ErrorReply<'a>: Error {
        /// The request; 0, which is not written, when the error belongs to none.
        rid: u64,
        /// Why, for programs.
        code: ReplyCode,
        /// Why, for people.
        msg: &'a str,
        /// Whether the server closes the connection after this frame.
        fatal: bool,
    }
}
