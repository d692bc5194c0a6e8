//! Records, as the file and the pages have them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    oracles::page(data);
});
