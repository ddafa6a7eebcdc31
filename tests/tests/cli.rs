//! The command-line client: its command table against the endpoints of the API, and the real program against a real
//! daemon.
//!
//! Needs root for the daemon, and `gateway-ctl` beside `gatewayd` or in `GATEWAY_CTL_BIN`.

mod cases;
mod client;
mod completion;
mod documentation;
mod failures;
mod golden;
mod receiver_secrets;
mod sign_in;
mod streams;
mod table;

use std::sync::OnceLock;

use gateway_tests::testbed::Testbed;

/// Returns one shared daemon for the tests that change nothing.
fn quiet_scene() -> &'static Testbed {
    static SCENE: OnceLock<Testbed> = OnceLock::new();
    SCENE.get_or_init(|| Testbed::start().expect("a daemon on a fresh network"))
}
