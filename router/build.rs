//! Has the linker align the agent's code for huge pages.

fn main() {
    // Segments begin where huge pages do (`router_sys::huge_pages`).
    if std::env::var_os("CARGO_FEATURE_HUGE_PAGES").is_some() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,max-page-size=0x200000,-z,separate-code");
    }
}
