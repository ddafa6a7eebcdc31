//! Packet capture, detection of captive portals, network tests, support bundle.

use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    super::test_definitions::rows(t);
    super::captive::rows(t);
    super::captures::rows(t);
    super::support_bundle::rows(t);
}
