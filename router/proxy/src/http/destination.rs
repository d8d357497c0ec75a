//! Where a request is forwarded to, and how its fields are changed.

use std::future::poll_fn;
use std::pin::Pin;

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue};
use router_table::table::ResolvedRoute;

use super::connection::Connection;
use super::modify::modify;
use super::{actions, interim, request_id};
use crate::http::header_case::HeaderCase;
use crate::serving_table::ServedRouter;
use crate::upstream::plan::BalancingPlan;
use crate::upstream::target::EndpointTarget;

/// Where a request is forwarded to.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'r> {
    /// The route.
    pub route: &'r ResolvedRoute,
    /// Its plan.
    pub plan: &'r BalancingPlan,
    /// State of its router.
    pub served: &'r ServedRouter,
    /// Host and port as sent.
    pub authority: &'r HeaderValue,
    /// See [`ClientView::as_sent`](super::headers::ClientView::as_sent).
    pub as_sent: bool,
}

impl Destination<'_> {
    /// Applies the prepared changes of the request's fields: the request's id, the router's actions and, last, those of
    /// the route (docs/openshift.md#header-actions) or the rule.
    pub fn act(&self, headers: &mut HeaderMap, connection: &Connection) {
        let policy = &self.served.table.policy;
        for actions in [&policy.actions, &self.route.policy.actions].into_iter().flatten() {
            actions::apply(&actions.request, headers, connection.certificate());
        }
        if let Some(rule) = &self.route.rule {
            if let Some(host) = rule.rewrite_host.as_ref().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
                headers.insert(HOST, host);
            }
            modify(&rule.request_headers, headers);
        }
        let Some(id) = &policy.unique_id else { return };
        let value = request_id::next(id, connection.client, connection.listener);
        if let (Ok(name), Some(value)) = (HeaderName::try_from(&*id.name), value) {
            headers.insert(name, value);
        }
    }

    /// Awaits an endpoint's response, and passes interim ones to the client meanwhile.
    pub async fn forward_interim<A: Future>(
        &self,
        mut answer: Pin<&mut A>,
        connection: &Connection,
        target: EndpointTarget<'_>,
    ) -> A::Output {
        let act = |headers: &mut HeaderMap| {
            target.policy.into_iter().for_each(|backend| modify(&backend.response_headers, headers));
            self.route.rule.iter().for_each(|rule| modify(&rule.response_headers, headers));
            for actions in [&self.route.policy.actions, &self.served.table.policy.actions].into_iter().flatten() {
                actions::apply(&actions.response, headers, connection.certificate());
            }
        };
        let head = |response| interim::head(response, self.served.spelling.as_ref(), act);
        poll_fn(|cx| connection.clock.interim.poll_with(cx, |cx| answer.as_mut().poll(cx), head)).await
    }

    /// Case adjustments of the request's field names, if any.
    pub fn spelling(&self) -> Option<&HeaderCase> {
        self.served.spelling.as_ref().filter(|_| self.route.policy.adjust_case)
    }
}
