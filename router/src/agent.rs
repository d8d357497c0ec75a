//! Wires the stages together; the only module that knows all of them.
//!
//! ```text
//! Source ───► translate ─► Published ─┬─► proxy
//!                                      ├─► kernel data path
//!                                      ├─► status writer
//!                                      └─► admin socket
//! ```

mod addresses;
mod advice;
mod data_path;
pub mod error;
pub mod options;

use std::convert::Infallible;
use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_datapath::kernel::Mode;
use router_datapath::reconciler::inputs::DataPathInputs;
use router_datapath::reconciler::programmed::Programmed;
use router_datapath::{PinFolder, conntrack};
use router_listener::{BindState, ListenerState};
use router_model::parallel;
use router_proxy::{Proxy, ProxyConfig};
use router_sys::heap;
use router_table::policy::Timeouts;
use router_translate::engine::Engine;
use router_translate::settings::GatewayAddress;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::admin::{self, AdminError, Views};
use crate::causes::with_causes;
use crate::cluster_statuses;
use crate::keep::{Inherited, KeeperOrder, Manager, Orders};
use crate::published::Published;
use crate::source::{Source, SourceOptions};
use crate::status::StatusWriter;
use crate::translation::Translation;
use data_path::{KernelDataPath, load_kernel};
use error::AgentError;
use options::Options;

