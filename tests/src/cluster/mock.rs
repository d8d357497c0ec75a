//! An API server in this process, for what a real one does not do on request: its faults, and 100,000 objects at once.
//!
//! It keeps any object of an installed kind without validating it. Lists have pages and selectors, watches have streaming
//! lists and bookmarks, writes conflict by their resource versions. It has no server-side apply, no strategic merge and no
//! protobuf. `tests/stories/cluster/mock.rs` compares its answers with those of the real one.

mod answer;
mod body;
mod call;
mod connection;
mod discovery;
mod fault;
mod kind;
mod list;
mod listener;
mod lock;
mod log;
mod object;
mod selector;
mod state;
mod status;
mod store;
mod watch;
mod write;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc as channel;
use tokio_rustls::TlsAcceptor;

pub use call::Verb;
use connection::{Connections, Order};
pub use fault::{Fault, Then, When};
use kind::Kind;
use listener::{Relisten, listen};
use lock::lock;
pub use log::{Log, Request};
pub use state::Interrupt;
use state::State;
pub use status::Failure;
use store::Store;

use super::api::Api;
use super::credentials::Credentials;
use super::definitions::Definitions;
use crate::folder::{documents, replace};
use crate::netns::Netns;

/// Settings of a server.
pub struct Options {
    /// Where it listens; port 0 is a free one.
    pub address: SocketAddr,
    /// Further names of its certificate, which has its address.
    pub names: Vec<String>,
    /// Protocols that it offers in ALPN.
    pub protocols: &'static [&'static str],
    /// Number of changes that each kind remembers for watches; older versions are expired.
    pub history: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            names: Vec::new(),
            protocols: &["h2", "http/1.1"],
            history: 10_000,
        }
    }
}

/// A running server. It ends with the value.
pub struct MockApiServer {
    state: Arc<State>,
    connections: Arc<Connections>,
    netns: Option<Netns>,
    address: SocketAddr,
    credentials: Credentials,
    listeners: Option<channel::UnboundedSender<Relisten>>,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl MockApiServer {
    /// Starts one in a network namespace, or in that of this process; it listens when this returns.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(netns: Option<&Netns>, options: Options) -> Result<MockApiServer> {
        let listener = listen(netns, options.address)?;
        let address = listener.local_addr()?;
        let folder = TempDir::new()?;
        let credentials = Credentials::new(folder.path(), address)?;
        let ip = address.ip().to_string();
        let names: Vec<&str> = options.names.iter().map(String::as_str).chain([ip.as_str()]).collect();
        let tls = TlsAcceptor::from(credentials.server("mock", &names)?.server(options.protocols)?);
        let (state, connections) = (Arc::new(State::new(options.history)), Arc::new(Connections::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (listeners, orders) = channel::unbounded_channel();
        let shared = (Arc::clone(&state), Arc::clone(&connections));
        let thread = thread::Builder::new().name("mock API server".to_owned());
        let thread = thread.spawn(move || runtime.block_on(listener::run(orders, tls, shared.0, shared.1)))?;
        let server = MockApiServer {
            state,
            connections,
            netns: netns.cloned(),
            address,
            credentials,
            listeners: Some(listeners),
            thread: Some(thread),
            _folder: folder,
        };
        server.relisten(Some(listener))?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its authority's certificate in PEM.
    pub fn ca_pem(&self) -> String {
        self.credentials.ca_pem()
    }

    /// The kubeconfig of a user with a bearer token. Any token is accepted unless [`MockApiServer::accept_only`] says which.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig(&self, token: &str) -> Result<PathBuf> {
        self.credentials.kubeconfig_of_token("user", "default", token)
    }

    /// The kubeconfig of a user whose token is in a file, to be written by [`write_token`]; it is read for each request.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of_file(&self, file: &Path) -> Result<PathBuf> {
        self.credentials.kubeconfig_of_file("user-of-file", file)
    }

    /// A client in a namespace.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn client(&self, netns: &Netns) -> Result<Api> {
        Api::new(netns, self.address, &self.ca_pem(), &self.credentials.user("admin", "system:masters")?)
    }

    /// Rejects requests with another bearer token by 401; `None` accepts all.
    pub fn accept_only(&self, token: Option<&str>) {
        *lock(&self.state.token) = token.map(str::to_owned);
    }

    /// Creates or replaces an object as it is, status and times included; returns its resource version. A definition makes
    /// its kind.
    ///
    /// # Errors
    /// When its kind is not installed, or it has no name.
    pub fn apply(&self, object: &Value) -> Result<u64> {
        self.state.write(|store| {
            let kind = kind_of(store, object)?;
            let written = write::apply(store, &kind, object.clone())?;
            discovery::defined(store, &kind, &written);
            Ok(written.version)
        })
    }

    /// Applies the objects of a YAML text.
    ///
    /// # Errors
    /// When it is invalid, or as [`MockApiServer::apply`].
    pub fn apply_yaml(&self, text: &str) -> Result<()> {
        for document in documents(text) {
            let object: Value = serde_saphyr::from_str(document)?;
            self.apply(&object)
                .with_context(|| format!("applying {} {}", object["kind"], object["metadata"]["name"]))?;
        }
        Ok(())
    }

