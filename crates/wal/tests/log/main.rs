//! Tests of the log through its public interface, on a disk in memory.

#[cfg(test)]
mod basic;
#[cfg(test)]
mod support;
