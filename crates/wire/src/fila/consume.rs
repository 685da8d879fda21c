//! Subscriptions: opening, credit, ending (`Consume`, `ConsumeOk`, `Credit`, `CancelConsume`).
//!
//! The request ID of the `Consume` names the subscription in the other three and in deliveries.

use super::property_key::PropertyKey;
use super::table::named_values;
use super::wire_struct::wire_struct;

named_values! {
    /// What a throttle does with a message that lacks a part of the key.
    pub enum WhenThrottleKeyMissing {
        /// All such messages share one bucket.
        SharedBucket = 0,
        /// Such messages are not limited.
        Unthrottled = 1,
    }
}

wire_struct! {
    /// Asks for the messages of a queue.
    pub struct Consume<'a>: Consume {
        /// The queue to read.
        queue: &'a str,
        /// Messages the server may send before more credit comes; 0 = unlimited.
        credit: u32,
        /// The throttles this subscriber declares.
        throttles: Vec<ThrottleDeclaration<'a>> as list_u16,
    }

    /// A named set of limits on deliveries, per value of the key.
    pub struct ThrottleDeclaration<'a> {
        /// The name under which subscribers share buckets.
        name: &'a str,
        /// At least one; all of them hold.
        limits: Vec<ThrottleLimit> as list_u16,
        /// No parts: one bucket for all messages.
        key: PropertyKey<'a>,
        /// A [`WhenThrottleKeyMissing`].
        when_key_missing: u8,
    }

    /// At most so many deliveries in any window of this length.
    pub struct ThrottleLimit {
        /// Deliveries in one window.
        max_deliveries: u64,
        /// Length of the sliding window in milliseconds.
        window_ms: u64,
    }

    /// The subscription stands; sent before its first delivery.
    pub struct ConsumeOk<'a>: ConsumeOk {
        /// The server's name for the consumer.
        consumer_id: &'a str,
    }

    /// Grants more deliveries to the subscription of its request ID. Has no answer.
    pub struct Credit: Credit {
        /// Added to the balance, which stops at `u32::MAX`.
        additional_credit: u32,
    }

    /// Ends the subscription of its request ID. Has no answer.
    pub struct CancelConsume: CancelConsume {}
}
