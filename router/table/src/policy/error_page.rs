//! A page that replaces one of the router's own: a whole HTTP/1 response, as in HAProxy's `errorfile`.

use bytes::Bytes;

/// Most header fields of a page.
const MAX_FIELDS: usize = 64;
/// Longest page, in bytes: the size limit of a ConfigMap.
const MAX_BYTES: usize = 1 << 20;
/// Fields that belong to one connection or follow from the body; the sender writes its own.
const OWN: [&str; 7] =
    ["connection", "content-length", "date", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// A response: status, fields and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// Status, 200 – 599.
    pub status: u16,
    /// Reason phrase; may be empty.
    pub reason: Box<str>,
    /// Field names and values in order, without connection-specific ones and `Content-Length`.
    pub fields: Vec<(Box<str>, Box<[u8]>)>,
    /// The body; may be empty.
    pub body: Bytes,
}

impl ErrorPage {
    /// Parses a page. Lines may end in a bare LF, as text editors write them.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("has {} bytes; use at most {MAX_BYTES}", text.len()));
        }
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let head = match response.parse(text.as_bytes()) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => {
                return Err("has no empty line after its header; write one before the body".to_owned());
            }
            Err(error) => {
                return Err(format!(
                    "is not a valid HTTP response: {error}; begin with a line such as HTTP/1.0 503 Service Unavailable, then \
                     header lines such as Content-Type: text/html, an empty line and the page"
                ));
            }
        };
        let status = response.code.unwrap_or_default();
        if !(200..600).contains(&status) {
            return Err(format!("has status {status}; write the status of an answer, such as 503"));
        }
        let is_own = |name: &str| OWN.iter().any(|own| name.eq_ignore_ascii_case(own));
        let fields = response.headers.iter().filter(|field| !is_own(field.name));
        Ok(ErrorPage {
            status,
            reason: response.reason.unwrap_or_default().into(),
            fields: fields.map(|field| (field.name.into(), field.value.into())).collect(),
            body: Bytes::copy_from_slice(text.as_bytes().get(head..).unwrap_or_default()),
        })
    }
}
