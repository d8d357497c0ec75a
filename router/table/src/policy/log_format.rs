//! `logging.access.httpLogFormat`: a line of the access log for each request, in HAProxy's log format (HAProxy 2.8
//! configuration manual, 8.2.6).
//!
//! Supported are the fields whose values are known here. Unmeasured ones have HAProxy's value for unknown. A format
//! with an unsupported field is rejected by the field's name.

use std::sync::Arc;

use super::format::{Dialect, FormatError, Piece};

/// A supported format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat(pub Arc<[LogPart]>);

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Literal text.
    Text(Arc<str>),
    /// A value of the request.
    Field {
        /// The field.
        what: LogField,
        /// `+Q`: in quotes, if it is a text.
        quoted: bool,
    },
}

/// Values of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogField {
    /// `%ci`: the client's address.
    ClientAddress,
    /// `%cp`: the client's port.
    ClientPort,
    /// `%fi`: the address that the client connected to.
    FrontendAddress,
    /// `%fp`: the port that the client connected to.
    FrontendPort,
    /// `%f`: the router.
    Frontend,
    /// `%ft`: the router, followed by `~` if TLS was terminated.
    FrontendTransport,
    /// `%b`: the route's backend name in OpenShift's router.
    Backend,
    /// `%s`: the endpoint.
    Server,
    /// `%si`: the endpoint's address.
    ServerAddress,
    /// `%sp`: the endpoint's port.
    ServerPort,
    /// `%t` and `%tr`: when the request began, `14/Nov/2023:22:13:20.123`, in UTC.
    Date,
    /// `%T`, `%trg`, and, because times are in UTC, `%Tl` and `%trl`: the same as `14/Nov/2023:22:13:20 +0000`.
    DateWithZone,
    /// `%Ts`: the same in seconds since 1970.
    Timestamp,
    /// `%ms`: milliseconds of that second, 3 digits.
    Milliseconds,
    /// `%Ta`, `%Tt` and `%Tu`: total milliseconds.
    TotalTime,
    /// `%Tr`: milliseconds until the response head was received.
    ResponseTime,
    /// `%Td`: milliseconds from then to the end.
    DataTime,
    /// `%Tc`, `%Th`, `%Ti`, `%Tq`, `%TR`, `%Tw`: unmeasured times, `-1`.
    UnknownTime,
    /// `%ST`: status of the response.
    Status,
    /// `%B`: bytes of content to the client.
    BytesOut,
    /// `%U`: bytes of content from the client.
    BytesIn,
    /// `%HM`: method.
    Method,
    /// `%HP`, `%HPO` and `%HU`: the path; the query is not logged.
    Path,
    /// `%HV`: version of HTTP.
    Version,
    /// `%r`: method, path and version.
    RequestLine,
    /// `%ts`: termination state, two letters.
    Termination,
    /// `%tsc`: the same with two more for cookies, which are not tracked.
    TerminationAndCookie,
    /// `%rc`: attempts after the first one.
    Retries,
    /// `%ac`, `%bc`, `%bq`, `%fc`, `%sc`, `%sq`: numbers that are not counted, `0`.
    UnknownCount,
    /// `%CC`: the captured cookie that the client sent.
    RequestCookie,
    /// `%CS`: the captured cookie that the response sets.
    ResponseCookie,
    /// `%hr`: the captured fields of the request, `{a|b}`.
    RequestHeaders,
    /// `%hs`: the captured fields of the response.
    ResponseHeaders,
    /// `%H`: the host's name.
    Host,
    /// `%pid`: the process id.
    Process,
}

impl LogFormat {
    /// Parses a format.
    ///
    /// # Errors
    /// The format is malformed, or uses an unsupported field or flag.
    pub fn read(format: &str) -> Result<LogFormat, FormatError> {
        parts(format).map(|parts| LogFormat(parts.into()))
    }
}

const DIALECT: Dialect<LogField> = Dialect {
    flag: "Q",
    flag_fault: "has a flag that is none; write %{+Q} for quotes",
    allows: |c| !c.is_control(),
    text_fault: "has a control character",
    field,
};

