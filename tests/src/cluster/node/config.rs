//! The files of a node.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

/// How pods are connected to their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pods {
    /// By a bridge of the node, `cni0`.
    Bridge,
    /// Each by a link and a route of its own.
    Routed,
}

/// Settings that the kubelet writes if they have other values (k8s.io/component-helpers/node/util/sysctl).
const SYSCTLS: [(&str, &str); 6] = [
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

/// Version 2 of containerd's configuration. Without `restrict_oom_score_adj` no pod starts where CAP_SYS_RESOURCE is missing.
const CONTAINERD: &str = r#"version = 2
disabled_plugins = [
    "io.containerd.internal.v1.tracing",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.tracing.processor.v1.otlp",
]
[plugins."io.containerd.grpc.v1.cri"]
disable_tcp_service = true
netns_mounts_under_state_dir = true
restrict_oom_score_adj = true
sandbox_image = "sluice.test/pause:1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/var/lib/cni/net.d"
"#;

/// Writes what the node's first process needs into a folder: its `/var`, settings, and containerd's configuration.
pub fn write(folder: &Path, pods: Pods, subnet: &str) -> Result<()> {
    let networks = folder.join("var/lib/cni/net.d");
    fs::create_dir_all(&networks)?;
    fs::create_dir_all(folder.join("var/log"))?;
    std::os::unix::fs::symlink("/run", folder.join("var/run"))?;
    fs::write(networks.join("10-pods.conflist"), network(pods, subnet).to_string())?;
    for (setting, value) in SYSCTLS {
        let file = folder.join("sysctl").join(setting);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, format!("{value}\n"))?;
    }
    Ok(fs::write(folder.join("containerd.toml"), CONTAINERD)?)
}

/// The network of the node's pods (containernetworking/cni).
fn network(pods: Pods, subnet: &str) -> Value {
    let ipam = json!({
        "type": "host-local",
        "dataDir": "/var/lib/cni/addresses",
        "ranges": [[{"subnet": subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    });
    let plugin = match pods {
        Pods::Bridge => json!({"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "ipam": ipam}),
        Pods::Routed => json!({"type": "ptp", "ipMasq": false, "ipam": ipam}),
    };
    json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]})
}

/// The kubelet's configuration (kubelet.config.k8s.io/v1beta1).
pub fn kubelet(cgroup: &str, ca: &Path, certificate: &Path, key: &Path) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": ca},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": certificate,
        "tlsPrivateKeyFile": key,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        // Hierarchies of version 1 are refused by default since 1.35.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        "failSwapOn": false,
        // Pods have no DNS, unless they bring it.
        "resolvConf": "",
        // A full disk of the machine is not the node's problem.
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "syncFrequency": "1s",
        "fileCheckFrequency": "1s",
        "nodeStatusUpdateFrequency": "5s",
        "healthzPort": 0,
    })
}
