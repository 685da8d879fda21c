//! The tanda command.

fn main() {}
