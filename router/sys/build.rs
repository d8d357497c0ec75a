//! Makes the linker align the code of the tests for huge pages, as `router/build.rs` does for the agent.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,-z,max-page-size=0x200000,-z,separate-code");
}
