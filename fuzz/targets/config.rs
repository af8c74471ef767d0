#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| simpletuner_fuzz::checks::config::check(data));
