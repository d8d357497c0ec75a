//! What objects of Gateway API are told.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::attach::{Attached, Parent};
use super::conditions::conditions;
use super::hosts::ListenerAt;
use super::inclusion::{IncludedRow, RowParent, listener_reference};
use super::spec::{CONTROLLER_NAME, GROUP, GatewayRoute, HostPattern};
use super::worth::Worth;
use super::{Gate, Model};
use crate::object::{Kind, ObjectKey, ObjectRef};
use crate::sites::{Lost, Row, Told};
use crate::status::Condition;

/// One row of a route.
struct Line {
    parent: Value,
    accepted: Condition,
    members: Vec<(&'static str, Value)>,
    row: Row,
}

/// Routes that listeners count.
type Counts = HashMap<ListenerAt, BTreeSet<ObjectRef>>;

impl Model<'_> {
    /// What everybody is told when these hosts went to other kinds.
    pub(super) fn statuses(&self, lost: &Lost) -> BTreeMap<ObjectRef, Told> {
        let mut statuses = self.classes.told.clone();
        statuses.extend(self.policies.clone());
        let mut counts = Counts::new();
        let mut lines: BTreeMap<ObjectRef, BTreeMap<PlaceKey, Line>> = BTreeMap::new();
        for attached in &self.attached {
            let object = attached.route.object();
            let written = attached.route.manifest.value();
            for parent in &attached.parents {
                let line = self.line(attached, parent, &written, lost);
                if line.accepted.holds {
                    for hook in &parent.hooks {
                        counts.entry((parent.gate, hook.listener)).or_default().insert(object.clone());
                    }
                }
                lines.entry(object.clone()).or_default().insert(PlaceKey::direct(parent.index), line);
            }
        }
        for (object, fragment) in &self.expanded.told {
            if let Some(slot) = &fragment.slot {
                statuses.insert(object.clone(), Told { status: slot.clone(), rows: Vec::new() });
            }
            let Some(route) = self.around.resources.gateway_route(object) else { continue };
            let written = route.manifest.value();
            let of_route = lines.entry(object.clone()).or_default();
            for (index, inclusions) in &fragment.inclusions {
                if let Some(line) = of_route.get_mut(&PlaceKey::direct(*index)) {
                    line.members.push(("inclusions", inclusions.clone()));
                }
            }
            for (nth, row) in fragment.rows.iter().enumerate() {
                let (key, line) = self.included_line(route, row, nth, &written, lost);
                of_route.entry(key).or_insert(line);
            }
        }
        for (object, lines) in lines {
            let route = self.around.resources.gateway_route(&object);
            if let Some((route, worth)) = route.zip(self.worth.get(&object)) {
                statuses.insert(object, told(route, worth, lines));
            }
        }
        for (i, gate) in self.gates.iter().enumerate() {
            let object = ObjectRef { kind: Kind::Gateway, key: gate.gateway.meta.key.clone() };
            statuses.insert(object, self.gateway(i, gate, &counts, lost));
        }
        statuses
    }

