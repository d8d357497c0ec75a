//! What objects are told. A vertex that is delegated to is told one line for each way that leads to it, and a summary:
//! it is valid when one of them is (delegation.md, S10).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::claims::{Claim, Claims, Vertices, lost};
use super::spec::{Fault, TlsCertificateDelegation, Vertex};
use super::tls::HostTls;
use super::walk::{Passed, Visit};
use crate::gateway::spec::CONTROLLER_NAME;
use crate::model::RouterName;
use crate::object::{Kind, ObjectKey, ObjectRef};
use crate::resources::Resources;
use crate::sites::{Row, Told};

/// Most lines of `status.parents`.
const MAX_PARENTS: usize = 32;
/// Reason of what hangs below a root that is no good itself.
const ROOT_INVALID: &str = "RootInvalid";

/// What a delegate is told whose root is invalid: nothing of why.
pub fn root_invalid() -> Fault {
    Fault::new("Orphaned", ROOT_INVALID, "the root of the delegation is invalid")
}

/// What was found out, while hosts are made.
#[derive(Debug)]
pub struct Report {
    visits: BTreeMap<ObjectRef, BTreeMap<Vec<Passed>, Visit>>,
    /// Which objects are roots of domains, by place.
    roots: BTreeMap<ObjectRef, usize>,
    domains: Vec<Domain>,
    winners: BTreeMap<ObjectRef, Vec<ObjectRef>>,
}

/// What the root of a domain is told.
#[derive(Debug, Default)]
struct Domain {
    fault: Option<Fault>,
    entries: Vec<Option<String>>,
    warnings: Vec<String>,
}

impl Report {
    /// What is known once names are decided.
    pub fn new(claims: &Claims<'_>) -> Self {
        let domains = claims.zones.iter().map(|zone| {
            let entries = zone.entries.iter().map(|entry| entry.fault.as_ref().map(|fault| fault.message.clone()));
            Domain { fault: None, entries: entries.collect(), warnings: Vec::new() }
        });
        let roots = claims.zones.iter().enumerate().filter_map(|(at, zone)| Some((zone.root?.object(), at)));
        let mut report = Report {
            visits: BTreeMap::new(),
            roots: roots.collect(),
            domains: domains.collect(),
            winners: BTreeMap::new(),
        };
        for (object, fault) in &claims.refused {
            let path = vec![Passed { object: object.clone(), via: "".into(), entry: 0 }];
            report.visits([Visit {
                object: object.clone(),
                path,
                host: "".into(),
                faults: vec![fault.clone()],
                warnings: Vec::new(),
            }]);
        }
        for zone in &claims.zones {
            let written = zone.root.into_iter().flat_map(|root| &root.subdomains);
            for (entry, written) in zone.entries.iter().zip(written) {
                let contended = |fault: &&Fault| matches!(fault.reason, "DuplicateVhost" | "HostAlreadyClaimed");
                let (Some(root), Some(fault)) = (zone.root, entry.fault.as_ref().filter(contended)) else { continue };
                let delegate = ObjectRef { kind: root.kind, key: written.delegate.clone() };
                report.visits([subdomain_visit(root, &delegate, &written.name, fault.clone())]);
            }
        }
        report
    }

    /// Notes which domains are no good.
    pub fn domains(&mut self, claims: &Claims<'_>, states: &[Result<HostTls, Fault>]) {
        for (domain, state) in self.domains.iter_mut().zip(states) {
            domain.fault = state.as_ref().err().cloned();
        }
        for (domain, zone) in self.domains.iter_mut().zip(&claims.zones) {
            for (told, entry) in domain.entries.iter_mut().zip(&zone.entries) {
                let inner =
                    entry.domain.as_ref().and_then(|name| states.get(*claims.domains.get(name)?)?.as_ref().err());
                if told.is_none() && inner.is_some() {
                    *told = Some("the delegate is invalid".to_owned());
                }
            }
        }
    }

