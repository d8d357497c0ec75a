//! Compressed responses, and their content after decompression.

use std::convert::Infallible;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use http::{Request, Response};
use http_body_util::{BodyExt, Channel};

use super::*;

fn request(fields: &[(&str, &str)]) -> request::Parts {
    let request = fields.iter().fold(Request::get("/"), |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn answer(status: u16, fields: &[(&str, &str)]) -> response::Parts {
    let response = fields
        .iter()
        .fold(Response::builder().status(status), |response, (name, value)| response.header(*name, *value));
    response.body(()).unwrap().into_parts().0
}

#[test]
fn gzip_is_for_those_who_take_it() {
    let cases = [
        (&["gzip"][..], true),
        (&["GZIP"], true),
        (&["x-gzip"], true),
        (&["deflate, gzip;q=0.5"], true),
        (&["deflate", "br, gzip"], true),
        (&["*"], true),
        (&["*;q=0"], false),
        (&["gzip;q=0"], false),
        (&["gzip;q=0.000, *"], false),
        (&["gzip; q=nonsense"], false),
        (&["deflate"], false),
        (&["identity"], false),
        (&[""], false),
        (&[], false),
    ];
    for (written, expected) in cases {
        let fields: Vec<_> = written.iter().map(|value| ("accept-encoding", *value)).collect();
        assert_eq!(accepts_gzip(&request(&fields)), expected, "{written:?}");
    }
    let head = Request::head("/").header("accept-encoding", "gzip").body(()).unwrap().into_parts().0;
    assert!(!accepts_gzip(&head));
}

#[test]
fn what_gains_nothing_or_must_stay_is_left_alone() {
    let types = ["text/html", "application/json"].map(Arc::from);
    let html = ("content-type", "text/html; charset=utf-8");
    let cases = [
        (200, &[html][..], Some(1000), true),
        (200, &[("content-type", "Application/JSON")], None, true),
        (404, &[html], None, true),
        (200, &[html], Some(255), false),
        (200, &[("content-type", "text/html5")], None, false),
        (200, &[("content-type", "text/plain")], None, false),
        (200, &[], None, false),
        (206, &[html, ("content-range", "bytes 0-1/2")], None, false),
        (204, &[html], None, false),
        (304, &[html], None, false),
        (200, &[html, ("content-encoding", "br")], None, false),
        (200, &[html, ("cache-control", "public, No-Transform")], None, false),
    ];
    for (status, fields, length, expected) in cases {
        assert_eq!(
            is_compressible(&types, &answer(status, fields), length),
            expected,
            "{status} {fields:?} {length:?}"
        );
    }
}

#[test]
fn fields_say_that_the_bytes_are_others() {
    let fields = [("content-length", "5"), ("accept-ranges", "bytes"), ("etag", "\"x\""), ("vary", "cookie")];
    let mut headers = answer(200, &fields).headers;
    set_fields(&mut headers);
    let expected = [("content-encoding", "gzip"), ("etag", "W/\"x\""), ("vary", "cookie"), ("vary", "accept-encoding")];
    assert_eq!(headers, answer(200, &expected).headers);
    set_fields(&mut headers);
    assert_eq!(headers, answer(200, &expected).headers);
}

fn unzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn bodies_come_out_as_they_went_in() {
    let (mut send, body) = Channel::<Bytes, Infallible>::new(1);
    let mut body = MaybeGzip::compress(&mut HeaderMap::new(), body);
    // An event is sent at once, without further data.
    send.send_data(Bytes::from_static(b"event")).await.unwrap();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let mut begun = [0; 5];
    MultiGzDecoder::new(&first[..]).read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"event");

    let long: String = (0..100_000).map(|number| format!("{number} ")).collect();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-end", HeaderValue::from_static("yes"));
    let content = Bytes::from(long.clone());
    let sending = async move {
        send.send_data(content).await.unwrap();
        send.send_trailers(trailers).await.unwrap();
    };
    let (collected, ()) = tokio::join!(body.collect(), sending);
    let collected = collected.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-end"], "yes");
    let all = [first, collected.to_bytes()].concat();
    assert!(all.len() < long.len() / 2);
    assert_eq!(unzip(&all), format!("event{long}"));
}

#[tokio::test]
async fn an_empty_body_is_a_valid_one() {
    let (send, body) = Channel::<Bytes, Infallible>::new(1);
    drop(send);
    let body = MaybeGzip::compress(&mut HeaderMap::new(), body);
    assert_eq!(unzip(&body.collect().await.unwrap().to_bytes()), "");
}
