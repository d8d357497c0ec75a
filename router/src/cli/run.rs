//! `sluice run`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use router_access_log::AccessLogForm;
use router_datapath::DataPathMode;
use router_datapath::kernel::{BpfObject, GateMode, KernelError, LOG_TARGET, LogLevel};
use router_datapath::netfilter::HostFirewall;
use router_datapath::ports::PortRange;
use router_datapath::redirect_peer::PeerRedirect;
use router_translate::settings::{GatewayAddress, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::agent;
use crate::agent::options::Options;
use crate::cli::arguments::{ClusterArgs, MAX_ADDRESSES, StateArgs, TranslationArgs, object_name};
use crate::cli::log;
use crate::keep::{self, Inherited};
use crate::source::SourceOptions;

/// Whether to move the program's code to huge pages.
#[cfg(feature = "huge-pages")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HugeText {
    /// If the kernel has transparent huge pages.
    Auto,
    /// Not.
    #[default]
    Never,
}

/// Whether an agent may be the leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Leader {
    /// If it holds the Lease.
    #[default]
    Auto,
    /// Not.
    Never,
}

/// Arguments of `sluice run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Folder of manifests.
    #[arg(long, value_name = "DIR", required_unless_present = "kubernetes", conflicts_with = "kubernetes")]
    manifests: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Name of the Lease of which the holder writes statuses, in the namespace of the kubeconfig or the pod [default:
    /// sluice-INSTANCE].
    #[arg(long, requires = "kubernetes", value_name = "NAME", value_parser = object_name)]
    lease: Option<String>,
    /// Whether this agent is a candidate for the Lease: `never` leaves statuses to `sluice controller`.
    #[arg(long, value_enum, default_value_t, requires = "kubernetes", value_name = "WHEN")]
    leader: Leader,
    /// Addresses in the statuses of Gateways, at most 16 [default: those of --listen].
    #[arg(long, requires = "kubernetes", value_delimiter = ',', value_name = "IP|NAME,…")]
    publish_address: Vec<GatewayAddress>,
    #[command(flatten)]
    state: StateArgs,
    /// Name of this agent's kernel objects, under /sys/fs/bpf/sluice.
    #[arg(long, default_value = "default", value_name = "NAME", value_parser = instance_name)]
    instance: String,
    /// The data path: `auto` uses the kernel's if it is available.
    #[arg(long, value_enum, default_value_t)]
    data_path: DataPathMode,
    /// Whether the kernel passes packets for pods of this host directly to the pod's end of the veth pair
    /// (`bpf_redirect_peer`): `auto` does so if nothing on the host's end handles outgoing packets (queueing
    /// disciplines, filters, TCX programs, nftables).
    #[arg(long, value_enum, default_value_t)]
    peer_redirect: PeerRedirect,
    /// Where the gate rejects packets, if an IngressController or a Gateway has `gate.sluice.dev` annotations: `auto` does so
    /// in the driver (native XDP), in the stack where the driver cannot, and not on veth pairs to pods of this host.
    #[arg(long, value_enum, default_value_t)]
    xdp: GateMode,
    /// Let native XDP forward established connections of the kernel's data path from one network card to another. Only there, and
    /// only where no offload, queueing discipline or hook would miss packets; `sluice get status -o wide` says where not, and
    /// why. On veth pairs only with `--xdp native`.
    #[arg(long)]
    xdp_forward: bool,
    /// Whether to respect this host's netfilter rules (nftables, iptables), which connections in the kernel bypass:
    /// `respect` relays connections that a rule may drop, reject, translate or change; `bypass` ignores the rules.
    #[arg(long, value_enum, default_value_t)]
    host_firewall: HostFirewall,
    /// Log what the kernel program decides, dials and ends, for debugging: `RUST_LOG=sluice::kernel=debug`, or `trace`. Needs
    /// a build with the feature `kernel-log`.
    #[arg(long)]
    kernel_log: bool,
    /// Address to listen on; repeatable. IngressControllers and Gateways define the ports. [default: every address]
    #[arg(long, value_name = "ADDR")]
    listen: Vec<IpAddr>,
    #[command(flatten)]
    translation: TranslationArgs,
    /// Format of the access log: events of the agent's own log, or on standard output as JSON or in the format of
    /// HAProxy's `option httplog`.
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    access_log: AccessLogForm,
    /// Name the cause of 4xx and 5xx responses in a response header.
    #[arg(long)]
    show_cause: bool,
    /// Source ports of the connections that the kernel opens to endpoints, outside net.ipv4.ip_local_port_range
    /// [default: the ports above 10240 that it leaves].
    #[arg(long, value_name = "LOW-HIGH")]
    snat_ports: Option<PortRange>,
    /// Maximum number of seconds for connections to end after SIGTERM.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    drain: u64,
    /// Whether to move the program's code to huge pages: `auto` does so if the kernel has transparent huge pages. Use
    /// `never` for uprobes and for profilers that resolve symbols by file.
    #[cfg(feature = "huge-pages")]
    #[arg(long, value_enum, default_value_t)]
    huge_text: HugeText,
    /// Log lines as JSON.
    #[arg(long)]
    log_json: bool,
}

