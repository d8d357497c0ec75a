//! Maps errors of libraries to causes for the access log, for each step of a request.

use std::error::Error;
use std::io;

use router_table::flag::Flag;
use rustls::CertificateError;

use super::failure::AnswerError;

/// Cause of a failed TLS handshake with an endpoint.
pub fn of_handshake(error: &io::Error) -> Flag {
    match tls(error) {
        Some(rustls::Error::InvalidCertificate(error)) => of_certificate(error),
        // An endpoint that closes the connection during the handshake does not serve TLS either.
        _ => Flag::UpstreamTls,
    }
}

fn of_certificate(error: &CertificateError) -> Flag {
    use CertificateError as Fault;
    match error {
        Fault::UnknownIssuer => Flag::UpstreamUnknownCa,
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => Flag::UpstreamCertificateName,
        Fault::Expired | Fault::ExpiredContext { .. } => Flag::UpstreamCertificateExpired,
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => Flag::UpstreamCertificateNotYetValid,
        Fault::Other(other) if is_about_version(&*other.0) => Flag::UpstreamCertificateVersion,
        _ => Flag::UpstreamCertificate,
    }
}

/// Whether webpki rejected the certificate's version, which it reports as an extension error.
fn is_about_version(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

/// Cause of a missing or invalid response head.
pub fn of_head(error: &AnswerError) -> Flag {
    match error {
        AnswerError::Http1(error) if error.is_parse_too_large() => return Flag::UpstreamHeadTooLarge,
        AnswerError::Http1(error) if error.is_parse() => return Flag::UpstreamInvalid,
        _ => {}
    }
    match ErrorSource::of(error) {
        ErrorSource::Malformed => Flag::UpstreamInvalid,
        ErrorSource::Tls => Flag::UpstreamTls,
        ErrorSource::Frame | ErrorSource::End => Flag::UpstreamHungUp,
    }
}

/// Cause of incomplete response content.
pub fn of_content(error: &AnswerError) -> Flag {
    match ErrorSource::of(error) {
        ErrorSource::Malformed | ErrorSource::Frame => Flag::UpstreamInvalidContent,
        ErrorSource::Tls | ErrorSource::End => Flag::UpstreamClosed,
    }
}

/// Origin of an error of hyper or h2.
enum ErrorSource {
    /// The endpoint's HTTP/2 frames are malformed or exceed limits.
    Malformed,
    /// The HTTP/1 framing of the content is invalid.
    Frame,
    /// TLS.
    Tls,
    /// The connection or the stream ended.
    End,
}

impl ErrorSource {
    fn of(error: &AnswerError) -> Self {
        let io = match error {
            AnswerError::Http1(error) => error.source().and_then(|source| source.downcast_ref()),
            AnswerError::Http2(error) if error.is_library() => return ErrorSource::Malformed,
            AnswerError::Http2(error) => error.get_io(),
        };
        io.map_or(ErrorSource::End, ErrorSource::of_io)
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            _ if tls(error).is_some() => ErrorSource::Tls,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => ErrorSource::Frame,
            _ => ErrorSource::End,
        }
    }
}

fn tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
