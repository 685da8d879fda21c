//! The promises to clients of the model of AMQP, by AMQP's door or FireMQ's, one file each, with
//! their source.

pub(crate) mod ack_timeouts;
pub(crate) mod all_or_nothing;
pub(crate) mod counts;
pub(crate) mod deaths;
pub(crate) mod expires_on_time;
pub(crate) mod in_order;
pub(crate) mod lives;
pub(crate) mod nothing_lost;
pub(crate) mod one_moment;
pub(crate) mod one_place;
pub(crate) mod redelivered;
pub(crate) mod refused;
pub(crate) mod stays_gone;
pub(crate) mod topology;
pub(crate) mod unexpected;
pub(crate) mod was_published;
