//! libFuzzer entry point of `fuzz::ovpn`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::ovpn(data));
