//! The size of a connection's task.

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;
use crate::Proxy;
use crate::capacity::Capacity;
use crate::context::ProxyConfig;

/// Thousands of clients may stall in their hellos, and relayed connections may last for days.
#[tokio::test]
async fn a_waiting_connection_is_small() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let (_tables, tables) = watch::channel(Arc::default());
    let proxy = Proxy::start(ProxyConfig::default(), tables);
    let router = RouterName("default".into());
    let capacity = Arc::<Capacity>::default();
    let seats = Permits([capacity.take(), capacity.take()]);
    let accepted = Accepted { router, protocol: Protocol::Https, client: address, listener: address, stream, seats };
    let future = serve(Arc::clone(&proxy.workers.iter().next().unwrap().shared), accepted);
    let size = std::mem::size_of_val(&future);
    assert!(size <= 4 * 1024, "{size} bytes");
}
