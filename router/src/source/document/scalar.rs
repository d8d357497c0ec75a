//! What a scalar means: the core schema of YAML 1.2 (10.3.2).

use serde_json::{Number, Value};
use serde_saphyr::granit_parser::{ScalarStyle, Tag};

/// Reads a scalar.
///
/// # Errors
/// A tag that manifests cannot have, in words.
pub fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let quoted = !matches!(style, ScalarStyle::Plain);
    match tag {
        None if quoted => Ok(Value::String(text.to_owned())),
        None => Ok(plain(text)),
        Some(tag) if tag.is_yaml_core_schema_tag("str") || (tag.handle().is_empty() && tag.suffix() == "!") => {
            Ok(Value::String(text.to_owned()))
        }
        Some(tag) if tag.is_yaml_core_schema() => Ok(plain(text)),
        Some(tag) => Err(format!("tag {}{} has no meaning in a manifest; remove it", tag.handle(), tag.suffix())),
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
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
    // Rust reads more than YAML writes (`1_000` it does not, `infinity` it does): digits, one dot, an exponent.
    let is_float = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && unsigned.bytes().any(|byte| byte.is_ascii_digit());
    is_float.then(|| plus_free.parse::<f64>().ok().and_then(Number::from_f64)).flatten()
}
