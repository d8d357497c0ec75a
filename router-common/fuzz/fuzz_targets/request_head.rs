//! Any bytes as a request head: the same result for every split, positions within the input, no panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/common/properties.rs"]
#[allow(dead_code, reason = "each target uses one property")]
mod properties;

fuzz_target!(|input: &[u8]| properties::request_head(input));
