//! Connections that end before their hello is complete.

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A client that sends the beginning of a hello and ends the connection in the given way.
async fn ended(end: impl FnOnce(TcpStream)) -> HelloFailure {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    client.write_all(&[22, 3, 1]).await.unwrap();
    end(client);
    read_hello(&accepted, Vec::new(), Duration::from_secs(10), &mut Timer::default()).await.unwrap_err()
}

#[tokio::test]
async fn a_reset_is_distinguished_from_an_end() {
    assert_eq!(ended(drop).await, HelloFailure::Closed);
    let reset = |client: TcpStream| socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    assert_eq!(ended(reset).await, HelloFailure::Reset);
}
