//! What a request asks for: its path and query.

use std::sync::Arc;

use http::{Method, StatusCode, Uri};

use super::kind::Kind;
use super::object::Key;
use super::status::Failure;
use super::store::Store;

/// What is asked of a kind. Lists and watches are told apart as the server's access rules do (authorization.k8s.io).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One object.
    Get,
    /// A list, whole or in pages.
    List,
    /// A watch that begins with the objects that are there (`sendInitialEvents`).
    StreamingList,
    /// A watch from a version.
    Watch,
    /// A new object.
    Create,
    /// A whole object instead of the present one.
    Replace,
    /// A change of an object.
    Patch,
    /// The end of an object.
    Delete,
}

/// A request of a kind.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked.
    pub verb: Verb,
    /// The kind.
    pub kind: Arc<Kind>,
    /// Version of the kind.
    pub version: String,
    /// One namespace, or all of them.
    pub namespace: Option<String>,
    /// The object, unless it is about many or a new one.
    pub name: Option<String>,
    /// Part of the object, such as `status`.
    pub subresource: Option<String>,
    /// Parameters of the query.
    pub query: Query,
}

/// Parameters of a query, without escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// The parameters of a URI.
    pub fn of(uri: &Uri) -> Query {
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Query(pairs.map(pair).collect())
    }

    /// A parameter; empty if it is not there.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// Whether a parameter is true (strconv.ParseBool).
    pub fn is_set(&self, name: &str) -> bool {
        ["true", "True", "TRUE", "t", "T", "1"].contains(&self.get(name))
    }

    /// A number.
    ///
    /// # Errors
    /// When it is there and is no number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let text = self.get(name);
        let invalid = |_| Failure::new(StatusCode::BAD_REQUEST, format!("{name}: Invalid value: {text:?}"));
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(invalid) }
    }
}

impl Call {
    /// What a request asks of a kind; `None` if its path is none of a served kind.
    ///
    /// # Errors
    /// When the method does not fit the path.
    pub fn parse(store: &Store, method: &Method, uri: &Uri) -> Result<Option<Call>, Failure> {
        let parts: Vec<String> = uri.path().split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts[..] {
            ["api", version, ref rest @ ..] => ("", version, rest),
            ["apis", group, version, ref rest @ ..] => (group, version, rest),
            _ => return Ok(None),
        };
        let (namespace, rest) = match rest {
            // A namespace itself is an object without one.
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() && rest != ["status"] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match *rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return Ok(None),
        };
        let Some(kind) = store.kind(group, version, plural) else { return Ok(None) };
        let is_object = name.is_some();
        if subresource.is_some_and(|it| it != "status" || !kind.has_status)
            || (namespace.is_some() && !kind.is_namespaced)
            || (is_object && namespace.is_none() && kind.is_namespaced)
        {
            return Ok(None);
        }
        let query = Query::of(uri);
        let verb = match (method, is_object) {
            (&Method::GET, false) if query.is_set("watch") => {
                if query.is_set("sendInitialEvents") {
                    Verb::StreamingList
                } else {
                    Verb::Watch
                }
            }
            (&Method::GET, false) => Verb::List,
            (&Method::GET, true) => Verb::Get,
            (&Method::POST, false) if namespace.is_some() == kind.is_namespaced => Verb::Create,
            (&Method::PUT, true) => Verb::Replace,
            (&Method::PATCH, true) => Verb::Patch,
            (&Method::DELETE, _) if subresource.is_none() => Verb::Delete,
            _ => {
                let message = "the server does not allow this method on the requested resource";
                return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, message));
            }
        };
        Ok(Some(Call {
            verb,
            kind: Arc::clone(kind),
            version: version.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            query,
        }))
    }

    /// The object's key.
    pub fn key(&self) -> Key {
        (self.namespace.clone().unwrap_or_default(), self.name.clone().unwrap_or_default())
    }
}

/// A text without `%` escapes (RFC 3986, section 2.1) and with `+` as a space, as in forms.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = || {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        (rest, _) = match (first, escaped()) {
            (b'%', Some(byte)) => (&after[2..], bytes.push(byte)),
            (b'+', _) => (after, bytes.push(b' ')),
            (byte, _) => (after, bytes.push(*byte)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: Method, uri: &str) -> Result<Option<Call>, Failure> {
        Call::parse(&Store::new(1), &method, &uri.parse().unwrap_or_default())
    }

    #[test]
    fn paths_and_methods_are_calls() -> Result<(), Failure> {
        let pods = "/api/v1/namespaces/a/pods";
        let table = [
            (Method::GET, "/api/v1/pods".to_owned(), Verb::List, None, None, None),
            (Method::GET, format!("{pods}?watch=1&resourceVersion=7"), Verb::Watch, Some("a"), None, None),
            (
                Method::GET,
                format!("{pods}?watch=true&sendInitialEvents=true"),
                Verb::StreamingList,
                Some("a"),
                None,
                None,
            ),
            (Method::GET, format!("{pods}/p"), Verb::Get, Some("a"), Some("p"), None),
            (Method::POST, pods.to_owned(), Verb::Create, Some("a"), None, None),
            (Method::PUT, format!("{pods}/p"), Verb::Replace, Some("a"), Some("p"), None),
            (Method::PATCH, format!("{pods}/p/status"), Verb::Patch, Some("a"), Some("p"), Some("status")),
            (Method::DELETE, format!("{pods}/p"), Verb::Delete, Some("a"), Some("p"), None),
            (Method::GET, "/api/v1/namespaces".to_owned(), Verb::List, None, None, None),
            (Method::GET, "/api/v1/namespaces/a".to_owned(), Verb::Get, None, Some("a"), None),
            (Method::PATCH, "/api/v1/namespaces/a/status".to_owned(), Verb::Patch, None, Some("a"), Some("status")),
            (Method::GET, "/apis/apps/v1/namespaces/a%2Db/daemonsets".to_owned(), Verb::List, Some("a-b"), None, None),
        ];
        for (method, path, verb, namespace, name, subresource) in table {
            let call = parsed(method, &path)?.ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, path.clone()))?;
            assert_eq!(call.verb, verb, "{path}");
            let found = (call.namespace.as_deref(), call.name.as_deref(), call.subresource.as_deref());
            assert_eq!(found, (namespace, name, subresource), "{path}");
        }
        for path in
            ["/", "/api/v1", "/api/v2/pods", "/api/v1/pods/p", "/apis/none/v1/pods", "/api/v1/namespaces/a/nodes"]
        {
            assert!(parsed(Method::GET, path)?.is_none(), "{path}");
        }
        assert!(parsed(Method::POST, "/api/v1/pods").is_err());
        assert!(parsed(Method::PUT, pods).is_err());
        Ok(())
    }

    #[test]
    fn parameters_are_without_escapes() -> Result<(), Failure> {
        let query =
            Query::of(&"/?fieldSelector=metadata.name%3Da&limit=5&watch=1&a=b+c%zz".parse().unwrap_or_default());
        assert_eq!((query.get("fieldSelector"), query.get("a"), query.get("none")), ("metadata.name=a", "b c%zz", ""));
        assert_eq!((query.number("limit")?, query.number("none")?), (Some(5), None));
        assert!(query.number("a").is_err());
        assert!(query.is_set("watch") && !query.is_set("limit"));
        Ok(())
    }
}
