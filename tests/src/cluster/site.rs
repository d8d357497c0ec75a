//! A router whose objects come from an API server, a real one or the mock, with backends in the router's namespace.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::mock::{self, MockApiServer, Verb};
use super::{Api, ControlPlane, Definitions, Network};
use crate::client::Client;
use crate::echo::{Answer, Backend, Echo, Speaks};
use crate::folder;
use crate::netns::Netns;
use crate::sluice::{DataPath, Options, Sluice};
use crate::stream;
use crate::wait::{PATIENCE, wait_until};

/// Ports of the backends.
pub const ONE: u16 = 9001;
/// See [`ONE`].
pub const TWO: u16 = 9002;

/// Collection of the Routes.
pub const ROUTES: &str = "/apis/route.openshift.io/v1/namespaces/test/routes";

/// Time in which a needless write would have been sent.
pub const CALM: Duration = Duration::from_millis(500);

/// An API server.
pub enum Server {
    /// Of this process.
    Mock(Box<MockApiServer>),
    /// A real one.
    Real(Box<ControlPlane>),
}

/// An API server with an IngressController, and the namespace of a router.
pub struct Site {
    /// The router's namespace.
    pub netns: Netns,
    /// The API server.
    pub server: Server,
    /// The backends, `one` and `two`.
    _echo: Echo,
    /// The mock's; the real API server has its own.
    _network: Option<Network>,
    address: IpAddr,
    kubeconfig: PathBuf,
}

