//! Is it alive, what is it doing, what has an outsider changed, what machine is it.

use crate::table::Method::Get;
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the engine, which is being wired",
        &[(Get, "/health"), (Get, "/status"), (Get, "/observer"), (Get, "/drift"), (Get, "/platform")],
    );
}
