//! The promises, one file each, with their source.
//!
//! A check reads the history and what just came, draws nothing and changes nothing.

pub(crate) mod acked_stays_gone;
pub(crate) mod amaquet;
pub(crate) mod amqp;
pub(crate) mod attempts;
pub(crate) mod authority;
pub(crate) mod bounded_memory;
pub(crate) mod credit;
pub(crate) mod damage_is_told;
pub(crate) mod dedup;
pub(crate) mod delivered_was_sent;
pub(crate) mod fair_in_windows;
pub(crate) mod gone_peers;
pub(crate) mod log_shrinks;
pub(crate) mod not_early;
pub(crate) mod nothing_lost;
pub(crate) mod one_moment;
pub(crate) mod one_per_group;
pub(crate) mod one_place;
pub(crate) mod protocol;
pub(crate) mod purge_is_exact;
pub(crate) mod recovers;
pub(crate) mod replay_same;
pub(crate) mod scripted;
pub(crate) mod statistics;
pub(crate) mod throttles;
