//! libFuzzer entry point of `fuzz::dhcp6`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::dhcp6(data));
