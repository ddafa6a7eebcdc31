//! libFuzzer entry point of `fuzz::router_advertisement`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::router_advertisement(data));
