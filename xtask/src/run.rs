//! `cargo xtask run`: an example, from nothing to traffic.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{self, Server};
use crate::{ebpf, install};

/// A folder of `examples`.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub enum Example {
    /// Routes of every kind.
    #[default]
    Quickstart,
    /// Gateway API with an included route, and subdomains that borrow a wildcard certificate.
    Delegation,
}

impl Example {
    /// Its folder's name.
    fn folder(self) -> &'static str {
        match self {
            Example::Quickstart => "quickstart",
            Example::Delegation => "delegation",
        }
    }
}

/// Builds everything, serves the example, and stays until Ctrl-C.
pub fn run(root: &Path, example: Example) -> Result<()> {
    let root_user = process::is_root();
    if root_user {
        install::for_run(root)?;
        ebpf::build(root)?;
    } else {
        eprintln!(
            "xtask: not root: running in user space, without the kernel program; `sudo cargo xtask run` has both"
        );
    }
    let sluice = process::build_sluice(root)?;

    process::leave_interrupts_to_children();
    let mut backends = Server::start("sluice demo-backends", Command::new(&sluice).arg("demo-backends"))?;
    backends.wait_for("demo backends: ready")?;
    let _backends = backends.echo();

    let mut command = Command::new(&sluice);
    command.arg("run").arg("--manifests").arg(root.join("examples").join(example.folder()));
    // The endpoints are on loopback, which a router rejects by default.
    command.args(["--endpoint-addresses", "any"]);
    command.args(["--data-path", if root_user { "auto" } else { "userspace" }]);
    let mut router = Server::start("sluice run", &mut command)?;
    let said = router.wait_for("sluice: ready")?;
    // A router without its port keeps running and retries; in a demonstration, another program would respond.
    if let Some(taken) = said.iter().find(|line| line.contains("cannot listen on")) {
        bail!("a port of the example is taken: {taken}");
    }
    let mut router = router.echo();
    print!("{}", invitation(root, example));
    router.wait()
}

/// What to try.
fn invitation(root: &Path, example: Example) -> String {
    let here = std::env::current_dir().ok();
    let file = |name: &str| {
        let path = root.join("examples/demo-certificates").join(name);
        here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(&path).display().to_string()
    };
    let (ca, wildcard) = (file("demo-only-ca.crt"), file("demo-only-mycompany.crt"));
    let tries = match example {
        Example::Quickstart => format!(
            "\
  curl http://hello.apps.localhost:8080/                                # clear text, by spec.subdomain
  curl --cacert {ca} https://edge.apps.localhost:8443/
  curl --cacert {ca} https://reencrypt.apps.localhost:8443/
  curl --cacert {ca} https://passthrough.apps.localhost:8443/

and look inside:

  target/release/sluice get routes
  target/release/sluice bpf dump sni_passthrough
"
        ),
        Example::Delegation => format!(
            "\
  curl http://store.shop.localhost:8080/                                # the parent's own rule
  curl http://store.shop.localhost:8080/teams/red                       # the included route's
  curl http://store.shop.localhost:8080/teams/green                     # 404: nobody hangs there
  curl --cacert {wildcard} https://mail.mycompany.localhost:8443/
  curl --cacert {wildcard} https://www.mycompany.localhost:8443/

and look inside:

  target/release/sluice get routes
  target/release/sluice explain http://store.shop.localhost:8080/teams/red
"
        ),
    };
    let folder = example.folder();
    format!(
        "
Sluice serves examples/{folder}. Try, in another terminal:

{tries}
Change a file in examples/{folder} and ask again. Ctrl-C ends it.
"
    )
}
