//! libFuzzer entry point of `fuzz::json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::json(data));
