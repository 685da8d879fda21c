//! See `tanda_fuzz::config_load`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::config_load::run(input));
