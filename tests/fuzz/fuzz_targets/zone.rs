//! libFuzzer entry point of `fuzz::zone`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::zone(data));
