//! Containers that grow, and are given back, in small steps.
//!
//! A vector that doubles copies all of it in one step, a hash table moves all of it: with a million
//! elements that is tens of milliseconds in which the shard serves nobody. These are made of parts
//! of at most a thousand elements; the longest step is the handling of one part. What they cost is
//! one more look into a small vector.

mod chunks;
mod line;
mod map;
mod table;

pub(crate) use chunks::Chunks;
pub(crate) use line::Line;
pub(crate) use map::SteadyMap;
pub(crate) use table::SteadyTable;
