//! libFuzzer entry point of `fuzz::mesh`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::mesh(data));
