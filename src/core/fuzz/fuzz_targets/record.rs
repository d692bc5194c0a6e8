//! Records of the mark's file, with a valid checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| oracles::record(data));
