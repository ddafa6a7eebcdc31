//! libFuzzer entry point of `fuzz::captive_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::captive_answer(data));
