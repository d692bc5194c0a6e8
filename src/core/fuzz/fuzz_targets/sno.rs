//! Snos, by vector instructions and without.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    oracles::sno(data, flake_sno_simd::encode, flake_sno_simd::decode);
    oracles::sno(data, flake_core::Sno::encode, flake_core::Sno::decode);
});
