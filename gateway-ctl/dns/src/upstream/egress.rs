//! Egress of a query: its display name, and its choice by a route.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_common::wire::Mark;
use gateway_model::kinds::DnsForwarder;
use gateway_outbound::{Egress, Proxy};

use crate::hooks::QueryEgress;

/// Names of tunnels and uplinks by their mark.
pub type EgressNames = BTreeMap<Mark, Arc<str>>;

/// Returns the display name of an egress.
pub(super) fn shown(egress: &Egress, called: &EgressNames) -> Arc<str> {
    match (&egress.proxy, egress.mark) {
        (Some(proxy), _) => format!("proxy {}", proxy.server).into(),
        (None, None) => DnsForwarder::AUTO.into(),
        (None, Some(mark)) => {
            called.get(&mark).cloned().unwrap_or_else(|| format!("mark {:#x}", mark.0).into())
        }
    }
}

/// Returns the egress of the `turn`th query by this route, or the reason why there is none.
pub(super) fn egress_of(route: &QueryEgress, turn: usize) -> Result<Egress, Arc<str>> {
    match route {
        QueryEgress::Default => Ok(Egress::DEFAULT),
        QueryEgress::Marked(marks) => match marks.get(turn % marks.len().max(1)) {
            Some(mark) => Ok(Egress::marked(*mark)),
            None => Err("no way is left".into()),
        },
        QueryEgress::Proxy { server, mark, user } => {
            Ok(Egress { mark: Some(*mark), proxy: Some(Proxy { server: *server, login: user.clone() }) })
        }
        QueryEgress::Blocked(why) => Err(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_alternate_and_a_blocked_route_has_no_egress() {
        let route = QueryEgress::Marked(vec![Mark(5), Mark(6)]);
        let marks: Vec<Option<Mark>> = (0..3).map(|turn| egress_of(&route, turn).unwrap().mark).collect();
        assert_eq!(marks, [5, 6, 5].map(|mark| Some(Mark(mark))));
        assert_eq!(egress_of(&QueryEgress::Default, 9).unwrap(), Egress::DEFAULT);
        assert!(egress_of(&QueryEgress::Blocked("down".into()), 0).is_err());
        assert!(egress_of(&QueryEgress::Marked(Vec::new()), 0).is_err());
    }
}
