//! The command line: `sluice <verb>`. Data goes to stdout, messages to stderr.
//!
//! Exit codes: 0 ok, 1 run-time failure, 2 usage, 3 invalid input, 4 degraded.
pub mod arguments;
mod bpf;
mod controller;
pub mod crds;
pub mod explain;
mod gate;
mod get;
mod keep;
mod log;
mod run;
mod table;
pub mod translate;
mod upgrade;
pub mod validate;

use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use arguments::{ClusterArgs, StateArgs, TranslationArgs};

/// Sluice, an edge router: eBPF steering with an in-process TLS proxy.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the router on a folder of manifests.
    Run(run::RunArgs),
    /// Write statuses and Events of a cluster, without serving anything; agents then run with `--leader never`.
    Controller(controller::ControllerArgs),
    /// Hold the listening sockets, run the agent and restart it if it exits: `sluice keep -- run …`.
    Keep(keep::KeepArgs),
    /// Replace the agent that `sluice keep` runs by a new one, of the binary that is installed now.
    Upgrade(StateArgs),
    /// Check manifests: exit 0, or 3 with file:line:column, the fault and what to write instead.
    Validate {
        /// Folder of manifests, or a single file.
        #[arg(value_name = "DIR|FILE", required_unless_present = "kubernetes", conflicts_with = "kubernetes")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        cluster: ClusterArgs,
        #[command(flatten)]
        translation: TranslationArgs,
    },
    /// Show every object that gets a status, with that status, as the API server would store it.
    Translate {
        /// Folder of manifests, or a single file.
        #[arg(value_name = "DIR|FILE", required_unless_present = "kubernetes", conflicts_with = "kubernetes")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        cluster: ClusterArgs,
        #[command(flatten)]
        translation: TranslationArgs,
        /// Format of the output.
        #[arg(short, long, value_enum, default_value_t = translate::TranslateFormat::Text)]
        output: translate::TranslateFormat,
    },
    /// Explain why a URL or a TLS server name is served as it is: exit 0, or 4 if it is not served.
    Explain(explain::ExplainArgs),
    /// Show what the running agent serves.
    Get(get::GetArgs),
    /// Show the kernel's real state, decoded.
    #[command(subcommand)]
    Bpf(bpf::BpfVerb),
    /// Show what the XDP gate rejects.
    #[command(subcommand)]
    Gate(gate::GateVerb),
    /// Print the definitions of Sluice's kinds, for `kubectl apply --server-side -f -`.
    Crds,
    /// Serve the backends of examples/quickstart.
    #[command(hide = true)]
    DemoBackends {
        /// Address to listen on.
        #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDR")]
        listen: IpAddr,
    },
}

/// Runs the command line.
///
/// # Errors
/// The error that ended a verb; the exit code is then 1.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if !matches!(cli.verb, Verb::Run(_) | Verb::Controller(_) | Verb::Keep(_) | Verb::DemoBackends { .. }) {
        router_sys::signal::end_on_broken_pipe();
    }
    match cli.verb {
        Verb::Run(args) => run::run(args),
        Verb::Controller(args) => controller::run(args),
        Verb::Keep(args) => {
            let agent = agent_arguments(&args.agent);
            keep::run(args, &agent)
        }
        Verb::Upgrade(state) => upgrade::run(&state),
        Verb::Validate { dir, cluster, translation } => validate::run(
            &cluster.or_folder(dir).context("DIR|FILE")?,
            &translation.settings(),
            &translation.trust()?,
            jiff::Timestamp::now(),
        ),
        Verb::Translate { dir, cluster, translation, output } => translate::run(
            &cluster.or_folder(dir).context("DIR|FILE")?,
            &translation.settings(),
            output,
            jiff::Timestamp::now(),
        ),
        Verb::Explain(args) => explain::run(&args),
        Verb::Get(args) => get::run(&args),
        Verb::Bpf(verb) => bpf::run(verb),
        Verb::Gate(verb) => gate::run(verb),
        Verb::Crds => {
            std::io::stdout().lock().write_all(crds::text().as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::DemoBackends { listen } => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            match runtime.block_on(crate::demo::run(listen))? {}
        }
    }
}

/// Parses the arguments after `sluice keep --`. A usage error is reported here, once, and not by each started agent.
fn agent_arguments(agent: &[OsString]) -> run::RunArgs {
    let command = std::iter::once(OsString::from("sluice")).chain(agent.iter().cloned());
    let agent = Cli::try_parse_from(command).unwrap_or_else(|error| error.exit());
    let Verb::Run(agent) = agent.verb else {
        let what = "the agent's arguments begin with `run`: write `sluice keep -- run …`";
        Cli::command().error(ErrorKind::InvalidValue, what).exit();
    };
    agent
}

#[cfg(test)]
mod tests;
