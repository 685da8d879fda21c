//! See `tanda_fuzz::session_input`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::session_input::run(input));