fn parts(format: &str) -> Result<Vec<LogPart>, FormatError> {
    let part = |piece| match piece {
        Piece::Text(text) => LogPart::Text(text),
        Piece::Field(what, quoted) => LogPart::Field { what, quoted },
    };
    Ok(DIALECT.read(format)?.into_iter().map(part).collect())
}

fn field(name: &str) -> Option<LogField> {
    Some(match name {
        "ci" => LogField::ClientAddress,
        "cp" => LogField::ClientPort,
        "fi" => LogField::FrontendAddress,
        "fp" => LogField::FrontendPort,
        "f" => LogField::Frontend,
        "ft" => LogField::FrontendTransport,
        "b" => LogField::Backend,
        "s" => LogField::Server,
        "si" => LogField::ServerAddress,
        "sp" => LogField::ServerPort,
        "t" | "tr" => LogField::Date,
        "T" | "Tl" | "trg" | "trl" => LogField::DateWithZone,
        "Ts" => LogField::Timestamp,
        "ms" => LogField::Milliseconds,
        "Ta" | "Tt" | "Tu" => LogField::TotalTime,
        "Tr" => LogField::ResponseTime,
        "Td" => LogField::DataTime,
        "Tc" | "Th" | "Ti" | "Tq" | "TR" | "Tw" => LogField::UnknownTime,
        "ST" => LogField::Status,
        "B" => LogField::BytesOut,
        "U" => LogField::BytesIn,
        "HM" => LogField::Method,
        "HP" | "HPO" | "HU" => LogField::Path,
        "HV" => LogField::Version,
        "r" => LogField::RequestLine,
        "ts" => LogField::Termination,
        "tsc" => LogField::TerminationAndCookie,
        "rc" => LogField::Retries,
        "ac" | "bc" | "bq" | "fc" | "sc" | "sq" => LogField::UnknownCount,
        "CC" => LogField::RequestCookie,
        "CS" => LogField::ResponseCookie,
        "hr" => LogField::RequestHeaders,
        "hs" => LogField::ResponseHeaders,
        "H" => LogField::Host,
        "pid" => LogField::Process,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(what: LogField, quoted: bool) -> LogPart {
        LogPart::Field { what, quoted }
    }

    #[test]
    fn formats_are_fields_and_what_is_between_them() {
        let text = |text: &str| LogPart::Text(text.into());
        let cases = [
            (
                "  %ci:%cp  [%t] 100%% ",
                vec![
                    field(LogField::ClientAddress, false),
                    text(":"),
                    field(LogField::ClientPort, false),
                    text(" ["),
                    field(LogField::Date, false),
                    text("] 100%"),
                ],
            ),
            (
                "%{+Q}r %ST %{+Q}o%HM%{-Q}b%f",
                vec![
                    field(LogField::RequestLine, true),
                    text(" "),
                    field(LogField::Status, false),
                    text(" "),
                    field(LogField::Method, true),
                    field(LogField::Backend, false),
                    field(LogField::Frontend, true),
                ],
            ),
            ("né", vec![text("né")]),
        ];
        for (format, parts) in cases {
            assert_eq!(LogFormat::read(format), Ok(LogFormat(parts.into())), "{format}");
        }
    }

    #[test]
    fn the_formats_of_haproxys_manual_are_read() {
        let httplog = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr \
                       %hs %{+Q}r";
        let clf = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc %bc \
                   %sc %rc %sq %bq %CC %CS %hr %hs";
        for format in [httplog, clf, "%ci:%cp [%t] %ft %b/%s %B %bq %HM %HU %HV"] {
            assert!(parts(format).is_ok(), "{format}: {:?}", parts(format));
        }
    }

    #[test]
    fn unknown_names_and_invalid_formats_are_distinguished() {
        for (format, unknown) in [
            ("%ci %ID", "%ID"),
            ("%[capture.req.hdr(0)]", "%[capture.req.hdr(0)]"),
            ("%HQ", "%HQ"),
            ("%{+X}ci", "%{+X}"),
            ("%{+Q,+E}r", "%{+E}"),
        ] {
            assert_eq!(parts(format), Err(FormatError::Unknown(unknown.to_owned())), "{format}");
        }
        for format in ["%", "%ci %-", "%{+Q", "%{Q}r", "%[x", "a\nb"] {
            assert!(matches!(parts(format), Err(FormatError::Malformed(_))), "{format}");
        }
    }
}
