//! Path rewrites of rules (Gateway API, HTTPPathModifier).

use http::Uri;
use http::uri::PathAndQuery;

/// The URI with another path and the same query; `None` if it is not valid.
pub fn rewritten(uri: &Uri, path: String) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(with_query(path, uri)).ok()?);
    Uri::from_parts(parts).ok()
}

fn with_query(mut path: String, uri: &Uri) -> String {
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    path
}

#[cfg(test)]
mod tests;
