//! Engine and log driven by events, deterministic.
