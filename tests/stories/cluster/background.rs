//! `cargo xtask cluster`: a cluster that another process holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tests::command;
use tests::sluice::binary;
use tests::wait::{PATIENCE, wait_until};

/// The folder of a cluster, which ends with the value.
struct Held(TempDir);

impl Held {
    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
        command::output(command.env("CLUSTER_FOLDER", self.0.path()).args(arguments))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // None runs after a test that passes.
        let _ = self.run(&["down"]);
    }
}

/// Runs what a person is invited to try.
fn try_all(held: &Held, invitation: &str) -> Result<()> {
    let mut tried = 0;
    for line in invitation.lines().filter_map(|line| line.strip_prefix("  ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (output, expected) = match words[..] {
            ["cargo", "xtask", "cluster", ref arguments @ ..] => {
                let expected = match arguments {
                    ["kubectl", ..] => "edge.apps.localhost",
                    [.., url] if url.contains("hello") => "hello: GET /",
                    _ => "passthrough: GET /",
                };
                (held.run(arguments)?, expected)
            }
            [program, ref arguments @ ..] => (command::output(Command::new(program).args(arguments))?, "kernel"),
            [] => continue,
        };
        let text = String::from_utf8(output.stdout)?;
        ensure!(text.contains(expected), "{line}: {text}");
        tried += 1;
    }
    ensure!(tried == 4, "{tried} commands in {invitation}");
    let path = r#"-o=jsonpath={.items[*].status.ingress[*].conditions[?(@.type=="Admitted")].status}"#;
    let is_admitted = || {
        let output = held.run(&["kubectl", "get", "routes", "-A", path]);
        output.is_ok_and(|output| output.stdout.starts_with(b"True"))
    };
    wait_until("Sluice writes statuses", PATIENCE, is_admitted)?;
    let log = fs::read_to_string(held.0.path().join("sluice.log"))?;
    // Its account has every right that it needs.
    ensure!(!log.contains(" ERROR ") && !log.contains("denies"), "{log}");
    Ok(())
}

#[test]
fn a_cluster_in_the_background_goes_up_and_down() -> Result<()> {
    let held = Held(TempDir::new()?);
    let folder = held.0.path();
    let run = |arguments: &[&str]| held.run(arguments);
    let failure = |arguments: &[&str]| -> Result<String> {
        let error = run(arguments).err().with_context(|| format!("{arguments:?} has not failed"))?;
        Ok(format!("{error:#}"))
    };
    let state = || -> Result<Value> { Ok(serde_json::from_slice(&fs::read(folder.join("state.json"))?)?) };
    let names = |process: &Value| -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let (own, of_sluice) = (format!("sluice-{process}-"), format!("cluster-{process}"));
        for folder in ["/run/netns", "/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/bpf/sluice"] {
            for entry in fs::read_dir(folder)?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                found.extend((name.starts_with(&own) || name == of_sluice).then(|| entry.path()));
            }
        }
        Ok(found)
    };

    let sluice = binary()?.to_str().context("a path is text")?;
    let invitation = String::from_utf8(run(&["up", "0", sluice])?.stdout)?;
    let holder = state()?["process"].clone();
    ensure!(!names(&holder)?.is_empty(), "a cluster has no namespaces");
    let namespaces = run(&["kubectl", "get", "namespaces", "-o", "name"])?;
    let namespaces = String::from_utf8(namespaces.stdout)?;
    ensure!(namespaces.lines().any(|line| line == "namespace/kube-system"), "{namespaces}");
    let addresses = String::from_utf8(run(&["exec", "ip", "-brief", "address"])?.stdout)?;
    ensure!(addresses.contains("10.90.0.1/16"), "{addresses}");
    ensure!(failure(&["up", "0", sluice])?.contains("a cluster runs already"), "a second cluster was started");
    try_all(&held, &invitation)?;
    run(&["down"])?;
    assert_eq!(names(&holder)?, Vec::<PathBuf>::new(), "left behind");
    ensure!(failure(&["kubectl", "version"])?.contains("no cluster runs"), "kubectl runs without a cluster");

    // A holder that is killed takes the processes with it; the next command removes the rest.
    run(&["up", "1", sluice])?;
    let holder = state()?["process"].clone();
    let id = i32::try_from(holder.as_i64().context("the holder has a process id")?)?;
    let mut processes = Vec::new();
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        let children = fs::read_to_string(thread?.path().join("children"))?;
        processes.extend(children.split_whitespace().map(|id| Path::new("/proc").join(id)));
    }
    // etcd, the API server, controllers, the scheduler, containerd's parent, the kubelet's, Sluice and its backends.
    ensure!(processes.len() == 8, "{processes:?} are not all processes of a cluster");
    kill_process(Pid::from_raw(id).context("a process id is positive")?, Signal::KILL)?;
    wait_until("the cluster's processes end", PATIENCE, || !processes.iter().any(|process| process.exists()))?;
    run(&["down"])?;
    assert_eq!(names(&holder)?, Vec::<PathBuf>::new(), "left behind");
    assert_eq!(fs::read_dir(folder)?.count(), 3, "the logs and the state");
    Ok(())
}
