//! libFuzzer entry point of `fuzz::stun`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::stun(data));
