//! `httpHeaders.uniqueId`: a header that identifies each request, in HAProxy's log format (HAProxy 2.8, 8.2.6).
//!
//! Supported fields of the format: addresses and ports of both ends of the client's connection, the time, counters and
//! a UUID. Others are rejected by name.

use router_model::field::{FieldPath, Findings};
use router_table::policy::format::{Dialect, FormatError, Piece};
use router_table::policy::unique_id::{UniqueId, UniqueIdField, UniqueIdPart};

use crate::fields::Fields;
use crate::header_names::is_token;

/// Maximum length of a name or format, in bytes.
const MAX_LENGTH: usize = 1024;
/// OpenShift's default format.
const DEFAULT: &str = "%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid";

/// Reads `uniqueId`. A format with an unknown field has no effect: its path is added to `not_done`.
pub fn parse(mut fields: Fields<'_>, not_done: &mut Vec<FieldPath>, findings: &mut Findings) -> Option<UniqueId> {
    let name = fields.text("name", findings);
    let format = fields.text("format", findings);
    if let Some(bad) = name.filter(|name| !is_token(name) || name.len() > MAX_LENGTH) {
        let message = format!("Invalid value: {bad:?}: is not a valid header name; write one such as X-Request-Id");
        findings.error(fields.path("name"), message);
    }
    let path = fields.path("format");
    if name.is_none() && format.is_some() {
        findings.error(fields.path("name"), "Required value: write the header's name, or remove the format");
    }
    fields.finish(findings);
    let format = format.unwrap_or(DEFAULT);
    if format.len() > MAX_LENGTH {
        findings.error(path, format!("Too long: has {} bytes; use at most {MAX_LENGTH}", format.len()));
        return None;
    }
    let name = name?.into();
    match read(format) {
        Ok(parts) => Some(UniqueId { name, parts: parts.into() }),
        Err(FormatError::Malformed(fault)) => {
            findings.error(path, format!("Invalid value: {format:?}: {fault}"));
            None
        }
        Err(FormatError::Unknown(field)) => {
            let message = format!(
                "{field} cannot be written here, so the header is not sent; use %ci, %cp, %fi, %fp, %Ts, %ms, %rt, \
                 %pid and %[uuid]"
            );
            findings.warn(path.clone(), message);
            not_done.push(path);
            None
        }
    }
}

const DIALECT: Dialect<UniqueIdField> = Dialect {
    flag: "X",
    flag_fault: "has a flag that is none; write %{+X} for hexadecimal",
    allows: |c| matches!(c, ' '..='~'),
    text_fault: "has a character that no header has; use printable ASCII",
    field,
};

fn read(format: &str) -> Result<Vec<UniqueIdPart>, FormatError> {
    let part = |piece| match piece {
        Piece::Text(text) => UniqueIdPart::Text(text),
        Piece::Field(what, flagged) => {
            let hex = flagged && !matches!(what, UniqueIdField::Milliseconds | UniqueIdField::Uuid);
            UniqueIdPart::Field { what, hex }
        }
    };
    Ok(DIALECT.read(format)?.into_iter().map(part).collect())
}

fn field(name: &str) -> Option<UniqueIdField> {
    Some(match name {
        "ci" => UniqueIdField::ClientAddress,
        "cp" => UniqueIdField::ClientPort,
        "fi" => UniqueIdField::FrontendAddress,
        "fp" => UniqueIdField::FrontendPort,
        "Ts" => UniqueIdField::Timestamp,
        "ms" => UniqueIdField::Milliseconds,
        "rt" => UniqueIdField::Counter,
        "pid" => UniqueIdField::Process,
        "[uuid]" | "[uuid()]" | "[uuid(4)]" => UniqueIdField::Uuid,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> UniqueIdPart {
        UniqueIdPart::Text(text.into())
    }

    #[test]
    fn the_default_format_is_hexadecimal_throughout() {
        let parts = read(DEFAULT).unwrap();
        let field = |what| UniqueIdPart::Field { what, hex: true };
        let expected = [
            field(UniqueIdField::ClientAddress),
            text(":"),
            field(UniqueIdField::ClientPort),
            text("_"),
            field(UniqueIdField::FrontendAddress),
            text(":"),
            field(UniqueIdField::FrontendPort),
            text("_"),
            field(UniqueIdField::Timestamp),
            text("_"),
            field(UniqueIdField::Counter),
            text(":"),
            field(UniqueIdField::Process),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn flags_hold_for_one_field_unless_they_stand_before_o() {
        let field = |what, hex| UniqueIdPart::Field { what, hex };
        let found = read("  id  %{+X}pid-%pid-%{+X}ms %% %{+X}o%rt%{-X}cp%[uuid()]  ").unwrap();
        let expected = [
            text("id "),
            field(UniqueIdField::Process, true),
            text("-"),
            field(UniqueIdField::Process, false),
            text("-"),
            field(UniqueIdField::Milliseconds, false),
            text(" % "),
            field(UniqueIdField::Counter, true),
            field(UniqueIdField::ClientPort, false),
            field(UniqueIdField::Uuid, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(read("fixed").unwrap(), [text("fixed")]);
    }

    #[test]
    fn unknown_names_and_invalid_formats_are_distinguished() {
        for (format, field) in [
            ("%ci-%ST", "%ST"),
            ("%[req.hdr(X-Id)]", "%[req.hdr(X-Id)]"),
            ("%{+Q}ci", "%{+Q}"),
            ("%[uuid(7)]", "%[uuid(7)]"),
        ] {
            assert_eq!(read(format), Err(FormatError::Unknown(field.to_owned())), "{format}");
        }
        for format in ["%", "%-", "a%", "%{+X", "%{+Z}ci", "%{}ci", "%[uuid", "a\nb", "ä", "%9"] {
            assert!(matches!(read(format), Err(FormatError::Malformed(_))), "{format}");
        }
    }
}
