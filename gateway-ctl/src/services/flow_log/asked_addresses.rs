//! Addresses that clients have resolved, with the names by which they asked.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::flow_log::{AskedNames, MAX_NAMES};
use parking_lot::Mutex;

/// Maximum number of pairs of client and address in one of the two halves. The older half is forgotten as a whole.
const MAX_PAIRS: usize = 65_536;

type Pairs = HashMap<(u64, IpAddr), Vec<Arc<str>>>;

/// Names by client and address. Clones are the same names.
#[derive(Clone, Debug, Default)]
pub struct AskedAddresses(Arc<Mutex<Halves>>);

#[derive(Debug, Default)]
struct Halves {
    newer: Pairs,
    older: Pairs,
}

impl AskedAddresses {
    /// Notes that a client got addresses for a name. `client` is its number in the resolver.
    pub fn note(&self, client: u64, name: &str, addresses: &[IpAddr]) {
        let name: Arc<str> = name.trim_end_matches('.').to_ascii_lowercase().into();
        let mut halves = self.0.lock();
        for address in addresses {
            if halves.newer.len() >= MAX_PAIRS {
                halves.older = std::mem::take(&mut halves.newer);
            }
            let key = (client, address.to_canonical());
            let earlier = halves.older.remove(&key);
            let names = halves.newer.entry(key).or_insert_with(|| earlier.unwrap_or_default());
            names.retain(|known| *known != name);
            names.insert(0, name.clone());
            names.truncate(MAX_NAMES);
        }
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = Halves::default();
    }
}

impl AskedNames for AskedAddresses {
    fn names(&self, client: u64, address: IpAddr) -> Vec<String> {
        let (halves, key) = (self.0.lock(), (client, address.to_canonical()));
        let names = halves.newer.get(&key).or_else(|| halves.older.get(&key));
        names.into_iter().flatten().map(|name| name.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_names_of_a_client_come_first_and_are_few() {
        let (asked, address) = (AskedAddresses::default(), IpAddr::from([192, 0, 2, 1]));
        for number in 0..10 {
            asked.note(7, &format!("N{number}.example."), &[address]);
        }
        asked.note(7, "n8.example", &[address]);
        assert_eq!(asked.names(7, address), ["n8.example", "n9.example", "n7.example", "n6.example"]);
        assert!(asked.names(8, address).is_empty(), "another client");
    }

    #[test]
    fn pairs_are_bounded_and_the_newest_stay() {
        let asked = AskedAddresses::default();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let last = 3 * MAX_PAIRS as u32;
        (0..=last).for_each(|number| asked.note(1, "a.example", &[address(number)]));
        let halves = asked.0.lock();
        assert!(halves.newer.len() + halves.older.len() <= 2 * MAX_PAIRS);
        drop(halves);
        assert!(asked.names(1, address(0)).is_empty());
        assert_eq!(asked.names(1, address(last)), ["a.example"]);
    }
}
