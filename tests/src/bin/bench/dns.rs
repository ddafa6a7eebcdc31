//! Compares the resolver with those of Debian, with the same list of a million domains, the same upstream and the same
//! load:
//!
//! * `dns_blocked`, `dns_cached`, `dns_mix`: cost of a query, answers per second, latency
//! * `dns_once`: the same for blocked names that were not queried before
//! * `dns_load`, `dns_memory`: cost of the list
//!
//! Every resolver has its own network. Only one of them runs at a time; the others are stopped. All are measured in
//! rotation, several times.

mod lists;
mod load;
mod names;
mod peer;
mod publisher;
mod server;
mod serving;
mod testbed;

pub(crate) use lists::run as lists;
pub(crate) use peer::first_on;
pub(crate) use serving::run as serving;

use crate::row::Measured;

/// Number of domains in the list of most comparisons.
const LISTED: usize = 1_000_000;

/// Returns the index of the peer with the best result. Index 0 is the gateway.
fn best(measured: &[Measured], better: fn(&f64, &f64) -> std::cmp::Ordering) -> Option<usize> {
    (1..measured.len()).max_by(|a, b| better(&measured[*a].median, &measured[*b].median))
}

/// Orders results for which more is better.
fn more(a: &f64, b: &f64) -> std::cmp::Ordering {
    a.total_cmp(b)
}

/// Orders results for which less is better.
fn less(a: &f64, b: &f64) -> std::cmp::Ordering {
    b.total_cmp(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_row_is_a_peer() {
        let measured: Vec<Measured> =
            [9.0, 2.0, 3.0].map(|median| Measured { median, values: Vec::new() }).into();
        assert_eq!((best(&measured, more), best(&measured, less)), (Some(2), Some(1)));
    }
}
