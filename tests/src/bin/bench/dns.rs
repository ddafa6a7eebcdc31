//! The resolver beside those of Debian, with the same list of a million domains, the same upstream and the same load:
//!
//! * `dns_blocked`, `dns_cached`, `dns_mix`: what a question costs, how many are answered, how long they take
//! * `dns_once`: the same for blocked names that nobody has asked for before
//! * `dns_load`, `dns_memory`: what the list costs
//!
//! Every resolver has a network of its own. Only one of them works at a time, the others are stopped; all are measured in
//! turn, several times over.

mod lists;
mod load;
mod names;
mod peer;
mod publisher;
mod server;
mod serving;
mod testbed;

pub use lists::run as lists;
pub use serving::run as serving;

use crate::row::Measured;

/// In the list of most comparisons.
const LISTED: usize = 1_000_000;

/// The peer that did best: its place among those measured, ours being the first.
fn best(measured: &[Measured], better: fn(&f64, &f64) -> std::cmp::Ordering) -> Option<usize> {
    (1..measured.len()).max_by(|a, b| better(&measured[*a].median, &measured[*b].median))
}

/// The more, the better.
fn more(a: &f64, b: &f64) -> std::cmp::Ordering {
    a.total_cmp(b)
}

/// The less, the better.
fn less(a: &f64, b: &f64) -> std::cmp::Ordering {
    b.total_cmp(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_a_peer_and_never_ours() {
        let measured: Vec<Measured> =
            [9.0, 2.0, 3.0].map(|median| Measured { median, values: Vec::new() }).into();
        assert_eq!((best(&measured, more), best(&measured, less)), (Some(2), Some(1)));
    }
}
