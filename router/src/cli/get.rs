//! `sluice get`.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::table;
use crate::admin::{self, View};
use crate::cli::arguments::{Output, StateArgs};

/// Arguments of `sluice get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// View to show.
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    state: StateArgs,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Routes of every kind, one row for each router or parent.
    Routes,
    /// Listening sockets, and the listeners of Gateways.
    Listeners,
    /// Endpoints by route.
    Endpoints,
    /// Certificates by host.
    Certs,
    /// Objects that lost their host, with the winners.
    Conflicts,
    /// Connections carried by the kernel.
    Flows,
    /// The agent itself: revision, data path, problems; with `-o wide` and `-o json` also what the kernel data path
    /// leaves to the agent, with the reason, and settings of this host that affect it.
    Status,
}

/// Heading and JSON pointer.
type TableColumn = (&'static str, &'static str);

/// Columns of findings on the kernel data path, which `-o wide` prints below the status.
const FINDINGS: &[TableColumn] =
    &[("WHAT", "/what"), ("NAMES", "/names"), ("REASON", "/reason"), ("WHY", "/why"), ("WHAT TO DO", "/remedy")];
/// Maximum number of names printed for one reason; `-o json` has all.
const NAMES: usize = 3;

impl What {
    fn view(self) -> View {
        match self {
            What::Routes => View::Routes,
            What::Listeners => View::Listeners,
            What::Endpoints => View::Endpoints,
            What::Certs => View::Certs,
            What::Conflicts => View::Conflicts,
            What::Flows => View::Flows,
            What::Status => View::Status,
        }
    }

    /// Columns of the table, and those that `-o wide` adds.
    fn columns(self) -> (&'static [TableColumn], &'static [TableColumn]) {
        match self {
            What::Routes => (
                &[
                    ("KIND", "/kind"),
                    ("NAMESPACE", "/namespace"),
                    ("NAME", "/name"),
                    ("PARENT", "/parent"),
                    ("HOST", "/host"),
                    ("PATH", "/path"),
                    ("TERMINATION", "/termination"),
                    ("STATE", "/state"),
                    ("REASON", "/reason"),
                ],
                &[
                    ("SERVICES", "/services"),
                    ("SERVED", "/counters/served"),
                    ("STEERED", "/kernel/steered"),
                    ("MESSAGE", "/message"),
                ],
            ),
            What::Listeners => (
                &[
                    ("ROUTER", "/router"),
                    ("PROTOCOL", "/protocol"),
                    ("ADDRESS", "/address"),
                    ("STATE", "/state"),
                    ("LISTENER", "/listener"),
                    ("HOSTNAME", "/hostname"),
                    ("ROUTES", "/attachedRoutes"),
                    ("REASON", "/reason"),
                ],
                &[("ERROR", "/error"), ("MESSAGE", "/message")],
            ),
            What::Endpoints => (
                &[("ROUTER", "/router"), ("ROUTE", "/route"), ("SERVICE", "/service"), ("ADDRESS", "/address")],
                &[("WEIGHT", "/weight"), ("TARGET", "/target")],
            ),
            What::Certs => (
                &[("ROUTER", "/router"), ("HOST", "/host"), ("SUBJECT", "/subject"), ("NOT AFTER", "/notAfter")],
                &[("ISSUER", "/issuer"), ("NAMES", "/names")],
            ),
            What::Conflicts => (
                &[
                    ("KIND", "/kind"),
                    ("NAMESPACE", "/namespace"),
                    ("NAME", "/name"),
                    ("PARENT", "/parent"),
                    ("HOST", "/host"),
                    ("WINNER", "/winner/object"),
                    ("WINNER'S AGE", "/winner/age"),
                ],
                &[("REASON", "/reason"), ("MESSAGE", "/message")],
            ),
            What::Flows => (
                &[
                    ("CLIENT", "/client"),
                    ("LISTENER", "/listener"),
                    ("ROUTE", "/route"),
                    ("ENDPOINT", "/endpoint"),
                    ("STATE", "/state"),
                    ("BYTES IN", "/bytesIn"),
                    ("BYTES OUT", "/bytesOut"),
                    ("AGE (S)", "/age"),
                    ("IDLE (S)", "/idle"),
                ],
                &[
                    ("ROUTER", "/router"),
                    ("SOURCE", "/source"),
                    ("PACKETS IN", "/packetsIn"),
                    ("PACKETS OUT", "/packetsOut"),
                    ("END", "/end"),
                ],
            ),
            What::Status => (
                &[
                    ("VERSION", "/version"),
                    ("REVISION", "/revision"),
                    ("ROUTES", "/routes"),
                    ("DATA PATH", "/dataPath/mode"),
                    ("PROBLEMS", "/problems"),
                ],
                &[
                    ("IN KERNEL", "/dataPath/revision"),
                    ("CONNECTIONS IN KERNEL", "/dataPath/connections"),
                    ("INTERFACES", "/dataPath/interfaces"),
                    ("ATTACHED BY", "/dataPath/attachedBy"),
                    ("PEER REDIRECT", "/dataPath/peerRedirect"),
                    ("GATE", "/dataPath/gate/attached"),
                    ("FLOODED", "/dataPath/gate/flooded"),
                    ("XDP FORWARDS", "/dataPath/gate/forwards"),
                ],
            ),
        }
    }
}

/// Requests the view and prints it.
pub fn run(args: &GetArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(admin::ask(&args.state.folder(), args.what.view()))?;
    if let Some(error) = answer.get("error").and_then(Value::as_str).filter(|_| args.what != What::Status) {
        bail!("{error}");
    }
    let (columns, more) = args.what.columns();
    let rows = match &answer {
        Value::Array(rows) => rows.clone(),
        other => vec![other.clone()],
    };
    match args.output {
        Output::Json => println!("{answer:#}"),
        Output::Table => table::print(&rows, columns),
        Output::Wide => {
            table::print(&rows, &[columns, more].concat());
            let findings = answer.get("findings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if !findings.is_empty() {
                println!();
                table::print(&findings.iter().map(abridged).collect::<Vec<_>>(), FINDINGS);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A finding with only the first names.
fn abridged(finding: &Value) -> Value {
    let mut finding = finding.clone();
    if let Some(names) = finding.get_mut("names").and_then(Value::as_array_mut) {
        let more = names.len().saturating_sub(NAMES);
        if more > 0 {
            names.truncate(NAMES);
            names.push(format!("and {more} more").into());
        }
    }
    finding
}
