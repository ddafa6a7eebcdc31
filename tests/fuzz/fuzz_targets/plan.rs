//! libFuzzer entry point of `fuzz::plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::plan(data));
