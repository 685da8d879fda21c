//! See `tanda_fuzz::frame_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::frame_decode::run(input));
