//! The broker as a pure state machine.
