//! Features that the programs need, probed in the running kernel: distributions backport features to older versions,
//! and omit some from newer ones.

use aya::programs::ProgramType;
use aya::sys::{BpfHelper, is_helper_supported};

/// Helpers that the programs call and that some kernels lack: helper, name, and the version that introduced it.
const HELPERS: [(BpfHelper, &str, &str); 7] = [
    (BpfHelper::BPF_FUNC_ringbuf_reserve, "bpf_ringbuf_reserve", "5.8"),
    (BpfHelper::BPF_FUNC_csum_level, "bpf_csum_level", "5.8"),
    (BpfHelper::BPF_FUNC_ktime_get_boot_ns, "bpf_ktime_get_boot_ns", "5.8"),
    (BpfHelper::BPF_FUNC_redirect_neigh, "bpf_redirect_neigh", "5.10"),
    (BpfHelper::BPF_FUNC_redirect_peer, "bpf_redirect_peer", "5.10"),
    (BpfHelper::BPF_FUNC_ktime_get_coarse_ns, "bpf_ktime_get_coarse_ns", "5.11"),
    (BpfHelper::BPF_FUNC_loop, "bpf_loop", "5.17"),
];

/// The helpers that this kernel lacks, as texts; empty if it lacks none, or if the probe fails.
pub fn missing() -> Vec<String> {
    lacking(|helper| is_helper_supported(ProgramType::SchedClassifier, helper).unwrap_or(true))
}

fn lacking(has: impl Fn(BpfHelper) -> bool) -> Vec<String> {
    let lacking = HELPERS.into_iter().filter(|(helper, ..)| !has(*helper));
    lacking.map(|(_, name, since)| format!("{name} (Linux {since})")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        let said = lacking(|helper| helper != BpfHelper::BPF_FUNC_loop);
        assert_eq!(said, ["bpf_loop (Linux 5.17)"]);
        assert!(lacking(|_| true).is_empty());
    }
}
