//! Which cause an error of the libraries stands for, at each step of a request's way to an endpoint and back.

use std::error::Error;
use std::io;

use router_core::flag::Flag;
use rustls::CertificateError;

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
pub fn of_head(error: &hyper::Error) -> Flag {
    if error.is_parse_too_large() {
        return Flag::UpstreamHeadTooLarge;
    }
    if error.is_parse() {
        return Flag::UpstreamInvalid;
    }
    match Source::of(error) {
        Source::Malformed => Flag::UpstreamInvalid,
        Source::Tls => Flag::UpstreamTls,
        Source::Frame | Source::End => Flag::UpstreamHungUp,
    }
}

/// Of a response's content that broke off.
pub fn of_content(error: &hyper::Error) -> Flag {
    match Source::of(error) {
        Source::Malformed | Source::Frame => Flag::UpstreamInvalidContent,
        Source::Tls | Source::End => Flag::UpstreamClosed,
    }
}

/// What is beneath an error of hyper.
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
    fn of(error: &hyper::Error) -> Self {
        let Some(source) = error.source() else { return Source::End };
        if let Some(error) = source.downcast_ref::<h2::Error>() {
            return match error.get_io() {
                Some(error) => Source::of_io(error),
                None if error.is_library() => Source::Malformed,
                None => Source::End,
            };
        }
        source.downcast_ref().map_or(Source::End, Source::of_io)
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
