//! See `tanda_fuzz::amqp_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::amqp_decode::run(input));
