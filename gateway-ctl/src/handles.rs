//! Handles of services: through them, the API and other services read and direct what a service keeps. Decision 0075 says
//! why.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::clock::SharedClock;

/// Handle of a service. Clones are the same handle.
pub trait Handle: Any + Clone + Send + Sync {
    /// Opens the handle, with what the last run has stored in the state folder.
    fn open(state_dir: &Path, now: Timestamp) -> Self;
}

/// Implements [`Handle`] for a type that keeps nothing over restarts.
macro_rules! in_memory {
    ($handle:ty) => {
        impl $crate::handles::Handle for $handle {
            fn open(_: &std::path::Path, _: jiff::Timestamp) -> Self {
                Self::default()
            }
        }
    };
}
pub(crate) use in_memory;

/// Handles of all services, each opened when it is first asked for. Clones are the same handles. Without a kernel, no
/// service fills them.
#[derive(Clone)]
pub struct Handles(Arc<Inner>);

struct Inner {
    state_dir: PathBuf,
    clock: SharedClock,
    open: Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
}

impl fmt::Debug for Handles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").field("state_dir", &self.0.state_dir).finish_non_exhaustive()
    }
}

impl Handles {
    pub fn new(state_dir: &Path, clock: SharedClock) -> Handles {
        Handles(Arc::new(Inner { state_dir: state_dir.to_owned(), clock, open: Mutex::default() }))
    }

    /// Returns the handle of this type.
    pub fn get<H: Handle>(&self) -> H {
        let Inner { state_dir, clock, open } = &*self.0;
        let mut open = open.lock();
        let opened = || -> Box<dyn Any + Send + Sync> { Box::new(H::open(state_dir, clock.now())) };
        let handle = open.entry(TypeId::of::<H>()).or_insert_with(opened);
        handle.downcast_ref::<H>().expect("a handle is entered under its own type").clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[derive(Clone)]
    struct Folder(Arc<Mutex<PathBuf>>);

    impl Handle for Folder {
        fn open(state_dir: &Path, _: Timestamp) -> Folder {
            Folder(Arc::new(Mutex::new(state_dir.to_owned())))
        }
    }

    #[test]
    fn a_handle_is_opened_once_and_is_the_same_for_all() {
        let handles = Handles::new(Path::new("/state"), SystemClock::shared());
        let (first, second) = (handles.get::<Folder>(), handles.clone().get::<Folder>());
        assert_eq!(*first.0.lock(), Path::new("/state"));
        assert!(Arc::ptr_eq(&first.0, &second.0));
    }
}
