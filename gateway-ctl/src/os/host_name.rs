//! Name of this host.

/// Returns the name of this host, as `uname -n` shows it.
pub(crate) fn read() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
