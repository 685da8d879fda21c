//! `publish`, `confirm`, `return`: messages to the server and what became of them.

use super::ReplyCode;
use super::header_struct::header_struct;
use super::props::Props;
use super::value::RawMap;

header_struct! {
    /// A message to an exchange; the payload is its body.
    #[derive(Debug, Copy, Eq)]
    pub struct Publish<'a>: Publish {
        /// The client's count of publishes from 1; 0 asks for no confirm.
        seq: u64,
        /// The exchange; empty routes to the queue named by `key`.
        exchange: &'a str,
        /// The routing key.
        key: &'a str,
        /// Whether to return it when no queue receives it.
        mandatory: bool,
        /// Whether to write it to disk.
        persistent: bool,
        /// Its properties.
        props: Props<'a>,
        /// The application's headers; values of any type.
        headers: RawMap<'a>,
    }

    /// What became of publishes: [`Confirm::upto`] or [`Confirm::rejected`].
    #[derive(Debug, Copy, Eq)]
    pub struct Confirm<'a>: Confirm {
        /// Every outstanding publish up to this one is taken; 0 in a rejection.
        upto: u64,
        /// The rejected publish.
        seq: u64,
        /// Whether this is a rejection.
        nack: bool,
        /// Why it was rejected, for programs.
        code: ReplyCode,
        /// Why it was rejected, for people.
        msg: &'a str,
    }

    /// A mandatory message that no queue received (`return`); the payload is its body.
    #[derive(Debug, Copy, Eq)]
    pub struct Returned<'a>: Return {
        /// The publish.
        seq: u64,
        /// Why; 312.
        code: ReplyCode,
        /// Why, for people.
        msg: &'a str,
        /// The exchange it was published to.
        exchange: &'a str,
        /// The routing key.
        key: &'a str,
        /// Its properties.
        props: Props<'a>,
        /// The application's headers.
        headers: RawMap<'a>,
    }
}

impl<'a> Confirm<'a> {
    /// Takes every outstanding publish up to `seq`.
    #[must_use]
    pub const fn upto(seq: u64) -> Self {
        Self {
            upto: seq,
            seq: 0,
            nack: false,
            code: ReplyCode::ABSENT,
            msg: "",
        }
    }

    /// Rejects one publish.
    #[must_use]
    pub const fn rejected(seq: u64, code: ReplyCode, msg: &'a str) -> Self {
        Self {
            upto: 0,
            seq,
            nack: true,
            code,
            msg,
        }
    }
}