    /// The row of a Gateway that the route names.
    fn line(&self, attached: &Attached<'_>, parent: &Parent, written: &Value, lost: &Lost) -> Line {
        let route = attached.route;
        let hosts: BTreeSet<(ListenerAt, &HostPattern)> = parent
            .hooks
            .iter()
            .flat_map(|hook| hook.hosts.iter().map(move |host| ((parent.gate, hook.listener), host)))
            .collect();
        let own: BTreeSet<ListenerAt> = attached
            .parents
            .iter()
            .flat_map(|parent| parent.hooks.iter().map(|hook| (parent.gate, hook.listener)))
            .collect();
        let fate = self.fate(hosts.iter().copied(), &route.meta.key, &own, lost);
        let mut accepted = parent.accepted.clone();
        if accepted.holds {
            accepted = fate.accepted(accepted, self.hosts.notes.get(&route.object()));
        }
        let section = route.parents.get(parent.index).and_then(|parent| parent.section.as_ref());
        let gateway = self.gates.get(parent.gate).map(|gate| &gate.gateway.meta.key);
        let names = gateway.map(|key| match section {
            Some(section) => format!("{} {key}#{section}", Kind::Gateway),
            None => format!("{} {key}", Kind::Gateway),
        });
        let texts: BTreeSet<String> = match hosts.is_empty() {
            false => hosts.iter().map(|(_, host)| host.to_string()).collect(),
            true => {
                super::attach::common(&HostPattern::Any, &route.hostnames).iter().map(ToString::to_string).collect()
            }
        };
        let row = Row {
            parent: names.unwrap_or_default(),
            hosts: texts.into_iter().collect(),
            admitted: accepted.holds,
            reason: accepted.reason.clone(),
            message: accepted.message.clone(),
            winners: fate.winners,
        };
        Line { parent: reference(route, parent.index, written), accepted, members: Vec::new(), row }
    }

    /// A row that is there because of inclusion.
    fn included_line(
        &self,
        route: &GatewayRoute,
        included: &IncludedRow,
        nth: usize,
        written: &Value,
        lost: &Lost,
    ) -> (PlaceKey, Line) {
        let (key, parent) = match &included.parent {
            RowParent::Direct(index) => (PlaceKey::direct(*index), reference(route, *index, written)),
            RowParent::Root { gateway, section } => {
                let parent = listener_reference(&route.meta.key.namespace, gateway, section);
                (PlaceKey::root(nth), parent)
            }
        };
        let object = route.object();
        let (mut accepted, mut row) = (included.accepted.clone(), included.line.clone());
        if accepted.holds {
            let of_route = self.included.get(&object).into_iter().flatten();
            let hosts: BTreeSet<_> =
                of_route.map(|(at, host)| (*at, host)).filter(|(at, _)| self.is_of(*at, included)).collect();
            let all = hosts.iter().map(|(at, _)| *at).collect();
            let fate = self.fate(hosts.into_iter(), &route.meta.key, &all, lost);
            accepted = fate.accepted(accepted, self.hosts.notes.get(&object));
            row.winners.extend(fate.winners);
            (row.admitted, row.reason, row.message) =
                (accepted.holds, accepted.reason.clone(), accepted.message.clone());
        }
        (key, Line { parent, accepted, members: included.members.clone(), row })
    }

    /// Whether a listener is among those that a row is about.
    fn is_of(&self, at: ListenerAt, included: &IncludedRow) -> bool {
        match &included.parent {
            RowParent::Direct(_) => true,
            RowParent::Root { gateway, section } => self.gates.get(at.0).is_some_and(|gate| {
                gate.gateway.meta.key == *gateway
                    && gate.listeners.get(at.1).is_some_and(|placed| placed.listener.name == *section)
            }),
        }
    }

    /// What becomes of hosts of a route on listeners; `own` are all listeners that it hangs on.
    fn fate<'h>(
        &self,
        hosts: impl Iterator<Item = (ListenerAt, &'h HostPattern)>,
        key: &ObjectKey,
        own: &BTreeSet<ListenerAt>,
        lost: &Lost,
    ) -> Fate {
        let mut fate = Fate::default();
        let mut elsewhere = BTreeSet::new();
        let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (at, host) in hosts {
            let placed = self.gates.get(at.0).and_then(|gate| gate.listeners.get(at.1));
            let Some((router, protocol)) = placed.and_then(|placed| Some((placed.router.as_ref()?, placed.protocol?)))
            else {
                continue;
            };
            if let Some(fault) = self.domains.fault(host) {
                fate.is_denied = true;
                fate.notes.push(format!("host {host} is {fault}"));
                continue;
            }
            let closest = self.hosts.closest(router, protocol.side(), host);
            if closest != Some(at) {
                if closest.is_some_and(|closest| !own.contains(&closest)) {
                    elsewhere.insert(host.to_string());
                }
                continue;
            }
            match lost.get(&(router.clone(), host.to_match())) {
                Some(winner) => {
                    fate.winners.push(winner.clone());
                    taken.entry(who(winner, key)).or_default().insert(host.to_string());
                }
                None => fate.is_served = true,
            }
        }
        fate.winners.sort();
        fate.winners.dedup();
        let list = |hosts: BTreeSet<String>| hosts.into_iter().collect::<Vec<_>>().join(", ");
        if !elsewhere.is_empty() {
            fate.notes
                .push(format!("not served here, as a more specific listener of the port has it: {}", list(elsewhere)));
        }
        fate.notes.extend(taken.into_iter().map(|(who, hosts)| format!("{who} is older and has {}", list(hosts))));
        fate
    }

