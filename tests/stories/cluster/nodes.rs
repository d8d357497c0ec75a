//! Nodes and their pods.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tests::cluster::{Cluster, Pods};
use tests::netns::Netns;
use tests::wait::PATIENCE;

/// Pods that do nothing, one on each node.
const PODS: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: idle, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: idle}}
  template:
    metadata: {labels: {app: idle}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: idle}}}
      containers: [{name: pause, image: "sluice.test/pause:1"}]
"#;

#[test]
fn pods_run_on_each_node_and_are_reached_from_the_network() -> Result<()> {
    let cluster = Cluster::start(2, Pods::Routed)?;
    let plane = &cluster.plane;
    plane.apply(PODS)?;
    plane.kubectl(&["rollout", "status", "deployment/idle", &format!("--timeout={}s", PATIENCE.as_secs())])?;
    let pods = plane.api().get("/api/v1/namespaces/default/pods?labelSelector=app%3Didle")?;
    let pods = pods["items"].as_array().context("a list has items")?;
    let client = Netns::new("client")?;
    plane.network().join(&client, "eth0")?;
    let mut found = BTreeSet::new();
    for pod in pods {
        let address: IpAddr = pod["status"]["podIP"].as_str().context("a pod has an address")?.parse()?;
        // No process of the pod listens: the pod's own stack resets the connection.
        let refused = client.run(|| Ok(TcpStream::connect((address, 80))))?;
        ensure!(refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused), "{refused:?}");
        found.insert(pod["spec"]["nodeName"].as_str().context("a pod is on a node")?.to_owned());
    }
    assert_eq!(found.iter().collect::<Vec<_>>(), ["n1", "n2"]);
    // The API server reaches the kubelets.
    for node in &cluster.nodes {
        assert_eq!(plane.kubectl(&["get", "--raw", &format!("/api/v1/nodes/{}/proxy/healthz", node.name())])?, "ok");
    }
    Ok(())
}

/// Processes of the PID namespace of a process, without those of nested ones.
fn in_namespace(process: u32) -> Result<Vec<PathBuf>> {
    let namespace = |process: &Path| fs::read_link(process.join("ns/pid")).ok();
    let wanted = namespace(&Path::new("/proc").join(process.to_string()));
    let mut all = fs::read_dir("/proc")?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    all.retain(|process| namespace(process).is_some_and(|found| Some(found) == wanted));
    // `/proc/self` and `/proc/thread-self` are links.
    all.retain(|process| !process.is_symlink());
    Ok(all)
}

/// Processes of a cgroup, and of those below it.
fn in_cgroup(folder: &Path) -> Result<Vec<PathBuf>> {
    let own = fs::read_to_string(folder.join("cgroup.procs"))?;
    let mut all: Vec<PathBuf> = own.lines().map(|id| Path::new("/proc").join(id)).collect();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            all.extend(in_cgroup(&entry.path())?);
        }
    }
    Ok(all)
}

#[test]
fn a_node_leaves_nothing_behind() -> Result<()> {
    let settings = || -> Result<Vec<String>> {
        let names = ["kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "vm/overcommit_memory"];
        names.iter().map(|name| Ok(fs::read_to_string(Path::new("/proc/sys").join(name))?)).collect()
    };
    let (before, mounts) = (settings()?, fs::read_to_string("/proc/self/mountinfo")?);
    let cluster = Cluster::start(1, Pods::Bridge)?;
    cluster.plane.apply(&PODS.replace("replicas: 2", "replicas: 1"))?;
    cluster.plane.kubectl(&["rollout", "status", "deployment/idle", &format!("--timeout={}s", PATIENCE.as_secs())])?;
    let node = &cluster.nodes[0];
    let daemons = in_namespace(node.first_process())?;
    ensure!(daemons.len() >= 3, "containerd, the kubelet and a shim are not all of {daemons:?}");
    // The unified hierarchy may have none beside those of version 1.
    let mut pods = BTreeSet::new();
    for cgroup in node.cgroups() {
        pods.extend(in_cgroup(cgroup)?);
    }
    ensure!(pods.len() == 2, "the sandbox and the container are not {pods:?}");
    let mut left = node.cgroups().to_vec();
    left.push(Path::new("/run/netns").join(node.netns().name()));
    for path in &left {
        assert!(path.exists(), "{} is missing", path.display());
    }
    left.extend(daemons.into_iter().chain(pods));
    assert_eq!(settings()?, before, "with a kubelet");
    drop(cluster);
    left.retain(|path| path.exists());
    assert!(left.is_empty(), "left behind: {left:?}");
    assert_eq!(settings()?, before);
    let folders = |mounts: &str| mounts.lines().filter(|line| line.contains("containerd")).count();
    assert_eq!(folders(&fs::read_to_string("/proc/self/mountinfo")?), folders(&mounts));
    Ok(())
}