impl Site {
    /// A site with the mock.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn mock() -> Result<Site> {
        let (network, netns) = (Network::new()?, Netns::new("site")?);
        let address = network.join(&netns, "eth0")?;
        let options = mock::Options { address: (address, 0).into(), ..mock::Options::default() };
        let server = MockApiServer::start(Some(&netns), options)?;
        server.install(Definitions::Sluice)?;
        let kubeconfig = server.kubeconfig("token")?;
        Site::new(Server::Mock(Box::new(server)), Some(network), netns, address.into(), kubeconfig)
    }

    /// A site with the mock, which has the Route `a` to the Service `web`, which is the backend `one`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn mock_with_route() -> Result<Site> {
        let site = Site::mock()?;
        site.service("web", ONE)?;
        site.route("a", "web")?;
        Ok(site)
    }

    /// A site with a real API server.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn real() -> Result<Site> {
        let plane = ControlPlane::start()?;
        let netns = Netns::new("site")?;
        let address = plane.network().join(&netns, "eth0")?;
        plane.define(Definitions::Sluice)?;
        for namespace in ["test", "openshift-ingress-operator"] {
            plane.kubectl(&["create", "namespace", namespace])?;
        }
        let kubeconfig = plane.kubeconfig().to_owned();
        Site::new(Server::Real(Box::new(plane)), None, netns, address.into(), kubeconfig)
    }

    fn new(
        server: Server,
        network: Option<Network>,
        netns: Netns,
        address: IpAddr,
        kubeconfig: PathBuf,
    ) -> Result<Site> {
        let backend = |name: &str, port| Backend {
            name: name.to_owned(),
            address: SocketAddr::new(address, port),
            speaks: Speaks::Http,
            tls: None,
            proxied: false,
            answer: Answer::default(),
        };
        let echo = Echo::start(&netns, vec![backend("one", ONE), backend("two", TWO)])?;
        let site = Site { netns, server, _echo: echo, _network: network, address, kubeconfig };
        site.apply(&folder::router())?;
        Ok(site)
    }

    /// The mock.
    ///
    /// # Errors
    /// When the server is a real one.
    pub fn mocked(&self) -> Result<&MockApiServer> {
        match &self.server {
            Server::Mock(server) => Ok(server),
            Server::Real(_) => anyhow::bail!("the API server is a real one"),
        }
    }

    /// The real API server's control plane.
    ///
    /// # Errors
    /// When the server is the mock.
    pub fn plane(&mut self) -> Result<&mut ControlPlane> {
        match &mut self.server {
            Server::Mock(_) => anyhow::bail!("the API server is the mock"),
            Server::Real(plane) => Ok(plane),
        }
    }

    /// A client of the API server.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn api(&self) -> Result<Api> {
        match &self.server {
            Server::Mock(server) => server.client(&self.netns),
            Server::Real(plane) => plane.client(&self.netns),
        }
    }

    /// Installs definitions of kinds.
    ///
    /// # Errors
    /// When one is rejected.
    pub fn define(&self, definitions: Definitions) -> Result<()> {
        match &self.server {
            Server::Mock(server) => server.install(definitions),
            Server::Real(plane) => plane.define(definitions),
        }
    }

    /// Routers that are started from now on have another kubeconfig.
    pub fn sign_in(&mut self, kubeconfig: PathBuf) {
        self.kubeconfig = kubeconfig;
    }

    /// Creates or changes objects.
    ///
    /// # Errors
    /// When one is rejected.
    pub fn apply(&self, manifests: &str) -> Result<()> {
        match &self.server {
            Server::Mock(server) => server.apply_yaml(manifests),
            Server::Real(plane) => plane.apply(manifests).map(drop),
        }
    }

    /// A Service of this name with an endpoint on a port of the backends.
    ///
    /// # Errors
    /// When it is rejected.
    pub fn service(&self, name: &str, port: u16) -> Result<()> {
        self.apply(&folder::service(name, SocketAddr::new(self.address, port)))
    }

    /// A Route of this name, for `NAME.apps.test`, to a Service.
    ///
    /// # Errors
    /// When it is rejected.
    pub fn route(&self, name: &str, service: &str) -> Result<()> {
        self.apply(&folder::route(name, &format!("{name}.apps.test"), service, ""))
    }

    /// Deletes a Route of the mock.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn delete_route(&self, name: &str) -> Result<()> {
        self.mocked()?.delete(&route_object(name, ""))
    }

    /// Address of the router's namespace, and of the backends.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts a router.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn serve(&self) -> Result<Sluice> {
        self.serve_with(&[])
    }

    /// As [`Site::serve`], with further arguments.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn serve_with(&self, arguments: &[&str]) -> Result<Sluice> {
        self.serve_after(None, arguments)
    }

    /// As [`Site::serve_with`], with the state folder that an earlier router left.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn serve_after(&self, state: Option<Arc<TempDir>>, arguments: &[&str]) -> Result<Sluice> {
        let mut sluice = self.spawn_after(state, arguments)?;
        sluice.wait_until_ready()?;
        Ok(sluice)
    }

    /// As [`Site::serve_after`]; the router may not be ready when this returns.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn_after(&self, state: Option<Arc<TempDir>>, arguments: &[&str]) -> Result<Sluice> {
        let arguments = ["--drain", "0"].iter().chain(arguments).map(|argument| (*argument).to_owned()).collect();
        let options = Options { arguments, state, ..Options::network(DataPath::UserSpace) };
        Sluice::spawn_in_cluster(&self.netns, &self.kubeconfig, &options)
    }

    /// Status of the response for `/` of a host, and the name of the backend that sent it.
    ///
    /// # Errors
    /// When there is no response.
    pub fn get(&self, host: &str) -> Result<(u16, String)> {
        self.get_at(host, 8080)
    }

    /// As [`Site::get`], on another port.
    ///
    /// # Errors
    /// When there is no response.
    pub fn get_at(&self, host: &str, port: u16) -> Result<(u16, String)> {
        let answer = Client::of(&self.netns, self.address).get(&format!("http://{host}:{port}/"))?;
        // NAME/NUMBER.
        let backend = answer.header(crate::echo::NUMBER).and_then(|entry| Some(entry.split_once('/')?.0.to_owned()));
        Ok((answer.status, backend.unwrap_or_default()))
    }

    /// The certificate that the router presents for a name on a port, verified.
    ///
    /// # Errors
    /// When the handshake fails.
    pub fn handshake(&self, name: &str, port: u16, trust: &Arc<ClientConfig>) -> Result<CertificateDer<'static>> {
        let mut stream = stream::open(&self.netns, SocketAddr::new(self.address, port))?;
        let mut tls = ClientConnection::new(Arc::clone(trust), ServerName::try_from(name.to_owned())?)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        let certificate = tls.peer_certificates().and_then(|chain| chain.first()).context("a server has one")?;
        Ok(certificate.clone().into_owned())
    }

    /// Waits until a host is served by a backend.
    ///
    /// # Errors
    /// When it is not in time.
    pub fn wait_for(&self, host: &str, backend: &str) -> Result<()> {
        let is_served = || self.get(host).is_ok_and(|(status, from)| (status, &*from) == (200, backend));
        wait_until(&format!("{host} is served by {backend}"), PATIENCE, is_served).map(drop)
    }

    /// A Route of the API server.
    ///
    /// # Errors
    /// When there is none.
    pub fn stored_route(&self, name: &str) -> Result<Value> {
        match &self.server {
            Server::Mock(server) => server.get(&route_object(name, "")),
            Server::Real(plane) => plane.api().get(&format!("{ROUTES}/{name}")),
        }
    }

    /// Waits until a Route's first `status.ingress` has an Admitted condition of this status.
    ///
    /// # Errors
    /// When it has not in time.
    pub fn wait_for_admitted(&self, name: &str, status: &str) -> Result<Value> {
        let admitted = |route: &Value| {
            let conditions = route.pointer("/status/ingress/0/conditions").and_then(Value::as_array);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Admitted" && condition["status"] == status)
        };
        let what = format!("Route {name} is Admitted={status}");
        wait_until(&what, PATIENCE, || self.stored_route(name).is_ok_and(|route| admitted(&route)))?;
        self.stored_route(name).context(what)
    }

    /// Number of writes of statuses of Routes: of requests that the mock has received, of writes in the real API server's
    /// audit log. There, a write may be logged after its answer: see [`Site::wait_for_status_writes`].
    ///
    /// # Errors
    /// When there is no audit log.
    pub fn status_writes(&self) -> Result<usize> {
        Ok(match &self.server {
            Server::Mock(server) => server.log().count_of(Verb::Patch, "routes"),
            Server::Real(plane) => plane.writes()?.iter().filter(|write| write.resource == "routes/status").count(),
        })
    }

    /// Waits until there are this many writes of statuses, or more; returns their number.
    ///
    /// # Errors
    /// When there are fewer in time.
    pub fn wait_for_status_writes(&self, least: usize) -> Result<usize> {
        // They are sent at a limited rate.
        let within = PATIENCE + Duration::from_secs(u64::try_from(least / 50)?);
        let are_written = || self.status_writes().is_ok_and(|writes| writes >= least);
        wait_until(&format!("{least} statuses are written"), within, are_written)?;
        self.status_writes()
    }
}

/// A Route of this name, for `NAME.apps.test`, to a Service; as an object for the mock.
pub fn route_object(name: &str, service: &str) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"namespace": "test", "name": name},
        "spec": {"host": format!("{name}.apps.test"), "to": {"kind": "Service", "name": service}},
    })
}

/// Waits until a router holds the Lease.
///
/// # Errors
/// When it does not in time.
pub fn wait_until_it_leads(sluice: &Sluice) -> Result<()> {
    wait_until("the router holds the Lease", PATIENCE, || sluice.has_line("holds the Lease")).map(drop)
}
