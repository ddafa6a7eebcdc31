//! The backends, the observer and the reconcile run against the kernel, checked with `ip` and `nft` as an
//! administrator would.

mod backends;
mod base_block;
mod nft;
mod observe;
mod reconcile;

use gateway_ctl::effects::Netlink;
use gateway_tests::netns::{Namespace, Prefix};

fn namespace(label: &str) -> Namespace {
    let prefix = Prefix::unique().expect("root");
    Namespace::create(&prefix, label).expect("namespace")
}

/// Runs in the namespace, on a runtime of its own.
fn within<T: Send>(namespace: &Namespace, work: impl AsyncFnOnce() -> T + Send) -> T {
    namespace.within(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(work())
    })
}

fn netlink() -> Netlink {
    Netlink::open().expect("netlink")
}

fn ip(namespace: &Namespace, arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    namespace.run("ip", &arguments).expect("ip")
}
