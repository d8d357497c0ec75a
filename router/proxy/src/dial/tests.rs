//! Results of connecting to an endpoint.

use tokio::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_address_that_refuses_is_ejected_and_one_that_accepts_is_not() {
    let health = Health::default();
    // Bound and not listening: no other process can get the port.
    let bound = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    bound.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let endpoint = Endpoint { address: bound.local_addr().unwrap().as_socket().unwrap(), target: None, h2c: false };
    for _ in 0..3 {
        assert!(health.view().is_none_or(|view| !view.is_ejected(endpoint.address, || None)));
        assert!(matches!(connect(&health, &endpoint, PATIENCE).await, Err(DialError::Refused(_))));
    }
    assert!(health.view().unwrap().is_ejected(endpoint.address, || None));
    drop(bound);
    let listener = TcpListener::bind(endpoint.address).await.unwrap();
    connect(&health, &endpoint, PATIENCE).await.unwrap();
    assert!(health.view().is_none());
    drop(listener);
}

#[tokio::test]
async fn no_answer_in_time_counts_too() {
    let health = Health::default();
    let endpoint = Endpoint { address: ([127, 0, 0, 1], 9).into(), target: None, h2c: false };
    for _ in 0..3 {
        assert!(matches!(
            connect(&health, &endpoint, Duration::ZERO).await,
            Err(DialError::Timeout | DialError::Refused(_))
        ));
    }
    assert!(health.view().unwrap().is_ejected(endpoint.address, || None));
}

#[test]
fn what_the_router_lacks_is_not_the_endpoints_fault() {
    assert!(is_of_endpoint(&io::Error::from_raw_os_error(libc::ECONNREFUSED)));
    assert!(is_of_endpoint(&io::Error::from_raw_os_error(libc::EHOSTUNREACH)));
    assert!(!is_of_endpoint(&io::Error::from_raw_os_error(libc::EMFILE)));
    assert!(!is_of_endpoint(&io::Error::from_raw_os_error(libc::EADDRNOTAVAIL)));
}
