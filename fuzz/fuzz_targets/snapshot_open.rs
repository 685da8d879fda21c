//! See `tanda_fuzz::snapshot_open`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::snapshot_open::run(input));