    fn gateway(&self, index: usize, gate: &Gate<'_>, counts: &Counts, lost: &Lost) -> Told {
        let key = &gate.gateway.meta.key;
        let generation = gate.gateway.meta.generation;
        let (mut listeners, mut rows) = (Vec::new(), Vec::new());
        for (j, placed) in gate.listeners.iter().enumerate() {
            let mut accepted = placed.accepted.clone();
            let own = [((index, j), &placed.listener.hostname)];
            let fate = self.fate(own.into_iter(), key, &BTreeSet::from([(index, j)]), lost);
            if accepted.holds && !fate.notes.is_empty() {
                accepted.message = fate.notes.join("; ");
            }
            let programmed = placed.programmed();
            let kinds: Vec<_> =
                placed.kinds.iter().map(|kind| json!({ "group": GROUP, "kind": kind.name() })).collect();
            let written = [&accepted, &placed.conflicted, &placed.resolved, &programmed];
            listeners.push(json!({
                "name": &*placed.listener.name,
                "supportedKinds": kinds,
                "attachedRoutes": counts.get(&(index, j)).map_or(0, BTreeSet::len),
                "conditions": conditions(written.into_iter().chain(&placed.overlapping), generation),
            }));
            // What keeps the listener from taking traffic, or else how it stands.
            let says = if accepted.holds && !programmed.holds { &placed.resolved } else { &accepted };
            let router = placed.router.as_ref().map_or("", |router| &*router.0);
            rows.push(Row {
                parent: format!("{router}#{}", placed.listener.name),
                hosts: vec![placed.listener.hostname.to_string()],
                admitted: placed.is_programmed(),
                reason: says.reason.clone(),
                message: says.message.clone(),
                winners: fate.winners,
            });
        }
        let addresses: Vec<_> = self
            .around
            .addresses
            .iter()
            .map(|address| json!({ "type": "IPAddress", "value": address.to_string() }))
            .collect();
        let status = json!({
            "addresses": addresses,
            "conditions": conditions(&of_gateway(gate), generation),
            "listeners": listeners,
        });
        Told { status, rows }
    }
}

/// What becomes of hosts that a route wants.
#[derive(Default)]
struct Fate {
    /// One of them is the route's where it is looked for.
    is_served: bool,
    /// One of them is in a domain that is not served.
    is_denied: bool,
    notes: Vec<String>,
    winners: Vec<ObjectRef>,
}

impl Fate {
    /// `Accepted` with what is to be said about hosts; when objects of other kinds have them all, it does not hold.
    fn accepted(&self, mut accepted: Condition, notes: Option<&BTreeSet<String>>) -> Condition {
        let own = (!accepted.message.is_empty()).then(|| accepted.message.clone());
        let notes = own.into_iter().chain(self.notes.iter().cloned()).chain(notes.into_iter().flatten().cloned());
        accepted.message = notes.collect::<Vec<_>>().join("; ");
        if !self.is_served && (self.is_denied || !self.winners.is_empty()) {
            accepted.holds = false;
            accepted.reason =
                if self.winners.is_empty() { "HostNotPermitted" } else { "HostAlreadyClaimed" }.to_owned();
        }
        accepted
    }
}

