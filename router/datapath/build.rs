//! Embeds the kernel program if `cargo xtask build-ebpf` has built it; without it the agent still builds and serves
//! everything in user space, and says so.
#![allow(clippy::expect_used, reason = "a build script reports by failing")]

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("sluice.bpf.o");
    let folder = manifest.join("../../target/bpf");
    let object = folder.join("sluice.bpf.o");
    // The folder must exist for cargo to notice when the object appears in it.
    fs::create_dir_all(&folder).expect("target/bpf can be made");
    println!("cargo::rerun-if-changed={}", folder.display());
    match fs::read(&object) {
        Ok(bytes) => {
            println!("cargo::rerun-if-changed={}", object.display());
            fs::write(&out, bytes).expect("OUT_DIR is writable");
        }
        Err(_) => {
            println!("cargo::warning=built without the kernel program; `cargo xtask run` builds everything");
            fs::write(&out, []).expect("OUT_DIR is writable");
        }
    }
}
