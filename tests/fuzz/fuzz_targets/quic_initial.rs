//! libFuzzer entry point of `fuzz::quic_initial`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::quic_initial(data));
