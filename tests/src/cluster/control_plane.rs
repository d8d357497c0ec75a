//! etcd, the API server, the controllers and the scheduler, in a namespace of their own.

mod components;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use components::{Files, SERVER};
use http::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api::Api;
use super::audit::{self, Write};
use super::credentials::Credentials;
use super::definitions::Definitions;
use super::kubectl;
use super::network::Network;
use crate::netns::Netns;
use crate::pki::Leaf;
use crate::process::Process;
use crate::stream::joined;
use crate::wait::{self, PATIENCE};

/// A running control plane.
pub struct ControlPlane {
    // Dropped in this order.
    managers: Vec<Process>,
    api_server: Option<Process>,
    etcd: Option<Process>,
    api: Api,
    admin: Leaf,
    kubeconfig: PathBuf,
    credentials: Credentials,
    netns: Netns,
    network: Network,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts one without a scheduler: its API server is ready, and its controllers work.
    ///
    /// # Errors
    /// When a component does not start; the error has its output.
    pub fn start() -> Result<ControlPlane> {
        let folder = TempDir::new()?;
        let network = Network::new()?;
        let netns = Netns::new("control")?;
        let address = network.join(&netns, "eth0")?;
        ensure!(address == SERVER.ip(), "the control plane is the first member of its network");
        let credentials = Credentials::new(&folder.path().join("credentials"), SERVER)?;
        let admin = credentials.user("admin", "system:masters")?;
        let kubeconfig = credentials.kubeconfig("admin", &admin)?;
        let api = Api::new(&netns, SERVER, &credentials.ca_pem(), &admin)?;
        let mut plane = ControlPlane {
            managers: Vec::new(),
            api_server: None,
            etcd: None,
            api,
            admin,
            kubeconfig,
            credentials,
            netns,
            network,
            folder,
        };
        plane.write_files()?;
        plane.start_etcd()?;
        plane.start_api_server(&[])?;
        plane.start_controllers()?;
        Ok(plane)
    }

