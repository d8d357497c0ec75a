//! `sluice explain [-X METHOD] [-H FIELD]… URL|SNI`: every decision on a query, by a running agent or for a folder of
//! manifests.

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use router_api::defaults::Defaults;
use router_proxy::UpstreamTls;
use router_translate::explain::explain;
use router_translate::explain::explanation::Explanation;
use router_translate::explain::facts::Facts;
use router_translate::explain::query::{Query, QueryError};
use router_translate::settings::Settings;
use router_translate::translate::translate;

use crate::admin;
use crate::cli::arguments::{ClusterArgs, StateArgs, TranslationArgs};
use crate::source::{Source, SourceOptions};

/// Exit code if the query is not served.
pub const NOT_SERVED: u8 = 4;
/// Exit code for an invalid query.
const USAGE: u8 = 2;

/// Arguments of `sluice explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// `http://host[:port]/path?query`, the same with `https`, or `host[:port]` for a server name (SNI).
    #[arg(value_name = "URL|SNI", value_parser = Query::parse)]
    query: Query,
    /// The request's method [default: GET].
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,
    /// A header field of the request, in curl's syntax; repeatable.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Also check whether a client with this address may connect.
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// Explain a folder of manifests instead of the running agent.
    #[arg(long, value_name = "DIR", conflicts_with = "kubernetes")]
    manifests: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    translation: TranslationArgs,
    #[command(flatten)]
    state: StateArgs,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: ExplainFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// Text.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

impl ExplainArgs {
    /// The query.
    ///
    /// # Errors
    /// The method or a header field is invalid.
    pub fn question(&self) -> Result<Query, QueryError> {
        let query = self.query.clone();
        let query = self.method.iter().try_fold(query, |query, method| query.with_method(method))?;
        let query = self.headers.iter().try_fold(query, |query, field| query.with_header(field))?;
        Ok(self.from.map_or_else(|| query.clone(), |client| query.clone().from_client(client)))
    }
}

/// Prints the explanation; exit code 4 if the query is not served.
///
/// # Errors
/// No agent responds, the folder cannot be read, or stdout cannot be written.
pub fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let query = match args.question() {
        Ok(query) => query,
        Err(error) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(USAGE));
        }
    };
    let explanation = match args.cluster.or_folder(args.manifests.clone()) {
        Some(source) => offline(&source, &args.translation.settings(), &args.translation.trust()?, &query)?,
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(admin::ask_why(&args.state.folder(), &query))?
        }
    };
    let text = match args.output {
        ExplainFormat::Text => explanation.to_string(),
        ExplainFormat::Json => format!("{}\n", serde_json::to_string_pretty(&explanation)?),
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout")?;
    Ok(if explanation.served { ExitCode::SUCCESS } else { ExitCode::from(NOT_SERVED) })
}

/// Explains a query for a source.
///
/// # Errors
/// The source cannot be read.
pub fn offline(
    source: &SourceOptions,
    settings: &Settings,
    trust: &UpstreamTls,
    query: &Query,
) -> anyhow::Result<Explanation> {
    let defaults = Defaults { cluster_domain: settings.cluster_domain.clone() };
    let (_, snapshot) = Source::read(source, defaults)?;
    let translation = translate(&snapshot.resources, settings);
    let facts = Facts::of(&translation.table, &translation.report, &snapshot.resources, trust.given());
    Ok(explain(facts, query))
}
