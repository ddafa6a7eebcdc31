//! libFuzzer entry point of `fuzz::conf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::conf(data));
