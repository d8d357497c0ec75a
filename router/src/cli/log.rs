//! The log of a process that runs on.

use router_access_log::log_writer::LogWriter;
use tracing_subscriber::EnvFilter;

/// Starts the log on stderr. Its filter is that of `SLUICE_LOG` or `RUST_LOG`: `SLUICE_LOG=kernel=debug,access=info`, for
/// example. The access log is on by default.
///
/// # Errors
/// Of a directive, which is constant.
pub fn start(is_json: bool) -> anyhow::Result<()> {
    let filter = ["SLUICE_LOG", "RUST_LOG"].into_iter().find_map(|name| EnvFilter::try_from_env(name).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("info"));
    // kube logs a response that it cannot parse as a whole, at level `warn`: it may be a list of Secrets.
    let filter = filter.add_directive("kube_client::client=error".parse()?);
    // It logs each 403; the source logs the first one.
    let filter = filter.add_directive("kube_runtime::watcher=error".parse()?);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(LogWriter);
    if is_json {
        log.json().init();
    } else {
        log.with_ansi(false).init();
    }
    Ok(())
}
