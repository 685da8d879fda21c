//! See `tanda_fuzz::amaquet_session`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::amaquet_session::run(input));
