//! libFuzzer entry point of `fuzz::yaml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::yaml(data));
