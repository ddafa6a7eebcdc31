//! libFuzzer entry point of `fuzz::assistant`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::assistant(data));
