//! libFuzzer entry point of `fuzz::client_hello`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::client_hello(data));
