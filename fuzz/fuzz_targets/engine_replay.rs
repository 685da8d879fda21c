//! See `tanda_fuzz::engine_replay`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::engine_replay::run(input));
