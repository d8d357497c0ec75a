//! Arbitrary bytes as a name and as an authority: equal to the model, idempotent, no panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/common/properties.rs"]
#[allow(dead_code, reason = "each target uses one property")]
mod properties;

fuzz_target!(|input: &[u8]| properties::host_name(input));
