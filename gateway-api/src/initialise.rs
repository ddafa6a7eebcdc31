//! Initialisation: the marker outside of the state directory, and `gatewayd init`.
//!
//! The first start is an explicit act. The marker distinguishes a gateway that was never set up from one that lost its
//! store. Neither forwards traffic, because an empty store would send every device out directly. Decision 0007 says why.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gateway_ctl::clock::{Clock, SystemClock};
use gateway_ctl::store::{self, AuditTicket, CommitError, Store};
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_model::{EditError, Tunnel};

use crate::config;

/// Reason why the gateway has no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There is no marker: `gatewayd init` was never run.
    NotInitialised,
    /// The marker exists: the store was lost.
    StoreMissing,
}

impl Absence {
    /// Returns the `cause` field of `/health`.
    pub fn as_str(self) -> &'static str {
        match self {
            Absence::NotInitialised => "not_initialised",
            Absence::StoreMissing => "store_missing",
        }
    }

    /// Returns the human-readable cause and remedy.
    pub fn reason(self, config: &Bootstrap) -> String {
        let store = config::store_path(config);
        match self {
            Absence::NotInitialised => {
                "this gateway was never initialised: run `gatewayd init`, then restart the daemon".to_owned()
            }
            Absence::StoreMissing => format!(
                "the store {} is missing on a gateway that was initialised: mount or restore {}, or run \
                 `gatewayd init --discard-state` to begin with an empty store",
                store.display(),
                config.state_dir.display()
            ),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", Absence::StoreMissing.reason(config))]
    StoreMissing { config: Box<Bootstrap> },
    #[error("the store {} cannot be used; `gatewayd init --discard-state` replaces it by an empty one", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        source: store::Error,
    },
    #[error("the daemon uses the store {}: stop it first", path.display())]
    InUse { path: PathBuf },
    #[error("the configured tunnels cannot be stored")]
    FirstTunnels(#[source] EditError),
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Reports whether the gateway was initialised. A marker that cannot be examined counts: the gateway then reports a
/// lost store instead of offering a first start.
pub fn is_marked(config: &Bootstrap) -> bool {
    !matches!(
        fs::symlink_metadata(config::marker_path(config)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    )
}

/// Returns the reason why there is no store. `None` if a file exists at its path.
pub fn absence(config: &Bootstrap) -> Option<Absence> {
    let is_missing = |path: &Path| matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    // A wiped directory has a store error of its own.
    if !is_missing(&config::store_path(config)) || !is_missing(&config.state_dir.join(store::WIPED)) {
        return None;
    }
    Some(if is_marked(config) { Absence::StoreMissing } else { Absence::NotInitialised })
}

/// Writes the marker if it is missing. Returns true if it was.
pub fn mark(config: &Bootstrap) -> Result<bool, Error> {
    if is_marked(config) {
        return Ok(false);
    }
    let path = config::marker_path(config);
    let failed = |source| Error::File { action: "write the marker", path: path.clone(), source };
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed)?;
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&path).map_err(failed)?;
    let text = format!(
        "This gateway was initialised at {}. While this file exists, a missing store blocks all traffic.\n",
        SystemClock.now()
    );
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(true)
}

/// Initialises this gateway: creates the store with the tunnels of the configuration, then writes the marker. Returns
/// the steps that were done, one line each. A second run changes nothing.
///
/// `discard_state` creates an empty store although there was one, and keeps the old file beside it.
pub fn run(config: &Bootstrap, discard_state: bool) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    let path = config::store_path(config);
    if discard_state {
        done.extend(discard(config)?);
    }
    match absence(config) {
        Some(Absence::StoreMissing) if !discard_state => {
            return Err(Error::StoreMissing { config: Box::new(config.clone()) });
        }
        Some(_) => {
            make_store(config)?;
            done.push(format!("made the store {}", path.display()));
        }
        // An existing store must open once. Afterwards the daemon reports its faults.
        None if !is_marked(config) => match Store::open_existing(&path, SystemClock::shared()) {
            Ok(_) | Err(store::Error::Locked { .. }) => {}
            Err(source) => return Err(Error::Unusable { path, source }),
        },
        None => {}
    }
    if mark(config)? {
        done.push(format!("wrote the marker {}", config::marker_path(config).display()));
    }
    if done.is_empty() {
        done.push("this gateway is initialised already: nothing was changed".to_owned());
    }
    Ok(done)
}

