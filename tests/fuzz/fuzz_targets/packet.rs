//! libFuzzer entry point of `fuzz::packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::packet(data));
