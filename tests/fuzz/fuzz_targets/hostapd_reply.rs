//! libFuzzer entry point of `fuzz::hostapd_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::hostapd_reply(data));
