//! The commands of a control plane's components.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::super::built::built;
use crate::netns::Netns;
use crate::process::Process;

/// Where the API server listens: the first member of the network.
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 90, 0, 1)), 6443);
/// Its address as a Service, the first one of [`SERVICES`].
pub const SERVICE: &str = "10.92.0.1";
/// Addresses of Services.
const SERVICES: &str = "10.92.0.0/16";
/// Where etcd listens, inside the namespace.
const ETCD: &str = "http://127.0.0.1:2379";
/// Controllers that clusters of tests need. The others would only use memory.
const CONTROLLERS: [&str; 17] = [
    "clusterrole-aggregation-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "validatingadmissionpolicy-status-controller",
];

/// Files of a control plane.
pub struct Files<'f> {
    /// Its folder.
    pub folder: &'f Path,
    /// The certificate of the authority.
    pub ca: PathBuf,
}

impl Files<'_> {
    /// A file of certificates and keys.
    pub fn credential(&self, name: &str) -> PathBuf {
        self.folder.join("credentials").join(name)
    }
}

/// Starts etcd on a folder of its data. It does not wait for the disk.
pub fn etcd(netns: &Netns, data: &Path) -> Result<Process> {
    start(netns, "etcd", |etcd| {
        etcd.arg("--data-dir").arg(data).args(["--unsafe-no-fsync", "--log-level", "warn"]);
        etcd.args(["--listen-client-urls", ETCD, "--advertise-client-urls", ETCD]);
        etcd.args(["--listen-peer-urls", "http://127.0.0.1:0", "--auto-compaction-retention", "30s"]);
    })
}

/// Starts the API server.
pub fn api_server(netns: &Netns, files: &Files, flags: &[&str]) -> Result<Process> {
    let credentials = [
        ("tls-cert-file", "kube-apiserver.crt"),
        ("tls-private-key-file", "kube-apiserver.key"),
        ("service-account-key-file", "tokens.pub"),
        ("service-account-signing-key-file", "tokens.key"),
        ("kubelet-client-certificate", "kubelet-client.crt"),
        ("kubelet-client-key", "kubelet-client.key"),
        ("proxy-client-cert-file", "front-proxy.crt"),
        ("proxy-client-key-file", "front-proxy.key"),
    ];
    start(netns, "kube-apiserver", |server| {
        let mut file = |flag: &str, file: &Path| {
            server.arg(format!("--{flag}={}", file.display()));
        };
        credentials.iter().for_each(|(flag, name)| file(flag, &files.credential(name)));
        file("client-ca-file", &files.ca);
        file("kubelet-certificate-authority", &files.ca);
        file("requestheader-client-ca-file", &files.ca);
        file("cert-dir", &files.folder.join("kube-apiserver"));
        file("audit-policy-file", &files.folder.join("audit-policy.yaml"));
        file("audit-log-path", &files.folder.join("audit.log"));
        server.arg(format!("--etcd-servers={ETCD}"));
        server.args([format!("--bind-address={}", SERVER.ip()), format!("--advertise-address={}", SERVER.ip())]);
        server.arg(format!("--secure-port={}", SERVER.port())).arg(format!("--service-cluster-ip-range={SERVICES}"));
        server.args(["--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--allow-privileged=true"]);
        server.arg("--service-account-issuer=https://kubernetes.default.svc");
        server.arg("--kubelet-preferred-address-types=InternalIP");
        // Webhooks and aggregated servers are reached at their endpoints: no kube-proxy is needed.
        server.arg("--enable-aggregator-routing=true");
        server.args(["--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User"]);
        server.args(["--requestheader-group-headers=X-Remote-Group"]);
        server.args(["--requestheader-extra-headers-prefix=X-Remote-Extra-"]);
        // Clients of HTTP/2 must cope with GOAWAY; OpenShift has 0.001.
        server.args(["--goaway-chance=0.02", "--shutdown-delay-duration=0s"]);
        server.args(flags);
    })
}

/// Starts the controllers.
pub fn controllers(netns: &Netns, files: &Files, kubeconfig: &Path) -> Result<Process> {
    start(netns, "kube-controller-manager", |manager| {
        manager.arg("--kubeconfig").arg(kubeconfig).arg("--root-ca-file").arg(&files.ca);
        manager.arg("--service-account-private-key-file").arg(files.credential("tokens.key"));
        manager.args(["--use-service-account-credentials", "--controllers", &CONTROLLERS.join(",")]);
        manager.args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
    })
}

/// Starts the scheduler.
pub fn scheduler(netns: &Netns, kubeconfig: &Path) -> Result<Process> {
    start(netns, "kube-scheduler", |scheduler| {
        scheduler.arg("--kubeconfig").arg(kubeconfig).args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
    })
}

/// Starts a component in a namespace.
fn start(netns: &Netns, name: &str, flags: impl FnOnce(&mut Command)) -> Result<Process> {
    // `setpriv` sets the signal for the end of the parent, and executes the program.
    let mut command = netns.command("setpriv")?;
    command.args(["--pdeathsig", "KILL", "--"]).arg(built("kube")?).arg(name);
    flags(&mut command);
    Process::start_lasting(name, command)
}
