//! libFuzzer entry point of `fuzz::flow_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::flow_record(data));
