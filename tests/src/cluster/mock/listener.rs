//! Where the server listens, which can change while it runs.

use std::io;
use std::net::{SocketAddr, TcpListener as Listener};
use std::sync::{Arc, mpsc};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::mpsc as channel;
use tokio_rustls::TlsAcceptor;

use super::connection::{Connections, Order};
use super::state::State;
use crate::netns::Netns;

/// Where to listen from now on, if anywhere, and where to send the result.
pub type Relisten = (Option<Listener>, mpsc::Sender<io::Result<()>>);

/// A listener in a network namespace, or in that of this process.
///
/// # Errors
/// When the address cannot be had.
pub fn listen(netns: Option<&Netns>, address: SocketAddr) -> Result<Listener> {
    let bind = || {
        let listener = Listener::bind(address).with_context(|| format!("the mock cannot listen on {address}"))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    netns.map_or_else(bind, |netns| netns.run(bind))
}

/// Accepts connections until the server is dropped.
pub async fn run(
    mut orders: channel::UnboundedReceiver<Relisten>,
    tls: TlsAcceptor,
    state: Arc<State>,
    connections: Arc<Connections>,
) {
    let mut listener: Option<TcpListener> = None;
    loop {
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            order = orders.recv() => {
                let Some((next, done)) = order else { return };
                connections.order(Order::Cut);
                let result = next.map(TcpListener::from_std).transpose();
                // Whoever asked may be gone.
                let _ = done.send(result.map(|next| listener = next));
            }
            Ok((stream, _)) = accepted => {
                let (tls, state, connections) = (tls.clone(), Arc::clone(&state), Arc::clone(&connections));
                tokio::spawn(async move { connections.serve(stream, tls, state).await });
            }
        }
    }
}
