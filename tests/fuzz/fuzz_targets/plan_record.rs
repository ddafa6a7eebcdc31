//! libFuzzer entry point of `fuzz::plan_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_fuzz::fuzz::plan_record(data));
