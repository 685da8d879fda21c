//! Listeners, threads, real disk and clock.
