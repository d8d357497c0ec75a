//! Responses of the router before a request's body has arrived.

use hyper::StatusCode;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::frames::{
    DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, next,
};
use crate::tables::{Rig, Route};
use crate::{backends, client};

/// Begins `POST https://nobody.apps.test/` and reads the entire response.
async fn answered(rig: &Rig) -> TlsStream<TcpStream> {
    let mut stream = client::tls(rig.https, Some("early.apps.test"), &["h2"]).await;
    let authority = b"nobody.apps.test";
    // In HPACK: two entries of the static table, the path `/`, and the authority as a literal.
    let fields = [&[0x83, 0x87, 0x84, 0x01, authority.len() as u8][..], authority].concat();
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, END_HEADERS, 1, &fields)];
    stream.write_all(&hello.concat()).await.unwrap();
    loop {
        let (kind, flags, id, _) = next(&mut stream).await;
        assert_ne!(kind, RST_STREAM, "before the end of the answer");
        if id == 1 && flags & END_STREAM != 0 {
            return stream;
        }
    }
}

async fn rig() -> Rig {
    Rig::serve(&[Route::new("early.apps.test", "").edge(None).to(backends::http("app").await)]).await
}

#[tokio::test]
async fn a_short_body_is_read_to_its_end() {
    let rig = rig().await;
    let mut stream = answered(&rig).await;
    stream.write_all(&frame(DATA, 0, 1, &[b'x'; 16_000])).await.unwrap();
    stream.write_all(&frame(DATA, END_STREAM, 1, &[b'x'; 16_000])).await.unwrap();
    stream.write_all(&frame(PING, 0, 0, b"all read")).await.unwrap();
    loop {
        let (kind, _, id, payload) = next(&mut stream).await;
        assert!(kind != RST_STREAM, "stream {id} is reset: {payload:?}");
        if kind == PING && payload == b"all read" {
            break;
        }
    }
    let polite = client::get_h2(rig.https, "early.apps.test", &[("early.apps.test", "/")]).await;
    assert_eq!(polite[0].0, StatusCode::OK);
}

#[tokio::test]
async fn a_long_body_is_not() {
    let rig = rig().await;
    let mut stream = answered(&rig).await;
    let part = frame(DATA, 0, 1, &[b'x'; 16_000]);
    // As much as the initial window of a stream allows.
    stream.write_all(&part.repeat(4)).await.unwrap();
    let mut more = Some(part);
    loop {
        let (kind, _, id, payload) = next(&mut stream).await;
        if kind == WINDOW_UPDATE
            && id == 1
            && let Some(more) = more.take()
        {
            stream.write_all(&more).await.unwrap();
        }
        if kind == RST_STREAM {
            assert_eq!((id, payload), (1, vec![0; 4]), "NO_ERROR");
            assert!(more.is_none(), "reset before there was too much");
            break;
        }
    }
}