impl RunArgs {
    /// Folder of the agent's sockets and statuses.
    pub fn state(&self) -> PathBuf {
        self.state.folder()
    }

    /// Maximum time for connections to end after SIGTERM.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}

fn instance_name(text: &str) -> Result<String, String> {
    let good = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    good.then(|| text.to_owned()).ok_or_else(|| "use letters, digits, `-` and `_`".to_owned())
}

/// Runs the agent.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    if args.kernel_log && !BpfObject::can_log() {
        return Err(KernelError::NoLog).context("--kernel-log");
    }
    log::start(args.log_json)?;
    #[cfg(feature = "huge-pages")]
    if args.huge_text == HugeText::Auto {
        match router_sys::huge_pages::on_huge_pages() {
            Ok(0) => {}
            Ok(bytes) => tracing::debug!(bytes, "the program's code is on huge pages"),
            Err(error) => tracing::debug!(%error, "the program's code cannot be put on huge pages"),
        }
    }
    // Before the runtime starts, as it might use these descriptors.
    let inherited = keep::inherit().context("what was handed over cannot be used")?;
    let manager = inherited.manager.clone();
    let result = serve(args, inherited);
    if let Err(error) = &result {
        // For the process that waits for this agent to be ready.
        manager.status(&format!("{error:#}"));
    }
    result
}

fn serve(args: RunArgs, inherited: Inherited) -> anyhow::Result<ExitCode> {
    let listen = if args.listen.is_empty() {
        vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
    } else {
        args.listen
    };
    let state = args.state.folder();
    let mut source = args.cluster.or_folder(args.manifests).context("--manifests")?;
    if let SourceOptions::Cluster(cluster) = &mut source {
        cluster.snapshot = Some(state.join("objects"));
    }
    ensure!(args.publish_address.len() <= MAX_ADDRESSES, "--publish-address: at most {MAX_ADDRESSES} addresses");
    let of_instance = || format!("sluice-{}", args.instance.to_ascii_lowercase().replace('_', "-"));
    let options = Options {
        source,
        state,
        lease: (args.leader == Leader::Auto).then(|| args.lease.unwrap_or_else(of_instance)),
        instance: args.instance,
        data_path: args.data_path,
        peer_redirect: args.peer_redirect,
        xdp: args.xdp,
        xdp_forward: args.xdp_forward,
        host_firewall: args.host_firewall,
        object: if args.kernel_log { logging() } else { BpfObject::Plain },
        listen,
        settings: Settings { addresses: args.publish_address, ..args.translation.settings() },
        service_ca: args.translation.service_ca()?,
        access_log: args.access_log,
        show_cause: args.show_cause,
        snat_ports: args.snat_ports,
        drain: Duration::from_secs(args.drain),
    };
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(agent::run(options, inherited))?;
    Ok(ExitCode::SUCCESS)
}

/// The kernel object with log lines, at the level of the filter.
fn logging() -> BpfObject {
    let level = LogLevel::of_filter();
    if level == LogLevel::Off {
        tracing::warn!("--kernel-log has no effect: set RUST_LOG=info,{LOG_TARGET}=debug");
    }
    BpfObject::Logging(level)
}

/// The default soft limit of 1,024 descriptors is for programs that call `select(2)`; raises it to the hard limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, limit = limit.current, "the limit of descriptors cannot be raised");
    }
}
