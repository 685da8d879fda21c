//! See `tanda_fuzz::script_run`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::script_run::run(input));
