//! `cargo xtask run`: the quickstart, from nothing to traffic.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{self, Server};
use crate::{ebpf, install};

/// Builds everything, serves `examples/quickstart`, and stays until Ctrl-C.
pub fn run(root: &Path) -> Result<()> {
    let root_user = process::is_root();
    if root_user {
        install::for_run(root)?;
        ebpf::build(root)?;
    } else {
        eprintln!(
            "xtask: not root: running in user space, without the kernel program; `sudo cargo xtask run` has both"
        );
    }
    let sluice = process::build_sluice(root, true)?;

    process::leave_interrupts_to_children();
    let mut backends = Server::start("sluice demo-backends", Command::new(&sluice).arg("demo-backends"))?;
    backends.wait_for("demo backends: ready")?;
    let _backends = backends.echo();

    let quickstart = root.join("examples/quickstart");
    let mut command = Command::new(&sluice);
    command.arg("run").arg("--manifests").arg(&quickstart);
    // The endpoints are on loopback, which a router refuses unless it is told that the folder is its operator's own.
    command.args(["--endpoint-addresses", "any"]);
    command.args(["--data-path", if root_user { "auto" } else { "userspace" }]);
    let mut router = Server::start("sluice run", &mut command)?;
    let said = router.wait_for("sluice: ready")?;
    // A router goes on without a port and tries again; a demonstration that another program answers is none.
    if let Some(taken) = said.iter().find(|line| line.contains("cannot listen on")) {
        bail!("a port of the quickstart is taken: {taken}");
    }
    let mut router = router.echo();
    print!("{}", invitation(root));
    router.wait()
}

/// What to try.
fn invitation(root: &Path) -> String {
    let here = std::env::current_dir().ok();
    let ca = root.join("examples/demo-certificates/demo-only-ca.crt");
    let ca = here.as_deref().and_then(|here| ca.strip_prefix(here).ok()).unwrap_or(&ca).display().to_string();
    format!(
        "
Sluice serves examples/quickstart. Try, in another terminal:

  curl http://hello.apps.localhost:8080/                                # clear text, by spec.subdomain
  curl --cacert {ca} https://edge.apps.localhost:8443/
  curl --cacert {ca} https://reencrypt.apps.localhost:8443/
  curl --cacert {ca} https://passthrough.apps.localhost:8443/

and look inside:

  target/release/sluice get routes
  target/release/sluice bpf dump sni_passthrough

Change a file in examples/quickstart and ask again. Ctrl-C ends it.
"
    )
}
