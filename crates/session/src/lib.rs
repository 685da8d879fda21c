//! One connection as a state machine.