    /// What is wrong with the vertex where a host begins; it is not served.
    pub fn fault(&mut self, claim: &Claim<'_>, fault: Fault) {
        if fault.reason != ROOT_INVALID {
            let delegate = claim.start.map(|start| start.meta.key.to_string()).unwrap_or_default();
            self.entry(claim, format!("delegate {delegate} is invalid"));
        }
        let Some(start) = claim.start else { return };
        let visit = match claim.entry {
            Some(_) => subdomain_visit(claim.root, &start.object(), &claim.name, fault),
            None => {
                let path = vec![Passed { object: start.object(), via: "".into(), entry: 0 }];
                let host = claim.name.clone();
                Visit { object: start.object(), path, host, faults: vec![fault], warnings: Vec::new() }
            }
        };
        self.visits([visit]);
    }

    /// A host that went to an object of another kind.
    pub fn lost(&mut self, claim: &Claim<'_>, winner: &ObjectRef) {
        let fault = lost(&claim.name, winner.kind);
        for object in [Some(claim.root), claim.start].into_iter().flatten().map(|vertex| vertex.object()) {
            let winners = self.winners.entry(object).or_default();
            if !winners.contains(winner) {
                winners.push(winner.clone());
            }
        }
        self.fault(claim, fault.clone());
        self.entry(claim, fault.message);
    }

    /// Why a subdomain is not served, for the root of its domain.
    pub fn entry(&mut self, claim: &Claim<'_>, problem: String) {
        let Some((zone, entry)) = claim.entry else { return };
        let told = self.domains.get_mut(zone).and_then(|domain| domain.entries.get_mut(entry));
        told.into_iter().for_each(|told| *told = Some(problem.clone()));
    }

    /// Something odd about a subdomain's own certificate, for its delegate.
    pub fn warn_delegate(&mut self, claim: &Claim<'_>, warning: String) {
        let Some(start) = claim.start else { return };
        let mut visit = subdomain_visit(claim.root, &start.object(), &claim.name, root_invalid());
        visit.faults.clear();
        visit.warnings.push(warning);
        self.visits([visit]);
    }

    /// Something odd about a domain's certificate, for whoever names it: a domain inside of it inherits it too.
    pub fn warn_domain(&mut self, claims: &Claims<'_>, claim: &Claim<'_>, warning: String) {
        let mut at = claim.entry.map(|(zone, _)| zone);
        while let Some(zone) = at.and_then(|at| claims.zones.get(at)) {
            let names_it =
                zone.root.is_some_and(|root| root.virtual_host.as_ref().is_some_and(|own| own.tls.is_some()));
            if names_it {
                let domain = at.and_then(|at| self.domains.get_mut(at));
                domain.into_iter().for_each(|domain| domain.warnings.push(warning.clone()));
                return;
            }
            at = zone.parent;
        }
    }

    /// What was found on the way; what is said of the same way twice is put together.
    pub fn visits(&mut self, visits: impl IntoIterator<Item = Visit>) {
        for visit in visits {
            let known = self.visits.entry(visit.object.clone()).or_default();
            match known.get_mut(&visit.path) {
                Some(known) => {
                    known.faults.extend(visit.faults);
                    known.warnings.extend(visit.warnings);
                }
                None => drop(known.insert(visit.path.clone(), visit)),
            }
        }
    }

    /// What every object is told.
    pub fn told(
        &self,
        vertices: &Vertices<'_>,
        claims: &Claims<'_>,
        router: Option<&RouterName>,
    ) -> BTreeMap<ObjectRef, Told> {
        vertices.iter().map(|(object, vertex)| (object.clone(), self.told_to(object, vertex, claims, router))).collect()
    }

