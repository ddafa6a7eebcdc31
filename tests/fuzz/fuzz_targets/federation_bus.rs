//! libFuzzer entry point of `fuzz::federation_bus`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::federation_bus(data));
