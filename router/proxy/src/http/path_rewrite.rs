//! Paths that rules change (Gateway API: HTTPPathModifier).

use http::Uri;
use http::uri::PathAndQuery;

/// The URI with its path changed; the query stays. `None` when no URI comes of it.
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