/// Creates the store with the tunnels of the configuration.
fn make_store(config: &Bootstrap) -> Result<(), Error> {
    let path = config::store_path(config);
    let unusable = |source| Error::Unusable { path: path.clone(), source };
    let store = Store::open(&path, SystemClock::shared()).map_err(unusable)?;
    for tunnel in &config.tunnels {
        let ticket = AuditTicket::system("create_tunnel", "tunnel");
        match store.commit(ticket, |draft| draft.create::<Tunnel>(tunnel.clone())) {
            Ok(_) => {}
            Err(CommitError::Refused { error, ticket: _ }) => {
                // A store without these tunnels is not a valid start.
                drop(store);
                let _ = fs::remove_file(&path);
                return Err(Error::FirstTunnels(error));
            }
            Err(CommitError::Store(error)) => return Err(unusable(error)),
        }
    }
    Ok(())
}

/// Renames an existing store and removes the remains of a wipe. Returns the steps that were done.
fn discard(config: &Bootstrap) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    let path = config::store_path(config);
    // A store that the daemon has open is not moved.
    if let Err(store::Error::Locked { path }) = Store::open_existing(&path, SystemClock::shared()) {
        return Err(Error::InUse { path });
    }
    let beside = path.with_file_name(store::DISCARDED);
    match fs::rename(&path, &beside) {
        Ok(()) => done.push(format!("moved the old store to {}", beside.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::File { action: "move", path, source }),
    }
    let wiped = config.state_dir.join(store::WIPED);
    match fs::remove_file(&wiped) {
        Ok(()) => done.push(format!("removed {}", wiped.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::File { action: "remove", path: wiped, source }),
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        _folder: tempfile::TempDir,
        config: Bootstrap,
    }

    fn site() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Bootstrap {
            state_dir: folder.path().join("state"),
            marker: Some(folder.path().join("etc/initialised")),
            ..Bootstrap::default()
        };
        Fixture { _folder: folder, config }
    }

    #[test]
    fn init_makes_store_and_marker_once() {
        let Fixture { config, _folder } = site();
        assert_eq!(absence(&config), Some(Absence::NotInitialised));
        assert_eq!(run(&config, false).expect("initialised").len(), 2);
        assert_eq!(absence(&config), None);
        let again = run(&config, false).expect("nothing to do");
        assert!(again[0].contains("nothing was changed"), "{again:?}");
    }

    #[test]
    fn init_replaces_a_lost_store_only_on_request() {
        let Fixture { config, _folder } = site();
        run(&config, false).expect("initialised");
        fs::remove_dir_all(&config.state_dir).expect("removed");
        assert_eq!(absence(&config), Some(Absence::StoreMissing));
        let refused = run(&config, false).expect_err("refused").to_string();
        assert!(refused.contains("--discard-state"), "{refused}");
        assert!(!config.state_dir.exists(), "it left something behind");
        run(&config, true).expect("an explicit act");
        assert_eq!(absence(&config), None);
    }

    #[test]
    fn init_marks_an_older_store_only_if_it_opens() {
        let Fixture { config, _folder } = site();
        run(&config, false).expect("initialised");
        fs::remove_file(config::marker_path(&config)).expect("removed");
        assert_eq!(run(&config, false).expect("marked").len(), 1);
        fs::remove_file(config::marker_path(&config)).expect("removed");
        fs::write(config::store_path(&config), b"this is no database").expect("spoiled");
        assert!(matches!(run(&config, false), Err(Error::Unusable { .. })));
        assert!(!is_marked(&config));
        run(&config, true).expect("an explicit act");
        assert!(config.state_dir.join(store::DISCARDED).exists());
    }

    #[test]
    fn init_refuses_to_discard_a_store_that_is_in_use() {
        let Fixture { config, _folder } = site();
        run(&config, false).expect("initialised");
        let held = Store::open(config::store_path(&config), SystemClock::shared()).expect("open");
        assert!(matches!(run(&config, true), Err(Error::InUse { .. })));
        assert!(run(&config, false).is_ok(), "an upgrade of the package while the daemon runs");
        drop(held);
    }
}
