//! Random ids of requests. Random bytes for many ids are read from the kernel at once.

use std::cell::RefCell;

use uuid::{Builder, Uuid};

/// Number of ids whose bytes are read at once.
const BATCH: usize = 64;
const ID_BYTES: usize = 16;

thread_local! {
    static UNUSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns a random UUID (version 4).
pub(crate) fn new() -> String {
    UNUSED.with_borrow_mut(random).to_string()
}

fn random(unused: &mut Vec<u8>) -> Uuid {
    if unused.len() < ID_BYTES {
        unused.resize(BATCH * ID_BYTES, 0);
        if getrandom::fill(unused).is_err() {
            unused.clear();
        }
    }
    match unused.split_last_chunk::<ID_BYTES>() {
        Some((rest, bytes)) => {
            let id = Builder::from_random_bytes(*bytes).into_uuid();
            unused.truncate(rest.len());
            id
        }
        None => Uuid::new_v4(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_random_and_of_version_4() {
        let ids: BTreeSet<String> = (0..3 * BATCH).map(|_| new()).collect();
        assert_eq!(ids.len(), 3 * BATCH);
        for id in &ids {
            assert_eq!(Uuid::parse_str(id).unwrap().get_version_num(), 4, "{id}");
        }
    }
}
