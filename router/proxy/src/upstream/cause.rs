//! Which cause an error of the libraries stands for, at each step of a request's way to an endpoint and back.

use std::error::Error;
use std::io;

use router_table::flag::Flag;
use rustls::CertificateError;

use super::failure::AnswerError;

/// Of a TLS handshake with an endpoint.
pub fn of_handshake(error: &io::Error) -> Flag {
    match tls(error) {
        Some(rustls::Error::InvalidCertificate(error)) => of_certificate(error),
        // Whoever ends the connection instead of shaking hands does not want to speak TLS either.
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

/// Whether webpki does not read a certificate for its version: it knows that of extensions alone.
fn is_about_version(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

/// Of a response's head that did not come.
pub fn of_head(error: &AnswerError) -> Flag {
    match error {
        AnswerError::Http1(error) if error.is_parse_too_large() => return Flag::UpstreamHeadTooLarge,
        AnswerError::Http1(error) if error.is_parse() => return Flag::UpstreamInvalid,
        _ => {}
    }
    match Source::of(error) {
        Source::Malformed => Flag::UpstreamInvalid,
        Source::Tls => Flag::UpstreamTls,
        Source::Frame | Source::End => Flag::UpstreamHungUp,
    }
}

/// Of a response's content that broke off.
pub fn of_content(error: &AnswerError) -> Flag {
    match Source::of(error) {
        Source::Malformed | Source::Frame => Flag::UpstreamInvalidContent,
        Source::Tls | Source::End => Flag::UpstreamClosed,
    }
}

/// What is beneath an error of hyper or h2.
enum Source {
    /// What the endpoint sent is not what h2 takes: it is malformed, or too much.
    Malformed,
    /// The framing of content in HTTP/1 is broken.
    Frame,
    /// TLS is.
    Tls,
    /// The connection or the stream has ended.
    End,
}

impl Source {
    fn of(error: &AnswerError) -> Self {
        let io = match error {
            AnswerError::Http1(error) => error.source().and_then(|source| source.downcast_ref()),
            AnswerError::Http2(error) if error.is_library() => return Source::Malformed,
            AnswerError::Http2(error) => error.get_io(),
        };
        io.map_or(Source::End, Source::of_io)
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            _ if tls(error).is_some() => Source::Tls,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Source::Frame,
            _ => Source::End,
        }
    }
}

fn tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
