//! libFuzzer entry point of `fuzz::lists`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::lists(data));
