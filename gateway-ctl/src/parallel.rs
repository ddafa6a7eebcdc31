//! Work on many items that takes milliseconds of a CPU.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Runs work on all CPUs, and returns the results in the order of the items.
pub fn in_parallel<T: Sync, O: Send>(items: &[T], work: impl Fn(&T) -> O + Sync) -> Vec<O> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, O>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let out = work(item);
                    done.lock().insert(index, out);
                }
            });
        }
    });
    done.into_inner().into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let twice = in_parallel(&items, |item| item * 2);
        assert_eq!(twice, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(in_parallel(&[0u8; 0], |item| *item).is_empty());
    }
}
