//! Sources of observations.

use std::sync::Arc;

use crate::handles::Handles;
use crate::readings::DataplaneReader;
use crate::services::dns::DnsService;
use crate::store::Store;
use crate::world::Worlds;

/// Sources of observations, and what else the service needs.
#[derive(Clone)]
pub struct AnomalySources {
    pub store: Arc<Store>,
    pub worlds: Arc<Worlds>,
    pub handles: Handles,
    pub dataplane: DataplaneReader,
    /// `None` if the gateway runs no resolver.
    pub names: Option<Arc<DnsService>>,
}