/// Prints to stderr. A closed stderr must not end the agent, as `eprintln!` would.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Runs until SIGTERM or SIGINT, or until another agent has taken over.
///
/// # Errors
/// Only from starting; what fails later is retried and reported.
pub async fn run(options: Options, inherited: Inherited) -> Result<(), AgentError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let orders = inherited.orders()?;
    let Inherited { manager, sockets, successor } = inherited;
    if let SourceOptions::Cluster(_) = &options.source {
        // It will have Secrets.
        let fail = |error| AdminError::Io { path: options.state.clone(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(&options.state).map_err(fail)?;
    }
    let socket = if successor { admin::bind_beside(&options.state)? } else { admin::bind(&options.state)? };
    // AWS-LC takes some 0.1 s to gather entropy for the first key of a process: it does so while manifests are read.
    drop(tokio::task::spawn_blocking(|| aws_lc_rs::rand::fill(&mut [0])));
    let defaults = Defaults { cluster_domain: options.settings.cluster_domain.clone() };
    let opening = Source::open(&options.source, defaults);
    let (source, first) = tokio::select! {
        opened = opening => opened?,
        // An API server may be waited for.
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let mut settings = options.settings.clone();
    if settings.addresses.is_empty() {
        settings.addresses = addresses::reached_at(&options.listen).into_iter().map(GatewayAddress::Ip).collect();
    }
    let mut engine = Engine::new(settings.clone());
    let first = Arc::new(Published::new(&mut engine, &first, 1));
    let has_router = !first.table.routers.is_empty();
    // The kernel cannot steer connections of a router that expects the PROXY protocol.
    let steers = !has_router || first.table.routers.iter().any(|router| !router.policy.accept_proxy);
    let (tables, table_watch) = watch::channel(Arc::clone(&first.table));
    let (statuses, status_watch) = watch::channel(Arc::clone(&first.status));
    let (published, published_watch) = watch::channel(first);

    let kernel = load_kernel(&options, successor)?;
    let config = ProxyConfig {
        listen: options.listen.clone(),
        service_ca: options.service_ca.clone(),
        access_log: options.access_log,
        show_cause: options.show_cause,
        sockets,
        steered: kernel.is_ok(),
        original: Some(conntrack::original),
        ..ProxyConfig::default()
    };
    let proxy = Proxy::start(config, table_watch.clone());
    let mut listeners = proxy.listeners();
    let inputs = DataPathInputs {
        tables: table_watch,
        listeners: listeners.clone(),
        pins: PinFolder::of(&options.instance),
        access: proxy.access_log(),
        ports: options.snat_ports,
        peers: options.peer_redirect,
        firewall: options.host_firewall,
        gate: options.xdp,
        xdp_forward: options.xdp_forward,
        idle: Timeouts::default().tunnel,
    };
    let mut data_path = KernelDataPath::start(kernel, inputs)?;
    let api_server = source.server();
    let translation = Translation::start(source, engine, settings, move |new| {
        // Traffic does not wait for statuses.
        tables.send_replace(Arc::clone(&new.table));
        statuses.send_replace(Arc::clone(&new.status));
        published.send_replace(new);
    });
    let advice = tokio::spawn(advice::log_warnings(published_watch.clone(), proxy.known()));
    let views = Views {
        published: published_watch.clone(),
        listeners: listeners.clone(),
        programmed: data_path.as_ref().map(|path| path.programmed.subscribe()).map_err(Clone::clone),
        pins: PinFolder::of(&options.instance),
        known: proxy.known(),
        counters: proxy.counter_view(),
    };
    let admin = tokio::spawn(admin::serve(socket, Arc::new(views)));
    let write_statuses = || match (api_server, &options.lease) {
        (None, _) => Some(tokio::spawn(StatusWriter::new(&options.state).run(status_watch))),
        (Some(client), Some(lease)) => {
            Some(tokio::spawn(cluster_statuses::write(client, lease.clone(), status_watch, published_watch)))
        }
        (Some(_), None) => None,
    };
    let (mut status, mut write_later) = (None, None);
    if successor {
        write_later = Some(write_statuses);
    } else {
        status = write_statuses();
    }

    let programmed = data_path.as_ref().map(|path| path.programmed.subscribe()).map_err(Clone::clone);
    let announced = async {
        announce((has_router, steers), &manager, &mut listeners, programmed).await;
        if successor {
            // From here on, `sluice get` and the statuses are those of this agent.
            admin::take_over(&options.state)?;
        }
        status = status.take().or_else(|| write_later.take().and_then(|write| write()));
        manager.ready();
        // This thread and its helpers have read and translated everything.
        heap::trim();
        parallel::on_helpers(heap::trim);
        Ok::<Infallible, AgentError>(std::future::pending().await)
    };
    let ending = tokio::select! {
        _ = terminate.recv() => Mode::Shutdown,
        _ = interrupt.recv() => Mode::Shutdown,
        () = obey(orders, &manager, &options, &mut data_path) => Mode::HandOver,
        result = announced => match result? {},
    };
    say!("sluice: draining for at most {} s", options.drain.as_secs());
    translation.stop();
    advice.abort();
    if ending == Mode::Shutdown {
        manager.stopping();
        if let Ok(path) = &data_path {
            path.drain();
        }
    }
    translation.end(status).await;
    if ending == Mode::HandOver {
        if let Ok(path) = &mut data_path {
            path.end(Mode::HandOver).await;
        }
        admin.abort();
        proxy.shutdown(options.drain).await;
        return Ok(());
    }
    tokio::join!(proxy.shutdown(options.drain), async {
        if let Ok(path) = &data_path {
            path.drained(options.drain).await;
        }
    });
    if let Ok(path) = &mut data_path {
        path.end(Mode::Shutdown).await;
    }
    admin.abort();
    // Whether it existed or not: no agent listens on it any more.
    let _ = std::fs::remove_file(admin::socket(&options.state));
    Ok(())
}

/// Carries out the keeper's orders; returns when this agent has to leave.
async fn obey(
    mut orders: Orders,
    manager: &Manager,
    options: &Options,
    data_path: &mut Result<KernelDataPath, String>,
) {
    loop {
        match (orders.next().await, &mut *data_path) {
            (KeeperOrder::Leave, _) => return,
            (KeeperOrder::Yield, path) => {
                if let Ok(path) = path {
                    path.end(Mode::HandOver).await;
                }
                manager.yielded();
            }
            (KeeperOrder::Resume, Ok(path)) => {
                let loaded = load_kernel(options, true).unwrap_or_else(|error| Err(with_causes(&error)));
                let resumed = loaded.and_then(|kernel| path.resume(kernel).map_err(|error| error.to_string()));
                if let Err(error) = resumed {
                    tracing::error!(error, "the kernel data path cannot be taken up again; everything is relayed");
                }
            }
            (KeeperOrder::Resume, Err(_)) => {}
        }
    }
}

/// Waits until the first table is served everywhere, and reports readiness.
async fn announce(
    (has_router, steers): (bool, bool),
    manager: &Manager,
    listeners: &mut watch::Receiver<Arc<Vec<ListenerState>>>,
    programmed: Result<watch::Receiver<Arc<Programmed>>, String>,
) {
    if !has_router {
        let why = "no IngressController is served; `sluice validate` and the statuses say why";
        say!("sluice: {why}");
        manager.status(why);
    }
    // Neither sender is dropped while the agent runs; if one is, there is nothing to wait for.
    let _ = listeners.wait_for(|states| !states.is_empty()).await;
    for listener in listeners.borrow().iter() {
        let (router, address) = (&listener.router, listener.address);
        let scheme = match listener.protocol {
            router_listener::Protocol::Http => "http",
            router_listener::Protocol::Https => "https",
        };
        match &listener.state {
            BindState::Bound => say!("sluice: {router} listens on {scheme}://{address}"),
            BindState::Failed(error) => say!("sluice: {router} cannot listen on {scheme}://{address}: {error}"),
        }
    }
    if !listeners.borrow().iter().any(|listener| listener.state == BindState::Bound) {
        let why = "no listener is open; they are tried again every second";
        say!("sluice: {why}");
        manager.status(why);
        let bound = |states: &Arc<Vec<ListenerState>>| states.iter().any(|state| state.state == BindState::Bound);
        let _ = listeners.wait_for(bound).await;
    }
    match programmed {
        Ok(mut programmed) => {
            let written = |listeners: usize| listeners > 0 || !steers;
            let _ = programmed.wait_for(|programmed| programmed.failed > 0 || written(programmed.listeners)).await;
            let interfaces = programmed.borrow().interfaces.join(", ");
            say!("sluice: kernel data path on {interfaces}");
        }
        Err(reason) => say!("sluice: user-space data path: {reason}"),
    }
    say!("sluice: ready");
}
