//! Definitions that are mostly valid, and layouts that differ little.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| oracles::built(data));
