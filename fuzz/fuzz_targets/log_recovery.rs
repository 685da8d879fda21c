//! See `tanda_fuzz::log_recovery`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::log_recovery::run(input));
