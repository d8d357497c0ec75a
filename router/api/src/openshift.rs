//! OpenShift's objects: Routes (`route.openshift.io/v1`) and IngressControllers (`operator.openshift.io/v1`).

pub(crate) mod header_actions;
pub mod ingress_controller;
pub mod route;
