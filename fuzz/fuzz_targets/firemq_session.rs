//! See `tanda_fuzz::firemq_session`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::firemq_session::run(input));
