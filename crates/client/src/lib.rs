//! The Rust client of Tanda.
