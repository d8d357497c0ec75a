//! Resolves scalars by the core schema of YAML 1.2 (10.3.2). kubectl reads whole numbers as in YAML 1.1
//! (tag:yaml.org,2002:int); one that kubectl would read as another number is rejected.

use std::borrow::Cow;

use serde_json::{Number, Value};
use serde_saphyr::granit_parser::{ScalarStyle, Tag};

/// A resolved scalar.
pub enum Scalar<'t> {
    /// The text itself.
    Text(Cow<'t, str>),
    /// Null, a truth value or a number.
    Other(Value),
}

impl<'t> Scalar<'t> {
    /// The scalar as a value.
    pub fn into_value(self) -> Value {
        match self {
            Scalar::Text(text) => Value::String(text.into_owned()),
            Scalar::Other(value) => value,
        }
    }

    /// The scalar as a key.
    pub fn into_key(self) -> Cow<'t, str> {
        match self {
            Scalar::Text(text) => text,
            Scalar::Other(Value::Null) => Cow::Borrowed(""),
            Scalar::Other(value) => Cow::Owned(value.to_string()),
        }
    }
}

/// Resolves a scalar.
///
/// # Errors
/// As text: a tag that is not allowed in manifests, or a number that kubectl reads differently.
pub fn resolve<'t>(text: Cow<'t, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar<'t>, String> {
    let quoted = !matches!(style, ScalarStyle::Plain);
    match tag {
        None if quoted => Ok(Scalar::Text(text)),
        None => plain(text),
        Some(tag) if tag.is_yaml_core_schema_tag("str") || (tag.handle().is_empty() && tag.suffix() == "!") => {
            Ok(Scalar::Text(text))
        }
        Some(tag) if tag.is_yaml_core_schema() => plain(text),
        Some(tag) => Err(format!("tag {}{} has no meaning in a manifest; remove it", tag.handle(), tag.suffix())),
    }
}

fn plain(text: Cow<'_, str>) -> Result<Scalar<'_>, String> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Scalar::Other(Value::Null)),
        "true" | "True" | "TRUE" => return Ok(Scalar::Other(Value::Bool(true))),
        "false" | "False" | "FALSE" => return Ok(Scalar::Other(Value::Bool(false))),
        _ => {}
    }
    let number = number(&text);
    match kubectls(&text) {
        Some(other) if number.as_ref().and_then(Number::as_i64) != Some(other) => Err(format!(
            "{text} is {other} to kubectl, which reads YAML 1.1; write {other}, or {text:?} where a text is meant"
        )),
        _ => Ok(number.map_or(Scalar::Text(text), |number| Scalar::Other(Value::Number(number)))),
    }
}

/// The integer that kubectl reads: octal after a leading zero, binary after `0b`, `_` between digits.
fn kubectls(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits = unsigned.replace('_', "");
    let prefixes = [("0b", 2), ("0o", 8), ("0x", 16), ("0", 8)];
    let with_prefix = prefixes.iter().find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, *radix)));
    let (digits, radix) = with_prefix.filter(|(rest, _)| !rest.is_empty()).unwrap_or((&digits, 10));
    // The sign was stripped above; a second one is invalid.
    let sign = if text.starts_with('-') { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().filter(|_| !digits.starts_with(['+', '-']))
}

fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix).ok().map(Number::from);
        }
    }
    let plus_free = text.strip_prefix('+').unwrap_or(text);
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let whole = plus_free.parse::<i64>().map(Number::from).or_else(|_| plus_free.parse::<u64>().map(Number::from));
        return whole.ok().or_else(|| plus_free.parse::<f64>().ok().and_then(Number::from_f64));
    }
    // Rust's `parse` accepts texts that YAML does not, such as `infinity`: allow digits, dots and exponents only.
    let is_float = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && unsigned.bytes().any(|byte| byte.is_ascii_digit());
    is_float.then(|| plus_free.parse::<f64>().ok().and_then(Number::from_f64)).flatten()
}
