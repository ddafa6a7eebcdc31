//! libFuzzer entry point of `fuzz::federation`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::federation(data));
