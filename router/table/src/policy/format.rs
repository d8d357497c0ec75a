//! HAProxy's log format (HAProxy 2.8 configuration manual, 8.2.6): text, and fields such as `%ci` or `%[uuid]`, of which
//! those that are wanted are known to the [`Dialect`]. A flag holds for one field (`%{+Q}r`), or from `%{+Q}o` on.

use std::sync::Arc;

/// Why a format is no good.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// HAProxy would not take it either.
    Malformed(&'static str),
    /// This field or flag is none of ours.
    Unknown(String),
}

/// What may stand in a format.
pub struct Dialect<F> {
    /// The one flag that has an effect, `Q`, `X` or `E`.
    pub flag: &'static str,
    /// Said where something stands for a flag that is none.
    pub flag_fault: &'static str,
    /// Which characters may stand in texts.
    pub allows: fn(char) -> bool,
    /// Said of the others.
    pub text_fault: &'static str,
    /// The field of a name without `%`, or an expression with its brackets.
    pub field: fn(&str) -> Option<F>,
}

/// A piece of a format.
pub enum Piece<F> {
    /// Stands as it is.
    Text(Arc<str>),
    /// A field, and whether the flag holds for it.
    Field(F, bool),
}

impl<F> Dialect<F> {
    /// Reads a format. Blanks separate: of many there is one, and none stands at either end.
    ///
    /// # Errors
    /// When it is none, or has a field or flag that is not to be had.
    pub fn read(&self, format: &str) -> Result<Vec<Piece<F>>, Fault> {
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
                return Err(Fault::Malformed(self.text_fault));
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
                let (flags, after) = after.split_once('}').ok_or(Fault::Malformed("the '{' after '%' has no '}'"))?;
                flagged = self.read_flags(flags, flagged)?;
                rest = after;
            }
            let (name, after) = field_name(rest)?;
            rest = after;
            if name == "o" {
                all_flagged = flagged;
                continue;
            }
            let field = (self.field)(name).ok_or_else(|| Fault::Unknown(format!("%{name}")))?;
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

    /// The flags in `{…}`, such as `+Q,-X`. Those without an effect are not on, and may be switched off.
    fn read_flags(&self, flags: &str, mut flagged: bool) -> Result<bool, Fault> {
        for flag in flags.split(',') {
            match flag.split_at_checked(1) {
                Some(("+", name)) if name == self.flag => flagged = true,
                Some(("-", name)) if name == self.flag => flagged = false,
                Some(("-", "Q" | "X" | "E")) => {}
                Some(("+", "Q" | "X" | "E")) => return Err(Fault::Unknown(format!("%{{{flag}}}"))),
                _ => return Err(Fault::Malformed(self.flag_fault)),
            }
        }
        Ok(flagged)
    }
}

/// A name of letters, or an expression in brackets with them, and what follows.
fn field_name(rest: &str) -> Result<(&str, &str), Fault> {
    if rest.starts_with('[') {
        let end = rest.find(']').ok_or(Fault::Malformed("the '[' after '%' has no ']'"))?;
        return Ok(rest.split_at(end + 1));
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    if end == 0 {
        return Err(Fault::Malformed("has a '%' that begins no field; write %% for a percent sign"));
    }
    Ok(rest.split_at(end))
}
