//! HAProxy's log format (HAProxy 2.8 configuration manual, 8.2.6): text, and fields such as `%ci` or `%[uuid]`, of
//! which a [`Dialect`] supports some. A flag applies to one field (`%{+Q}r`), or from `%{+Q}o` on.

use std::sync::Arc;

/// Why a format is rejected.
#[derive(Debug, PartialEq, Eq)]
pub enum FormatError {
    /// HAProxy rejects it, too.
    Malformed(&'static str),
    /// This field or flag is not supported.
    Unknown(String),
}

/// The supported subset of the format.
pub struct Dialect<F> {
    /// The supported flag: `Q`, `X` or `E`.
    pub flag: &'static str,
    /// The error for an invalid flag.
    pub flag_fault: &'static str,
    /// Whether a character is allowed.
    pub allows: fn(char) -> bool,
    /// The error for other characters.
    pub text_fault: &'static str,
    /// The field of a name without `%`, or of an expression with its brackets; `None` if it is not supported.
    pub field: fn(&str) -> Option<F>,
}

/// A piece of a format.
pub enum Piece<F> {
    /// Literal text.
    Text(Arc<str>),
    /// A field, and whether the flag applies to it.
    Field(F, bool),
}

impl<F> Dialect<F> {
    /// Parses a format. Repeated blanks are reduced to one, and blanks at both ends are removed.
    ///
    /// # Errors
    /// The format is malformed, or uses an unsupported field or flag.
    pub fn read(&self, format: &str) -> Result<Vec<Piece<F>>, FormatError> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut all_flagged = false;
        let mut rest = format;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            if c == ' ' && (text.ends_with(' ') || (text.is_empty() && pieces.is_empty())) {
                continue;
            }
            if !(self.allows)(c) {
                return Err(FormatError::Malformed(self.text_fault));
            }
            if c != '%' {
                text.push(c);
                continue;
            }
            if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            }
            let mut flagged = all_flagged;
            if let Some(after) = rest.strip_prefix('{') {
                let (flags, after) =
                    after.split_once('}').ok_or(FormatError::Malformed("the '{' after '%' has no '}'"))?;
                flagged = self.read_flags(flags, flagged)?;
                rest = after;
            }
            let (name, after) = field_name(rest)?;
            rest = after;
            if name == "o" {
                all_flagged = flagged;
                continue;
            }
            let field = (self.field)(name).ok_or_else(|| FormatError::Unknown(format!("%{name}")))?;
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text).into()));
            }
            pieces.push(Piece::Field(field, flagged));
        }
        let text = text.trim_end();
        if !text.is_empty() {
            pieces.push(Piece::Text(text.into()));
        }
        Ok(pieces)
    }

    /// Parses the flags in `{…}`, such as `+Q,-X`. Unsupported flags are never on, so they may be switched off.
    fn read_flags(&self, flags: &str, mut flagged: bool) -> Result<bool, FormatError> {
        for flag in flags.split(',') {
            match flag.split_at_checked(1) {
                Some(("+", name)) if name == self.flag => flagged = true,
                Some(("-", name)) if name == self.flag => flagged = false,
                Some(("-", "Q" | "X" | "E")) => {}
                Some(("+", "Q" | "X" | "E")) => return Err(FormatError::Unknown(format!("%{{{flag}}}"))),
                _ => return Err(FormatError::Malformed(self.flag_fault)),
            }
        }
        Ok(flagged)
    }
}

/// Splits off a name of letters, or an expression with its brackets.
fn field_name(rest: &str) -> Result<(&str, &str), FormatError> {
    if rest.starts_with('[') {
        let end = rest.find(']').ok_or(FormatError::Malformed("the '[' after '%' has no ']'"))?;
        return Ok(rest.split_at(end + 1));
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    if end == 0 {
        return Err(FormatError::Malformed("has a '%' that begins no field; write %% for a percent sign"));
    }
    Ok(rest.split_at(end))
}
