//! libFuzzer entry point of `fuzz::pseudonyms`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::pseudonyms(data));
