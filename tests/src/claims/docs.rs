//! Claims of the documentation: the names of its lines, from the structure of its Markdown.
//!
//! In the relevant sections, each row of a table is a claim for each name in code in its first cell, or for the cell's
//! text if there is none; each item of a list is a claim, named by its leading bold words. If sections of a document
//! share names, the section's name precedes them: `HTTPProxy retryPolicy`.

use anyhow::{Context, Result, bail};

/// A document and its sections with claims.
pub struct Document {
    /// The folder of its stories.
    pub api: &'static str,
    /// Its path in the workspace.
    pub path: &'static str,
    /// Headings of the relevant sections.
    pub sections: &'static [&'static str],
    /// Tables with these first headings have names in every column; names of further columns are prefixed with the
    /// first word of the column's heading.
    pub wide: &'static [&'static str],
    /// Whether names are prefixed with the section's name.
    pub is_qualified: bool,
}

/// All documents.
pub const DOCUMENTS: &[Document] = &[
    Document {
        api: "openshift",
        path: "docs/openshift.md",
        sections: &[
            "Hosts",
            "Annotations of Routes",
            "Fields of Routes",
            "Fields of IngressControllers",
            "Services and endpoints",
        ],
        wide: &[],
        is_qualified: false,
    },
    Document {
        api: "gateway-api",
        path: "docs/gateway-api.md",
        sections: &["Where listeners live", "Which rule serves", "What holds"],
        wide: &[],
        is_qualified: false,
    },
    Document {
        api: "contour",
        path: "docs/contour.md",
        sections: &["Which objects", "Subdomain delegation", "Hosts", "IngressRoute", "HTTPProxy", "Status"],
        wide: &["supported"],
        is_qualified: true,
    },
];

/// The claims of a text, in order, each once.
///
/// # Errors
/// When an item of a list has no name.
pub fn claims(document: &Document, text: &str) -> Result<Vec<String>> {
    let mut claims: Vec<String> = Vec::new();
    let mut add = |section: &str, column: &str, claim: &str| {
        let section = if document.is_qualified { section } else { "" };
        let claim = [section, column, claim].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    };
    let (mut section, mut in_code) = ("", false);
    // The table of the current line: for each relevant column, the prefix of its names.
    let mut table: Option<Vec<&str>> = None;
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", document.path, number + 1);
        if line.starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            section = document.sections.iter().find(|section| **section == heading).copied().unwrap_or_default();
            continue;
        }
        if !line.starts_with('|') {
            table = None;
        }
        if section.is_empty() {
            continue;
        }
        if line.starts_with('|') {
            let cells: Vec<&str> =
                line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
            let first = cells.first().copied().unwrap_or_default();
            let Some(columns) = &table else {
                let further = cells.iter().skip(1).take(if document.wide.contains(&first) { cells.len() } else { 0 });
                let further = further.map(|heading| heading.split([',', ' ']).next().unwrap_or_default());
                table = Some(std::iter::once("").chain(further).collect());
                continue;
            };
            if first.starts_with("--") {
                continue;
            }
            for (cell, column) in cells.iter().zip(columns) {
                names(cell).with_context(place)?.into_iter().for_each(|name| add(section, column, name));
            }
        } else if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            let name = item.strip_prefix("**").and_then(|rest| rest.split_once("**"));
            let Some((name, _)) = name else {
                bail!("{}: the item has no name for its story; begin it with one, `**name**: …`", place());
            };
            add(section, "", name.trim_end_matches([':', '.']));
        }
    }
    Ok(claims)
}

/// The names in the code of a cell, or its text.
fn names(cell: &str) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = cell;
    while let Some((_, after)) = rest.split_once('`') {
        let (name, after) = after.split_once('`').context("a ` has no second one")?;
        names.push(name);
        rest = after;
    }
    if names.is_empty() && !cell.is_empty() {
        names.push(cell);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: Document =
        Document { api: "a", path: "a.md", sections: &["Done", "More"], wide: &["done"], is_qualified: false };

    #[test]
    fn rows_and_items_of_the_sections_that_count_are_claims() {
        let text = "# Title\n- not counted\n\n## Done\n\n| field | what |\n|---|---|\n| `a`, `b` | `c` |\n| some words | x |\n\
                    - **An item**: text\n  goes on with `d`\n\n| done | refused |\n|---|---|\n| `e` and `a` | `f` |\n\n\
                    ### Below\n- not counted either\n```\n| no | table |\n```\n## More\n* **Last.** It is.\n";
        assert_eq!(claims(&DOCUMENT, text).unwrap(), ["a", "b", "some words", "An item", "e", "refused f", "Last"]);
        let qualified = Document { is_qualified: true, sections: &["More"], ..DOCUMENT };
        assert_eq!(claims(&qualified, text).unwrap(), ["More Last"]);
    }

    #[test]
    fn an_item_without_a_name_is_reported_with_its_line() {
        let error = claims(&DOCUMENT, "## Done\n- **Named**: x\n- nothing\n").unwrap_err();
        assert!(error.to_string().starts_with("a.md:3: the item has no name"), "{error}");
    }
}