/// What a winner is called for whom it beats: its name only in the same namespace.
fn who(winner: &ObjectRef, own: &ObjectKey) -> String {
    if winner.key.namespace == own.namespace {
        winner.to_string()
    } else {
        let article = if winner.kind == Kind::IngressRoute { "an" } else { "a" };
        format!("{article} {} of another namespace", winner.kind)
    }
}

/// Conditions of a Gateway as a whole.
fn of_gateway(gate: &Gate<'_>) -> [Condition; 3] {
    let names = |bad: &dyn Fn(&super::Placed<'_>) -> bool| {
        let names = gate.listeners.iter().filter(|placed| bad(placed)).map(|placed| &*placed.listener.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let invalid = names(&|placed| !placed.accepted.holds);
    let unresolved = names(&|placed| !placed.resolved.holds);
    let accepted = match &gate.refusal {
        Some(refusal) => refusal.clone(),
        None if invalid.is_empty() => Condition::new("Accepted", true, "Accepted", ""),
        None => {
            let some = gate.listeners.iter().any(|placed| placed.accepted.holds);
            Condition::new("Accepted", some, "ListenersNotValid", format!("listeners are not accepted: {invalid}"))
        }
    };
    let is_programmed = gate.listeners.iter().any(super::Placed::is_programmed);
    let programmed = match is_programmed {
        true => Condition::new("Programmed", true, "Programmed", ""),
        false => Condition::new("Programmed", false, "Invalid", "no listener takes traffic"),
    };
    let resolved = match unresolved.is_empty() {
        true => Condition::new("ResolvedRefs", true, "ResolvedRefs", ""),
        false => {
            let message = format!("listeners have references that cannot be used: {unresolved}");
            Condition::new("ResolvedRefs", false, "ListenersNotResolved", message)
        }
    };
    [accepted, programmed, resolved]
}

/// Where a row stands among a route's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceKey(bool, usize);

impl PlaceKey {
    fn direct(index: usize) -> Self {
        PlaceKey(false, index)
    }

    fn root(nth: usize) -> Self {
        PlaceKey(true, nth)
    }
}

/// A parent reference as it was written.
fn reference(route: &GatewayRoute, index: usize, written: &Value) -> Value {
    if let Some(reference) = written.pointer(&format!("/spec/parentRefs/{index}")) {
        return reference.clone();
    }
    let mut reference = Map::new();
    if let Some(parent) = route.parents.get(index) {
        let object = &parent.object;
        reference.insert("group".to_owned(), json!(&*object.group));
        reference.insert("kind".to_owned(), json!(&*object.kind));
        reference.extend(object.namespace.iter().map(|namespace| ("namespace".to_owned(), json!(&**namespace))));
        reference.insert("name".to_owned(), json!(&*object.name));
        reference.extend(parent.section.iter().map(|section| ("sectionName".to_owned(), json!(&**section))));
        reference.extend(parent.port.iter().map(|port| ("port".to_owned(), json!(port))));
    }
    Value::Object(reference)
}

fn told(route: &GatewayRoute, worth: &Worth, lines: BTreeMap<PlaceKey, Line>) -> Told {
    let generation = route.meta.generation;
    let (mut parents, mut rows) = (Vec::new(), Vec::new());
    for line in lines.into_values() {
        let list = [&line.accepted, &worth.resolved].into_iter().chain(&worth.partial);
        let mut parent = Map::new();
        parent.insert("parentRef".to_owned(), line.parent);
        parent.insert("controllerName".to_owned(), json!(CONTROLLER_NAME));
        parent.insert("conditions".to_owned(), conditions(list, generation));
        parent.extend(line.members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        parents.push(Value::Object(parent));
        rows.push(line.row);
    }
    Told { status: json!({ "parents": parents }), rows }
}
