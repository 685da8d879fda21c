//! See `tanda_fuzz::amqp_session`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tanda_fuzz::amqp_session::run(input));
