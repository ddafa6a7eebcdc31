//! Loads of the programs below one pin folder: also those that begin at the same time.

use std::sync::Barrier;

use gateway_ctl::os::bpf::Programs;
use gateway_tests::netns::{self, Prefix};

use crate::kernel::differential::Pins;

/// Simultaneous loads. A start loads once, `gatewayd guard` may run beside it.
const LOADS: usize = 3;
const ROUNDS: usize = 3;

#[test]
fn loads_that_begin_together_share_the_maps() {
    netns::require_root().expect("root");
    for round in 0..ROUNDS {
        let prefix = Prefix::unique().expect("a prefix");
        let pins = Pins(prefix.pin_directory());
        let start = Barrier::new(LOADS);
        let load = || {
            start.wait();
            Programs::load(&pins.0).map(|programs| programs.unpinned_maps())
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let loads: Vec<_> = (0..LOADS).map(|_| scope.spawn(load)).collect();
            loads.into_iter().map(|load| load.join().expect("a load")).collect()
        });
        for result in results {
            let unpinned = result.unwrap_or_else(|error| panic!("round {round}: {error:?}"));
            assert_eq!(unpinned, Vec::<&str>::new(), "round {round}");
        }
    }
}