    fn told_to(&self, object: &ObjectRef, vertex: &Vertex, claims: &Claims<'_>, router: Option<&RouterName>) -> Told {
        let router = router.map(ToString::to_string).unwrap_or_default();
        let zone = self.roots.get(object);
        if let Some((zone, domain)) = zone.and_then(|at| Some((claims.zones.get(*at)?, self.domains.get(*at)?))) {
            let verdict = domain.verdict(&vertex.subdomains.iter().map(|entry| &*entry.name).collect::<Vec<_>>());
            let served = zone.entries.iter().zip(&domain.entries).filter(|(_, problem)| problem.is_none());
            let row = Row {
                parent: router,
                hosts: served.filter_map(|(entry, _)| Some(entry.host.as_ref()?.to_string())).collect(),
                admitted: verdict.state == State::Valid,
                reason: verdict.state.reason().to_owned(),
                message: verdict.description.clone(),
                winners: self.winners.get(object).cloned().unwrap_or_default(),
            };
            return Told { status: status(vertex, &verdict, &[]), rows: vec![row] };
        }
        let visits: Vec<&Visit> = self.visits.get(object).into_iter().flat_map(BTreeMap::values).collect();
        let verdicts: Vec<Verdict> = visits.iter().map(|visit| Verdict::of_visit(vertex.kind, visit)).collect();
        let rows = visits.iter().zip(&verdicts).map(|(visit, verdict)| Row {
            parent: visit.parent().map_or_else(|| router.clone(), |(parent, _)| parent.to_string()),
            hosts: Some(visit.host.to_string()).filter(|host| !host.is_empty()).into_iter().collect(),
            admitted: verdict.state == State::Valid,
            reason: verdict.state.reason().to_owned(),
            message: verdict.description.clone(),
            winners: self.winners.get(object).cloned().unwrap_or_default(),
        });
        let mut rows: Vec<Row> = rows.collect();
        let verdict = summary(vertex.kind, verdicts.as_slice());
        if rows.is_empty() {
            let (reason, message) = (verdict.state.reason().to_owned(), verdict.description.clone());
            rows.push(Row { parent: router, reason, message, ..Row::default() });
        }
        let lines: Vec<(&Visit, &Verdict)> = visits.iter().copied().zip(&verdicts).collect();
        Told { status: status(vertex, &verdict, &lines), rows }
    }
}

fn subdomain_visit(root: &Vertex, delegate: &ObjectRef, name: &std::sync::Arc<str>, fault: Fault) -> Visit {
    let path = vec![
        Passed { object: root.object(), via: "".into(), entry: 0 },
        Passed { object: delegate.clone(), via: name.clone(), entry: 0 },
    ];
    Visit { object: delegate.clone(), path, host: name.clone(), faults: vec![fault], warnings: Vec::new() }
}

impl Visit {
    /// The vertex before this one, and what of it led here.
    fn parent(&self) -> Option<(&ObjectRef, &str)> {
        let [.., parent, own] = &*self.path else { return None };
        Some((&parent.object, &own.via))
    }
}

/// `currentStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Valid,
    Invalid,
    Orphaned,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            State::Valid => "valid",
            State::Invalid => "invalid",
            State::Orphaned => "orphaned",
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            State::Valid => "Valid",
            State::Invalid => "Invalid",
            State::Orphaned => "Orphaned",
        }
    }
}

