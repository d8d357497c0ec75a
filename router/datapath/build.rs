//! Embeds the kernel program if `cargo xtask build-ebpf` has built it. Without it the agent still builds; it then
//! serves everything in user space, and reports that. The feature `kernel-log` also embeds the program with log lines.
#![allow(clippy::expect_used, reason = "a build script reports by failing")]

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folder = manifest.join("../../target/bpf");
    // The folder must exist for cargo to notice when an object appears in it.
    fs::create_dir_all(&folder).expect("target/bpf can be made");
    println!("cargo::rerun-if-changed={}", folder.display());
    embed(&folder, "sluice.bpf.o", "built without the kernel program; `cargo xtask run` builds everything");
    embed(&folder, "dispatcher.bpf.o", "built without the dispatcher; `cargo xtask run` builds everything");
    if env::var_os("CARGO_FEATURE_KERNEL_LOG").is_some() {
        let missing = "built without the kernel program that logs; `cargo xtask build-ebpf --log` builds it";
        embed(&folder, "sluice-log.bpf.o", missing);
    }
}

/// Copies an object to where the crate includes it, or an empty file with a warning if it is missing.
fn embed(folder: &Path, object: &str, missing: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join(object);
    let object = folder.join(object);
    match fs::read(&object) {
        Ok(bytes) => {
            println!("cargo::rerun-if-changed={}", object.display());
            fs::write(&out, bytes).expect("OUT_DIR is writable");
        }
        Err(_) => {
            println!("cargo::warning={missing}");
            fs::write(&out, []).expect("OUT_DIR is writable");
        }
    }
}
