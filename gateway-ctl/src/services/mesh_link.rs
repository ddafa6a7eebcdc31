//! Interface of the mesh, as a fact of the plan. The membership sets it, and each run of the reconcile loop reads it.

use std::sync::Arc;

use gateway_core::facts::{Facts, MeshLink};
use parking_lot::Mutex;

use crate::handles::in_memory;
use crate::service::{Context, Service};

/// Interface of the mesh while there is one. Shared by the engine and the reconcile loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkFacts(Arc<Mutex<Option<MeshLink>>>);

in_memory!(LinkFacts);

/// Returns the service that adds the interface to the facts of each run.
pub(crate) fn service(context: &Context) -> Service {
    let link = context.handles.get::<LinkFacts>();
    Service::idle("mesh_link").contributes(move |facts| link.enrich(facts))
}

impl LinkFacts {
    fn enrich(&self, facts: &mut Facts) {
        facts.mesh.clone_from(&self.0.lock());
    }

    /// Returns the interface.
    pub(crate) fn get(&self) -> Option<MeshLink> {
        self.0.lock().clone()
    }

    /// Sets the interface. Returns whether it is another one than before.
    pub(crate) fn set(&self, link: Option<MeshLink>) -> bool {
        let mut current = self.0.lock();
        let is_other = *current != link;
        *current = link;
        is_other
    }
}
