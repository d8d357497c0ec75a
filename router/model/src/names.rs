//! Validated types of names, hosts and paths.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use router_common::hostname::{self, HostBuilder, HostError, HostKind, NormalName};

use crate::kind::Kind;
use crate::object::{Interner, ObjectKey, ObjectRef, compare};

/// Identifies a route in every later stage: a Route, or one part of an object of another kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteId {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The object's kind.
    pub kind: Kind,
    /// Index of the part within its object; 0 for a Route.
    pub part: u32,
}

impl Ord for RouteId {
    /// By namespace, then by name, kind and part.
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = || (self.kind, self.part).cmp(&(other.kind, other.part));
        compare((&self.namespace, &self.name), (&other.namespace, &other.name)).then_with(parts)
    }
}

impl PartialOrd for RouteId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ObjectKey {
    /// The same key as a Route's id.
    pub fn route_id(&self) -> RouteId {
        RouteId::of_route(self.namespace.clone(), self.name.clone())
    }
}

impl RouteId {
    /// The id of a Route.
    pub fn of_route(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        RouteId { namespace: namespace.into(), name: name.into(), kind: Kind::Route, part: 0 }
    }

    /// Parses the `Display` form.
    pub fn parse(text: &str) -> Option<Self> {
        let id = |kind, object: &str, part| {
            let (namespace, name) = object.split_once('/')?;
            Some(RouteId { namespace: namespace.into(), name: name.into(), kind, part })
        };
        let Some((kind, rest)) = text.split_once(':') else { return id(Kind::Route, text, 0) };
        let kind = Kind::ALL.into_iter().find(|known| known.name() == kind && *known != Kind::Route)?;
        let (object, part) = rest.rsplit_once(':')?;
        id(kind, object, part.parse().ok()?)
    }

    /// The object's key among those of its kind.
    pub fn object_key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The object.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: self.kind, key: self.object_key() }
    }
}

impl fmt::Display for RouteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RouteId { namespace, name, kind, part } = self;
        match kind {
            Kind::Route => write!(f, "{namespace}/{name}"),
            _ => write!(f, "{kind}:{namespace}/{name}:{part}"),
        }
    }
}

/// Name of a router, which is its IngressController's; `status.ingress[].routerName`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouterName(pub Arc<str>);

impl Ord for RouterName {
    /// By name. Most names compared are the same text.
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for RouterName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RouterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A DNS host name in normal form (see `router_common::hostname`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hostname(Arc<str>);

impl From<NormalName<'_>> for Hostname {
    fn from(name: NormalName<'_>) -> Self {
        Hostname(name.as_str().into())
    }
}

impl Hostname {
    /// Parses a name from a route, an SNI or a certificate.
    ///
    /// # Errors
    /// The text is not a host name; IP literals are `BadByte`, because routes cannot have them.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        Self::share(&text.into())
    }

    /// As [`Hostname::parse`]; reuses the text if it is already in normal form.
    ///
    /// # Errors
    /// As [`Hostname::parse`].
    pub fn share(text: &Arc<str>) -> Result<Self, HostError> {
        let (builder, kind) = hostname::normalise(text.as_bytes())?;
        let normal = hostname::field_text(&builder.exact);
        match kind {
            HostKind::Name if *normal == **text => Ok(Hostname(Arc::clone(text))),
            HostKind::Name => Ok(Hostname(normal.into())),
            HostKind::IpLiteral => Err(HostError::BadByte),
        }
    }

    /// The normalised name; `None` for an IP literal.
    pub fn of(builder: &HostBuilder, kind: HostKind) -> Option<Self> {
        (kind == HostKind::Name).then(|| Hostname(hostname::field_text(&builder.exact).into()))
    }

    /// The shared text of the name.
    pub fn text(&self) -> &Arc<str> {
        &self.0
    }

    /// The name, lower-case, without a trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after the first dot, whose wildcard covers this name; `None` for a single label.
    pub fn parent(&self) -> Option<&str> {
        self.0.split_once('.').map(|(_, parent)| parent)
    }

    /// The domains that this name is in, the narrowest first.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(self.parent(), |domain| domain.split_once('.').map(|(_, parent)| parent))
    }

    /// The labels from the last to the first, each followed by a dot, e.g. `test.example.www.`: that of a domain is a
    /// prefix of those of the names in it, and no prefix of others.
    pub fn reversed(&self) -> String {
        let mut text = String::with_capacity(self.0.len() + 1);
        self.0.rsplit('.').flat_map(|label| [label, "."]).for_each(|part| text.push_str(part));
        text
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Hostname {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The hosts that an admitted route serves on one router.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostMatch {
    /// This name only.
    Exact(Hostname),
    /// Exactly one label below this domain (`wildcardPolicy: Subdomain`).
    Wildcard(Hostname),
    /// One or more labels below this domain (Gateway API's `*.`).
    Suffix(Hostname),
    /// Every name.
    Any,
}

impl HostMatch {
    /// Whether it matches this name.
    pub fn covers(&self, name: &Hostname) -> bool {
        match self {
            HostMatch::Exact(own) => own == name,
            HostMatch::Wildcard(domain) => name.parent() == Some(domain.as_str()),
            HostMatch::Suffix(domain) => name
                .as_str()
                .strip_suffix(domain.as_str())
                .is_some_and(|labels| labels.len() > 1 && labels.ends_with('.')),
            HostMatch::Any => true,
        }
    }
}

impl fmt::Display for HostMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostMatch::Exact(host) => write!(f, "{host}"),
            HostMatch::Wildcard(domain) | HostMatch::Suffix(domain) => write!(f, "*.{domain}"),
            HostMatch::Any => f.write_str("*"),
        }
    }
}

/// A route's `spec.path`: empty (every path) or `/…`, a prefix on segment boundaries, compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathMatch(Arc<str>);

impl PathMatch {
    /// Every path.
    pub fn any() -> Self {
        PathMatch(Arc::default())
    }

    /// Parses `spec.path`; `None` unless it is empty, or begins with `/` and has neither `#` nor a space.
    pub fn parse(text: &str) -> Option<Self> {
        let good = text.is_empty() || (text.starts_with('/') && !text.contains(['#', ' ']));
        good.then(|| PathMatch(text.into()))
    }

    /// Shares the text with equal paths.
    pub fn share(&mut self, texts: &mut Interner) {
        texts.share(&mut self.0);
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this prefix matches a request path (without query), on a segment boundary.
    /// `/foo` covers `/foo` and `/foo/x`, not `/foobar`; `/foo/` does not cover `/foo` (docs/openshift.md#matching).
    pub fn covers(&self, path: &str) -> bool {
        match path.strip_prefix(self.as_str()) {
            Some(rest) => rest.is_empty() || self.0.is_empty() || self.0.ends_with('/') || rest.starts_with('/'),
            None => false,
        }
    }
}

impl fmt::Display for PathMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
