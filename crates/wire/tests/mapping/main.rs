//! What values, headers and properties become at the doors of other protocols.

#[cfg(test)]
mod any;
#[cfg(test)]
mod fila;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod values;

/// More than any result here.
#[cfg(test)]
const PLENTY: usize = 1 << 20;
