//! `pubsub.*`: the broker's topic exchanges.

use std::borrow::Cow;

use super::table::commands;
use crate::amaquet::Payload;

commands! {
    /// Publishes to who subscribes now, and to the queues that are bound. Makes the key when it is
    /// not there.
    PubsubPublish<'a> = "pubsub.publish", Write(key) {
        /// The key: the topic exchange of this name.
        must key: Cow<'a, str>,
        /// The channel: the routing key.
        must channel: Cow<'a, str>,
        /// What to publish.
        must payload: Payload<'a>,
    } -> {
        /// How many subscriptions it was sent to.
        receivers: U64,
    }

    /// Lists what is subscribed now.
    PubsubChannels<'a> = "pubsub.channels", Read(key) {
        /// The key.
        must key: Cow<'a, str>,
    } -> {
        /// Channels and patterns, sorted.
        channels: Strings,
    }
}
