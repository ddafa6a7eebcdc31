//! libFuzzer entry point of `fuzz::dns`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::dns(data));
