//! Hooks from outside: what they get and return, what they cannot reach, and what stops them.

mod escapes;
mod returns;
mod states;
mod stopped;
mod support;
