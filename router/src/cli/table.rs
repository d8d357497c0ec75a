//! Prints lists as tables.

use serde_json::Value;

/// Prints rows of JSON objects under headings; `columns` are heading and JSON pointer. A missing value is `-`.
pub fn print(rows: &[Value], columns: &[(&str, &str)]) {
    print!("{}", render(rows, columns));
}

fn render(rows: &[Value], columns: &[(&str, &str)]) -> String {
    let headings: Vec<String> = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(headings)
        .chain(rows.iter().map(|row| columns.iter().map(|(_, pointer)| cell(row.pointer(pointer))).collect()))
        .collect();
    let width =
        |column: usize| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("   ").trim_end());
        text.push('\n');
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| cell(Some(item))).collect::<Vec<_>>().join(","),
        Some(Value::Object(members)) => members.values().map(|v| cell(Some(v))).collect::<Vec<_>>().join(":"),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_line_up_and_missing_values_are_dashes() {
        let rows = [json!({"a": "long value", "b": 1}), json!({"a": "", "c": [{"n": "x", "w": 2}, "y"]})];
        let text = render(&rows, &[("A", "/a"), ("B", "/b"), ("C", "/c")]);
        assert_eq!(text, "A            B   C\nlong value   1   -\n-            -   x:2,y\n");
    }
}
