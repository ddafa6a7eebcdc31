//! Tests of the daemon's components against this machine's kernel. They need root and fail without it.

mod answers;
mod capture_summaries;
mod captures;
pub(crate) mod differential;
mod dns_filter;
mod effects;
mod fast_path;
mod flow_bucket;
mod flow_budget;
mod guard_tap;
mod incremental_plans;
mod load;
mod many_policies;
mod policy_lookup;
pub(crate) mod wireguard;
