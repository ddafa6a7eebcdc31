//! libFuzzer entry point of `fuzz::captured_packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::captured_packet(data));
