//! `subscribe` to `get_ok`: messages to the client and their settlement.

use super::ReplyCode;
use super::header_struct::header_struct;
use super::props::Props;
use super::value::{RawMap, Value};

header_struct! {
    /// Starts a subscription; answered by `ok`.
    #[derive(Debug, Copy)]
    pub struct Subscribe<'a>: Subscribe {
        /// The request.
        rid: u64,
        /// The client's id of the subscription, unique on the connection.
        sub: u64,
        /// The queue.
        queue: &'a str,
        /// How many messages the server may send at first.
        credit: u64,
        /// Whether a message counts as acknowledged once sent.
        no_ack: bool,
        /// Whether to be the queue's only consumer.
        exclusive: bool,
        /// The consumer tag; empty stands for `fire-<sub>`.
        tag: &'a str,
        /// More settings.
        args: RawMap<'a>,
        /// Kept for streams of a later version: where to start. Version 1 refuses it.
        offset: Option<Value<'a>>,
    }

    /// Ends a subscription; answered by `ok`.
    #[derive(Debug, Copy, Eq)]
    pub struct Unsubscribe: Unsubscribe {
        /// The request.
        rid: u64,
        /// The subscription.
        sub: u64,
    }

    /// Lets a subscription receive more; no answer.
    #[derive(Debug, Copy, Eq)]
    pub struct Credit: Credit {
        /// The subscription.
        sub: u64,
        /// How many messages more.
        credit: u64,
    }

    /// A message for a subscription; the payload is its body.
    #[derive(Debug, Copy, Eq)]
    pub struct Deliver<'a>: Deliver {
        /// The subscription.
        sub: u64,
        /// The delivery tag: from 1, unique and increasing on the connection.
        tag: u64,
        /// Whether it was delivered before and not acknowledged.
        redelivered: bool,
        /// The exchange it was published to.
        exchange: &'a str,
        /// The routing key it was published with.
        key: &'a str,
        /// Its properties.
        props: Props<'a>,
        /// The application's headers.
        headers: RawMap<'a>,
    }

    /// The server ended a subscription.
    #[derive(Debug, Copy, Eq)]
    pub struct Cancelled<'a>: Cancelled {
        /// The subscription.
        sub: u64,
        /// Why, for programs.
        code: ReplyCode,
        /// Why, for people.
        msg: &'a str,
    }

    /// Settles deliveries as done; no answer.
    #[derive(Debug, Copy, Eq)]
    pub struct Ack: Ack {
        /// The delivery.
        tag: u64,
        /// Whether all earlier unsettled deliveries are meant too.
        multiple: bool,
    }

    /// Gives deliveries back; no answer.
    #[derive(Debug, Copy, Eq)]
    pub struct Nack: Nack {
        /// The delivery.
        tag: u64,
        /// Whether all earlier unsettled deliveries are meant too.
        multiple: bool,
        /// Whether they go back to the queue instead of being dead-lettered.
        requeue: bool,
    }

    /// Asks for one message; answered by `get_ok`, or `ok` with `empty`.
    #[derive(Debug, Copy, Eq)]
    pub struct Get<'a>: Get {
        /// The request.
        rid: u64,
        /// The queue.
        queue: &'a str,
        /// Whether the message counts as acknowledged once sent.
        no_ack: bool,
    }

    /// A message that was asked for; the payload is its body.
    #[derive(Debug, Copy, Eq)]
    pub struct GetOk<'a>: GetOk {
        /// The request.
        rid: u64,
        /// The delivery tag.
        tag: u64,
        /// Whether it was delivered before and not acknowledged.
        redelivered: bool,
        /// The exchange it was published to.
        exchange: &'a str,
        /// The routing key it was published with.
        key: &'a str,
        /// Messages still ready in the queue.
        remaining: u64,
        /// Its properties.
        props: Props<'a>,
        /// The application's headers.
        headers: RawMap<'a>,
    }
}