    /// One that tests of this process share as long as one of them uses it. Nobody can stop parts of it.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn shared() -> Result<Arc<ControlPlane>> {
        static SHARED: Mutex<Weak<ControlPlane>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plane) = shared.upgrade() {
            return Ok(plane);
        }
        let plane = Arc::new(ControlPlane::start()?);
        *shared = Arc::downgrade(&plane);
        Ok(plane)
    }

    /// The client of its administrator.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Where its API server listens.
    pub fn server(&self) -> SocketAddr {
        SERVER
    }

    /// A further client of its administrator in a namespace of the network, with a connection of its own.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn client(&self, netns: &Netns) -> Result<Api> {
        Api::new(netns, SERVER, &self.credentials.ca_pem(), &self.admin)
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The kubeconfig of a ServiceAccount in its namespace, with a token of a year.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let made = self.api.create(&path, &json!({"spec": {"expirationSeconds": 365 * 24 * 3600}}))?;
        let token = made["status"]["token"].as_str().context("a token request is answered with a token")?;
        self.credentials.kubeconfig_of_token(&format!("{namespace}-{account}"), namespace, token)
    }

    /// Its authority, which signs certificates of servers and users.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Its network, which agents and nodes join.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The namespace of its processes.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// `kubectl` as the administrator; returns what it prints.
    ///
    /// # Errors
    /// When it fails; the error has its output.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        kubectl::run(&self.netns, &self.kubeconfig, arguments)
    }

    /// `kubectl apply --server-side` of manifests.
    ///
    /// # Errors
    /// When one is rejected.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        kubectl::feed(&self.netns, &self.kubeconfig, &["apply", "--server-side", "-f", "-"], manifests)
    }

    /// Creates many objects of a collection, over several connections; not in their order.
    ///
    /// # Errors
    /// When one is rejected; others may have been created.
    pub fn create_all(&self, collection: &str, objects: &[Value]) -> Result<()> {
        const CONNECTIONS: usize = 4;
        let part = objects.len().div_ceil(CONNECTIONS).max(1);
        thread::scope(|scope| {
            let create = |part: &[Value]| {
                let api = self.client(&self.netns)?;
                part.iter().try_for_each(|object| api.create(collection, object).map(drop))
            };
            let threads: Vec<_> = objects.chunks(part).map(|part| scope.spawn(move || create(part))).collect();
            threads.into_iter().try_for_each(joined)
        })
    }

    /// Installs definitions of kinds, and waits until the kinds are served.
    ///
    /// # Errors
    /// When the API server rejects one, or does not serve a kind in time.
    pub fn define(&self, definitions: Definitions) -> Result<()> {
        let folder = definitions.folder()?;
        let folder = folder.to_str().context("a path is UTF-8")?;
        self.kubectl(&["apply", "--server-side", "-f", folder])?;
        self.wait_for_definitions()
    }

    /// Waits until the kinds of all definitions are served.
    ///
    /// # Errors
    /// When one is not in time.
    pub fn wait_for_definitions(&self) -> Result<()> {
        let time = format!("--timeout={}s", PATIENCE.as_secs());
        let wait = ["wait", "--for=condition=Established", &time, "customresourcedefinitions", "--all"];
        // `kubectl wait` fails at once on a definition that has no conditions yet.
        wait::wait_for("the definitions are established", PATIENCE, || self.kubectl(&wait).ok()).map(drop)
    }

    /// Writes to the API server so far, in the order of their answers. One is logged shortly before or after its answer.
    ///
    /// # Errors
    /// When there is no audit log.
    pub fn writes(&self) -> Result<Vec<Write>> {
        Write::all(&self.folder.path().join("audit.log"))
    }

    /// Process ids of its components.
    pub fn processes(&self) -> Vec<u32> {
        self.components().map(Process::id).collect()
    }

    /// Resident memory of the API server, in bytes.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resident(&self) -> Result<u64> {
        self.api_server.as_ref().context("the API server does not run")?.resident()
    }

    /// etcd's folder; a copy of it, made while etcd does not run, is a backup.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("etcd")
    }

    /// Kills etcd.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill_etcd(&mut self) -> Result<()> {
        kill(self.etcd.take().context("etcd does not run")?)
    }

    /// Starts etcd after [`ControlPlane::kill_etcd`]. The API server connects to it by itself.
    ///
    /// # Errors
    /// When it cannot be started, or runs already.
    pub fn start_etcd(&mut self) -> Result<()> {
        ensure!(self.etcd.is_none(), "etcd runs already");
        self.etcd = Some(components::etcd(&self.netns, &self.data())?);
        Ok(())
    }

    /// Kills the API server; etcd keeps the objects.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill_api_server(&mut self) -> Result<()> {
        kill(self.api_server.take().context("the API server does not run")?)
    }

    /// Starts the API server after [`ControlPlane::kill_api_server`], with further flags, and waits until it is ready;
    /// returns how long that took.
    ///
    /// # Errors
    /// When it runs already, ends, or is not ready in time; the error has its output.
    pub fn start_api_server(&mut self, flags: &[&str]) -> Result<Duration> {
        ensure!(self.api_server.is_none(), "the API server runs already");
        let mut process = components::api_server(&self.netns, &self.files(), flags)?;
        let waited = wait::wait_for("the API server is ready", PATIENCE, || {
            let answer = self.api.request(Method::GET, "/readyz", "", String::new());
            let is_ready = answer.is_ok_and(|(status, _)| status == StatusCode::OK);
            (is_ready || !process.runs()).then_some(is_ready)
        });
        let said = || format!("the API server printed:\n{}", process.output().join("\n"));
        let (is_ready, took) = waited.with_context(said)?;
        ensure!(is_ready, "the API server has ended; {}", said());
        self.api_server = Some(process);
        Ok(took)
    }

    /// Starts the controllers, and waits until they work: a namespace has its ServiceAccount.
    fn start_controllers(&mut self) -> Result<()> {
        let kubeconfig = self.kubeconfig_of_component("kube-controller-manager")?;
        self.managers.push(components::controllers(&self.netns, &self.files(), &kubeconfig)?);
        self.api.wait_for("/api/v1/namespaces/default/serviceaccounts", "default", PATIENCE, |_| true).map(drop)
    }

    /// Starts the scheduler, which only pods need.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_scheduler(&mut self) -> Result<()> {
        let kubeconfig = self.kubeconfig_of_component("kube-scheduler")?;
        self.managers.push(components::scheduler(&self.netns, &kubeconfig)?);
        Ok(())
    }

    /// The API server's roles for components go by their user names.
    fn kubeconfig_of_component(&self, name: &str) -> Result<PathBuf> {
        self.credentials.kubeconfig(name, &self.credentials.user(&format!("system:{name}"), "components")?)
    }

    /// Writes the files that the API server reads.
    fn write_files(&self) -> Result<()> {
        let folder = self.folder.path().join("credentials");
        let names = [&SERVER.ip().to_string(), components::SERVICE, "kubernetes.default.svc"];
        self.credentials.server("kube-apiserver", &names)?.write(&folder, "kube-apiserver")?;
        // As which the API server asks kubelets, and aggregated servers in the name of its clients.
        self.credentials.user("kube-apiserver-kubelet-client", "system:masters")?.write(&folder, "kubelet-client")?;
        self.credentials.user("front-proxy", "components")?.write(&folder, "front-proxy")?;
        self.credentials.token_keys()?;
        Ok(fs::write(self.folder.path().join("audit-policy.yaml"), audit::POLICY)?)
    }

    fn files(&self) -> Files<'_> {
        Files { folder: self.folder.path(), ca: self.credentials.ca() }
    }

    fn components(&self) -> impl Iterator<Item = &Process> {
        self.etcd.iter().chain(&self.api_server).chain(&self.managers)
    }
}

/// Kills a component, and waits for its end.
fn kill(mut process: Process) -> Result<()> {
    process.signal(Signal::KILL)?;
    process.ended(PATIENCE).map(drop)
}
