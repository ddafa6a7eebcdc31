//! libFuzzer entry point of `fuzz::dhcp_report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::dhcp_report(data));
