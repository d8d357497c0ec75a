//! `sluice controller`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use router_translate::settings::{GatewayAddress, Settings};

use super::log;
use crate::cli::arguments::{MAX_ADDRESSES, TranslationArgs, namespace, object_name};
use crate::controller::{self, Options};
use crate::source::SourceOptions;
use crate::source::cluster::ClusterOptions;

/// Arguments of `sluice controller`.
#[derive(Debug, Args)]
pub struct ControllerArgs {
    /// Kubeconfig [default: KUBECONFIG, ~/.kube/config, or the service account of the pod].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespaces to read [default: all].
    #[arg(long, value_delimiter = ',', value_parser = namespace, value_name = "NAMESPACE,…")]
    namespaces: Vec<String>,
    /// Name of the Lease of which the holder writes, in the namespace of the kubeconfig or the pod.
    #[arg(long, default_value = "sluice-default", value_name = "NAME", value_parser = object_name)]
    lease: String,
    /// Addresses in the statuses of Gateways: those by which clients reach the agents, at most 16.
    #[arg(long, required = true, value_delimiter = ',', value_name = "IP|NAME,…")]
    publish_address: Vec<GatewayAddress>,
    #[command(flatten)]
    translation: TranslationArgs,
    /// Log lines as JSON.
    #[arg(long)]
    log_json: bool,
}

/// Runs the controller.
pub fn run(args: ControllerArgs) -> anyhow::Result<ExitCode> {
    ensure!(args.publish_address.len() <= MAX_ADDRESSES, "--publish-address: at most {MAX_ADDRESSES} addresses");
    log::start(args.log_json)?;
    let namespaces = args.namespaces.iter().map(|name| name.as_str().into()).collect();
    let options = Options {
        source: SourceOptions::Cluster(ClusterOptions { kubeconfig: args.kubeconfig, namespaces, snapshot: None }),
        lease: args.lease,
        settings: Settings { addresses: args.publish_address, ..args.translation.settings() },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(controller::run(options))?;
    Ok(ExitCode::SUCCESS)
}
