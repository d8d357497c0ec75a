//! Values of header actions: text with `%[…]` expressions, the part of HAProxy's format that the API permits.
//!
//! Grammar (the API's own pattern): `%%` is a percent sign; `%[fetch,converter,…]` is an expression, where fetch is
//! `req.hdr(Name)` (requests), `res.hdr(Name)` (responses) or `ssl_c_der`, and a converter is `lower` or `base64`;
//! flags such as `{+Q}` are allowed between `%` and `[`. Control characters are not allowed.

use std::sync::Arc;

/// A well-formed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderValue(Vec<ValuePart>);

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePart {
    /// Literal text; `%%` is already `%`.
    Text(Arc<str>),
    /// Computed for each message.
    Expression(Expression),
}

/// `%{flags}[fetch,converters]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The value that is looked up.
    pub fetch: Fetch,
    /// Applied in order.
    pub converters: Vec<Converter>,
    /// `{+Q}`: in double quotes.
    pub quoted: bool,
    /// `{+X}`: in hexadecimal.
    pub hexadecimal: bool,
    /// `{+E}`: quotes, backslashes and brackets escaped.
    pub escaped: bool,
}

/// The value that an expression looks up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// The last value of this header in the current message.
    Header(Arc<str>),
    /// The client's certificate, DER.
    ClientCertificate,
}

/// A conversion of the looked-up value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converter {
    /// ASCII letters to lower case.
    Lower,
    /// Base64 with padding.
    Base64,
}

impl HeaderValue {
    /// The parts in order.
    pub fn segments(&self) -> &[ValuePart] {
        &self.0
    }

    /// Parses a value that is not empty.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn parse(text: &str, direction: MessageDirection) -> Result<Self, String> {
        if text.chars().any(|c| c.is_ascii_control()) {
            return Err("has a control character, such as a line break; remove it".to_owned());
        }
        let mut segments = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            literal.push_str(before);
            if let Some(after) = after.strip_prefix('%') {
                literal.push('%');
                rest = after;
                continue;
            }
            let (expression, after) = expression(after, direction)?;
            if !literal.is_empty() {
                segments.push(ValuePart::Text(std::mem::take(&mut literal).into()));
            }
            segments.push(ValuePart::Expression(expression));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            segments.push(ValuePart::Text(literal.into()));
        }
        Ok(HeaderValue(segments))
    }
}

/// Parses an expression after its `%`; also returns the rest of the text.
fn expression(text: &str, direction: MessageDirection) -> Result<(Expression, &str), String> {
    let mut expression = Expression {
        fetch: Fetch::ClientCertificate,
        converters: Vec::new(),
        quoted: false,
        hexadecimal: false,
        escaped: false,
    };
    let mut rest = text;
    if let Some(after) = rest.strip_prefix('{') {
        let (flags, after) = after.split_once('}').ok_or("the '{' after '%' has no '}'; write for example %{+Q}[…]")?;
        read_flags(flags, &mut expression)?;
        rest = after;
    }
    let rest = rest.strip_prefix('[').ok_or("'%' begins an expression %[…]; write %% for a percent sign")?;
    let (inside, after) = rest.split_once(']').ok_or("the '[' after '%' has no ']'; close the expression")?;
    let mut parts = inside.split(',');
    expression.fetch = fetch(parts.next().unwrap_or_default(), direction)?;
    for part in parts {
        expression.converters.push(match part {
            "lower" => Converter::Lower,
            "base64" => Converter::Base64,
            other => return Err(format!("{other:?} is not a valid converter; write lower or base64")),
        });
    }
    Ok((expression, after))
}

fn read_flags(flags: &str, expression: &mut Expression) -> Result<(), String> {
    for flag in flags.split(',') {
        // A flag without a sign is accepted and ignored.
        let (set, name) = match flag.as_bytes() {
            [b'+', name] => (Some(true), *name),
            [b'-', name] => (Some(false), *name),
            [name] => (None, *name),
            _ => (None, 0),
        };
        let target = match name {
            b'Q' => &mut expression.quoted,
            b'X' => &mut expression.hexadecimal,
            b'E' => &mut expression.escaped,
            _ => return Err(format!("{flag:?} is not a valid flag; write +Q, +X or +E")),
        };
        *target = set.unwrap_or(*target);
    }
    Ok(())
}

fn fetch(text: &str, direction: MessageDirection) -> Result<Fetch, String> {
    let fetcher = direction.fetcher();
    if text == "ssl_c_der" {
        return Ok(Fetch::ClientCertificate);
    }
    let name =
        text.strip_prefix(fetcher).and_then(|rest| rest.strip_prefix('(')).and_then(|rest| rest.strip_suffix(')'));
    match name {
        Some(name) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') => {
            Ok(Fetch::Header(name.into()))
        }
        Some(name) => Err(format!("{name:?} is not a valid header name; use letters, digits and '-'")),
        None => Err(format!("{text:?} cannot be looked up here; write {fetcher}(Name) or ssl_c_der")),
    }
}

/// The list that contains an action, which determines the fetches that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDirection {
    /// `actions.request`: `req.hdr`.
    Request,
    /// `actions.response`: `res.hdr`.
    Response,
}

impl MessageDirection {
    /// The fetcher for headers, as HAProxy names it.
    pub const fn fetcher(self) -> &'static str {
        match self {
            MessageDirection::Request => "req.hdr",
            MessageDirection::Response => "res.hdr",
        }
    }
}