    /// Installs the kinds of definitions.
    ///
    /// # Errors
    /// When they have not been made.
    pub fn install(&self, definitions: Definitions) -> Result<()> {
        for entry in fs::read_dir(definitions.folder()?)? {
            let file = entry?.path();
            if file.extension().is_some_and(|extension| extension == "yaml") {
                let text = fs::read_to_string(&file)?;
                let mut definitions =
                    documents(&text).filter(|text| text.contains("\nkind: CustomResourceDefinition\n"));
                definitions.try_for_each(|text| self.apply_yaml(text)).with_context(|| file.display().to_string())?;
            }
        }
        Ok(())
    }

    /// Deletes an object, of which `apiVersion`, `kind`, name and namespace are read. Finalizers hold it.
    ///
    /// # Errors
    /// When there is no such object.
    pub fn delete(&self, object: &Value) -> Result<()> {
        self.state.write(|store| {
            let kind = kind_of(store, object)?;
            let key = key_of(&kind, object);
            let deleted = write::delete(store, &kind, &key, &Value::Null)?;
            if store.get(&kind, &key).is_none() {
                discovery::undefined(store, &kind, &deleted);
            }
            Ok(())
        })
    }

    /// An object as it is now, without `apiVersion` and `kind`; it is named as for [`MockApiServer::delete`].
    ///
    /// # Errors
    /// When there is no such object.
    pub fn get(&self, object: &Value) -> Result<Value> {
        let store = self.state.store();
        let kind = kind_of(&store, object)?;
        let found = store.get(&kind, &key_of(&kind, object));
        found.map(|object| object.value()).with_context(|| format!("no {kind} {}", object["metadata"]["name"]))
    }

    /// Version of the last change.
    pub fn version(&self) -> u64 {
        self.state.store().version()
    }

    /// Forgets changes of a kind, by its collection, or of all: watches from older versions are expired (410).
    pub fn compact(&self, plural: Option<&str>) {
        self.state.store().compact(plural);
    }

    /// Expires the tokens of lists that are being read by pages (410).
    pub fn expire_pages(&self) {
        self.state.pages.expire();
    }

    /// Interrupts the open watches of a kind, by its collection, or all.
    pub fn interrupt(&self, plural: Option<&str>, what: Interrupt) {
        // Without a watch nobody receives it.
        let _ = self.state.interrupts.send((plural.map(str::to_owned), what));
    }

    /// Lets requests meet a fault until it is released.
    pub fn fault(&self, when: When, then: Then) -> Fault {
        self.state.faults.add(when, then)
    }

    /// The requests.
    pub fn log(&self) -> &Log {
        &self.state.log
    }

    /// Number of open watches of a kind, by its collection.
    pub fn watches(&self, plural: &str) -> usize {
        self.state.watches(plural)
    }

    /// Numbers of the open connections, as the log has them.
    pub fn connections(&self) -> Vec<u64> {
        self.connections.open()
    }

    /// Number of connections so far.
    pub fn connections_made(&self) -> u64 {
        self.connections.made()
    }

    /// Asks the clients of open connections to open others (GOAWAY); open requests go on.
    pub fn drain_connections(&self) {
        self.connections.order(Order::Drain);
    }

    /// Open connections neither read nor write any longer, in silence.
    pub fn stall_connections(&self) {
        self.connections.order(Order::Stall);
    }

    /// Ends open connections at once.
    pub fn cut_connections(&self) {
        self.connections.order(Order::Cut);
    }

    /// Ends connections and refuses further ones, as a server that is down.
    ///
    /// # Errors
    /// When its thread has ended.
    pub fn stop(&self) -> Result<()> {
        self.relisten(None)
    }

    /// Listens again after [`MockApiServer::stop`], with the same objects.
    ///
    /// # Errors
    /// When it cannot listen on its address.
    pub fn resume(&self) -> Result<()> {
        self.relisten(Some(listen(self.netns.as_ref(), self.address)?))
    }

    fn relisten(&self, listener: Option<TcpListener>) -> Result<()> {
        let (done, waited) = mpsc::channel();
        let listeners = self.listeners.as_ref().context("it ends")?;
        listeners.send((listener, done)).ok().context("the server's thread has ended")?;
        Ok(waited.recv()??)
    }
}

impl Drop for MockApiServer {
    fn drop(&mut self) {
        drop(self.listeners.take());
        if let Some(thread) = self.thread.take() {
            // A panic was printed.
            let _ = thread.join();
        }
    }
}

/// Writes a token that has expired as soon as it was used.
///
/// # Errors
/// When the file cannot be written.
pub fn write_token(file: &Path, token: &str) -> Result<()> {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token, "expirationTimestamp": "2026-01-01T00:00:00Z"},
    });
    replace(file, &credential.to_string())
}

fn kind_of(store: &Store, object: &Value) -> Result<Arc<Kind>> {
    ensure!(object["metadata"]["name"].is_string(), "an object without a name: {object}");
    let kind = store.kind_of(object).cloned();
    kind.with_context(|| format!("{} of {} is not installed", object["kind"], object["apiVersion"]))
}

fn key_of(kind: &Kind, object: &Value) -> object::Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = if kind.is_namespaced { text(&object["metadata"]["namespace"]) } else { String::new() };
    let is_default = kind.is_namespaced && namespace.is_empty();
    (if is_default { "default".to_owned() } else { namespace }, text(&object["metadata"]["name"]))
}