/// What an object is told, altogether or of one way.
#[derive(Clone, Debug)]
struct Verdict {
    state: State,
    description: String,
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

impl Verdict {
    fn of_visit(kind: Kind, visit: &Visit) -> Self {
        let state = match &*visit.faults {
            [] => State::Valid,
            faults if faults.iter().all(|fault| fault.reason == ROOT_INVALID) => State::Orphaned,
            _ => State::Invalid,
        };
        let mut description = match visit.faults.first() {
            None => format!("valid {kind}"),
            Some(fault) => fault.message.clone(),
        };
        for warning in &visit.warnings {
            description.push_str(&format!("; {warning}"));
        }
        Verdict { state, description, faults: visit.faults.clone(), warnings: visit.warnings.clone() }
    }
}

impl Domain {
    /// What the root is told: valid when one of its subdomains is.
    fn verdict(&self, names: &[&str]) -> Verdict {
        if let Some(fault) = &self.fault {
            let state = if fault.reason == ROOT_INVALID { State::Orphaned } else { State::Invalid };
            let (description, faults) = (fault.message.clone(), vec![fault.clone()]);
            return Verdict { state, description, faults, warnings: Vec::new() };
        }
        let valid = self.entries.iter().filter(|problem| problem.is_none()).count();
        let count = format!("{valid} of {} subdomains", self.entries.len());
        let (state, mut description) = match valid {
            0 => (State::Invalid, format!("no valid subdomain ({count})")),
            _ => (State::Valid, format!("valid {} ({count})", Kind::IngressRoute)),
        };
        for (name, problem) in names.iter().zip(&self.entries) {
            let Some(problem) = problem else { continue };
            // Most problems name the subdomain already.
            let name = if problem.contains(name) { String::new() } else { format!("{name}: ") };
            description.push_str(&format!("; {name}{problem}"));
        }
        for warning in &self.warnings {
            description.push_str(&format!("; {warning}"));
        }
        Verdict { state, description, faults: Vec::new(), warnings: self.warnings.clone() }
    }
}

/// What the lines of all ways come to.
fn summary(kind: Kind, verdicts: &[Verdict]) -> Verdict {
    let orphaned = || {
        let root = if kind == Kind::IngressRoute { "IngressRoute" } else { "HTTPProxy" };
        let message = format!("this {root} is not part of a delegation chain from a root {root}");
        let faults = vec![Fault::new("Orphaned", "Orphaned", message.clone())];
        Verdict { state: State::Orphaned, description: message, faults, warnings: Vec::new() }
    };
    let valid = verdicts.iter().filter(|verdict| verdict.state == State::Valid).count();
    if let Some(first) = verdicts.iter().find(|verdict| verdict.state == State::Valid) {
        let mut whole = first.clone();
        if valid < verdicts.len() {
            whole.description = format!("valid {kind} ({valid} of {} paths)", verdicts.len());
            let failed = verdicts.iter().flat_map(|verdict| &verdict.faults);
            whole.warnings.extend(failed.map(|fault| fault.message.clone()));
        }
        return whole;
    }
    match verdicts.iter().find(|verdict| verdict.state == State::Invalid) {
        None => orphaned(),
        Some(first) => {
            let mut whole = first.clone();
            let all = verdicts.iter().flat_map(|verdict| &verdict.faults).filter(|fault| fault.reason != ROOT_INVALID);
            whole.faults = all.fold(Vec::new(), |mut known, fault| {
                if !known.contains(fault) {
                    known.push(fault.clone());
                }
                known
            });
            whole
        }
    }
}

/// `status`, as the API writes it, with Sluice's `parents` for what is delegated to.
fn status(vertex: &Vertex, verdict: &Verdict, lines: &[(&Visit, &Verdict)]) -> Value {
    let mut status = Map::new();
    let is_proxy = vertex.kind == Kind::HttpProxy;
    let description = match verdict.state {
        State::Invalid if is_proxy => "At least one error present, see Errors for details".to_owned(),
        State::Valid if is_proxy => verdict.description.replacen("valid", "Valid", 1),
        _ => verdict.description.clone(),
    };
    status.insert("currentStatus".to_owned(), json!(verdict.state.as_str()));
    status.insert("description".to_owned(), json!(description));
    if is_proxy {
        status.insert("conditions".to_owned(), json!([condition(vertex, verdict, &description)]));
    }
    let rows: Vec<Value> = lines.iter().filter_map(|(visit, verdict)| parent(visit, verdict)).collect();
    if !rows.is_empty() {
        let more = rows.len().saturating_sub(MAX_PARENTS);
        let mut rows: Vec<Value> = rows.into_iter().take(MAX_PARENTS).collect();
        if let Some(Value::Object(last)) = rows.last_mut().filter(|_| more > 0) {
            let text = last.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            last.insert("description".to_owned(), json!(format!("{text} (and {more} more paths)")));
        }
        status.insert("parents".to_owned(), Value::Array(rows));
    }
    Value::Object(status)
}

/// One way to a vertex: from where, for which host, and what came of it.
fn parent(visit: &Visit, verdict: &Verdict) -> Option<Value> {
    let (parent, via) = visit.parent()?;
    let group = parent.kind.api_version().split('/').next().unwrap_or_default();
    let path = visit.path.iter().map(|passed| match &*passed.via {
        "" => passed.object.key.to_string(),
        via => format!("{via} -> {}", passed.object.key),
    });
    let mut reference = json!({
        "group": group,
        "kind": parent.kind.name(),
        "namespace": &*parent.key.namespace,
        "name": &*parent.key.name,
    });
    if !via.is_empty() {
        reference["sectionName"] = json!(via);
    }
    Some(json!({
        "parentRef": reference,
        "controllerName": CONTROLLER_NAME,
        "fqdn": &*visit.host,
        "path": path.collect::<Vec<_>>().join(" "),
        "currentStatus": verdict.state.as_str(),
        "description": verdict.description,
    }))
}

/// An HTTPProxy's condition `Valid`.
fn condition(vertex: &Vertex, verdict: &Verdict, message: &str) -> Value {
    let is_valid = verdict.state == State::Valid;
    let reason = match verdict.state {
        State::Valid => "Valid",
        State::Orphaned => "Orphaned",
        State::Invalid => "ErrorPresent",
    };
    let mut condition = json!({
        "type": "Valid",
        "status": if is_valid { "True" } else { "False" },
        "reason": reason,
        "message": message,
        "observedGeneration": vertex.meta.generation,
    });
    if !is_valid {
        let errors = verdict.faults.iter().map(
            |fault| json!({ "type": fault.kind, "status": "True", "reason": fault.reason, "message": fault.message }),
        );
        condition["errors"] = errors.collect();
    } else if !verdict.warnings.is_empty() {
        let warnings = verdict.warnings.iter().map(|warning| {
            json!({ "type": "PathWarning", "status": "True", "reason": "PartiallyValid", "message": warning })
        });
        condition["warnings"] = warnings.collect();
    }
    condition
}

/// What a TLSCertificateDelegation is told.
pub fn certificate_delegation(object: &TlsCertificateDelegation, resources: &Resources) -> Told {
    let mut problems = Vec::new();
    for (at, (secret, targets)) in object.delegations.iter().enumerate() {
        let key = ObjectKey { namespace: object.meta.key.namespace.clone(), name: secret.clone() };
        if targets.is_empty() {
            problems.push(format!("delegations[{at}]: targetNamespaces is empty, so nobody may use the Secret"));
        } else if resources.secrets.get(&key).is_none_or(|secret| secret.pair.is_none()) {
            problems.push(format!("delegations[{at}]: TLS Secret [{secret}] not found or is malformed"));
        }
    }
    let is_valid = problems.is_empty();
    let message = if is_valid { "Valid TLSCertificateDelegation".to_owned() } else { problems.join("; ") };
    let condition = json!({
        "type": "Valid",
        "status": if is_valid { "True" } else { "False" },
        "reason": if is_valid { "Valid" } else { "ErrorPresent" },
        "message": &message,
        "observedGeneration": object.meta.generation,
    });
    let reason = if is_valid { State::Valid } else { State::Invalid }.reason().to_owned();
    let row = Row { admitted: is_valid, reason, message, ..Row::default() };
    Told { status: json!({ "conditions": [condition] }), rows: vec![row] }
}
