//! libFuzzer's entrance to `fuzz::ovpn`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::ovpn(data));
