//! The log: one line per event on standard error, at a level that can change while the daemon runs.

use std::sync::OnceLock;

use gateway_model::settings::bootstrap::LogLevel;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt};

static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// Begins to log. Once per process.
pub fn start(level: LogLevel) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
    // A second call has panicked above.
    let _ = FILTER.set(handle);
}

/// From now on at this level; nothing where the process does not log.
pub fn set_level(level: LogLevel) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(filter(level))
    {
        tracing::warn!(%error, "the level of the log stays");
    }
}

/// The filter of the level that says most. What libraries have to say at it is about themselves; some would tell keys.
pub const MOST: &str = "debug,aya=info,aya_obj=info,hyper=info,hyper_util=info,netlink_proto=info,boringtun=warn,\
    rustls=info,mio=info,russh=info";

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::new(match level {
        LogLevel::Debug => MOST,
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    })
}
