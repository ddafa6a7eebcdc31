//! Setup code. A caller who creates the first account from elsewhere proves with it that they can read files of the
//! gateway.
//!
//! While there is no user, the file `setup-code` in the state directory contains the code, readable by root only, also
//! while sign-in is off: the first account counts as soon as sign-in is on. The code is never logged, because logs leave
//! the host. The gateway itself needs no code.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gateway_model::Secret;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

const FILE: &str = "setup-code";
/// Alphabet without characters that look alike.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const LENGTH: usize = 20;
const GROUP: usize = 5;

/// Setup code, while there is one.
#[derive(Debug, Default)]
pub struct SetupCode {
    path: Option<PathBuf>,
    code: Mutex<Option<Secret>>,
}

impl SetupCode {
    /// Prepares the code. `wanted`: no user can sign in yet. Otherwise removes a leftover file.
    pub fn prepare(folder: Option<&Path>, wanted: bool) -> Self {
        let Some(folder) = folder else { return Self::default() };
        let path = folder.join(FILE);
        if !wanted {
            remove(&path);
            return Self::default();
        }
        match read_or_make(&path) {
            Ok(code) => {
                tracing::info!(
                    file = %path.display(),
                    "no account yet: POST /api/v1/auth/setup makes the first one; from other hosts with the code in that \
                     file"
                );
                Self { path: Some(path), code: Mutex::new(Some(code)) }
            }
            Err(error) => {
                tracing::error!(
                    file = %path.display(), %error,
                    "failed to write the setup code: only the gateway itself can create the first account"
                );
                Self::default()
            }
        }
    }

    /// Reports whether this is the code. Ignores dashes and case.
    pub fn fits(&self, given: &Secret) -> bool {
        let code = self.code.lock();
        let Some(code) = code.as_ref() else { return false };
        bare(given.expose()).as_bytes().ct_eq(bare(code.expose()).as_bytes()).into()
    }

    /// Discards the code after use.
    pub fn discard(&self) {
        *self.code.lock() = None;
        if let Some(path) = &self.path {
            remove(path);
        }
    }
}

fn bare(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(file = %path.display(), %error, "failed to remove the setup code");
        }
        _ => {}
    }
}

/// Returns the code of an earlier start, else a new one.
fn read_or_make(path: &Path) -> io::Result<Secret> {
    if let Ok(text) = fs::read_to_string(path)
        && bare(&text).len() == LENGTH
    {
        return Ok(Secret::new(text.trim()));
    }
    remove(path);
    let code = generate()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path)?;
    file.write_all(format!("{}\n", code.expose()).as_bytes())?;
    file.sync_all()?;
    Ok(code)
}

fn generate() -> io::Result<Secret> {
    let mut random = [0; LENGTH];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let letters: Vec<char> = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    let groups: Vec<String> = letters.chunks(GROUP).map(|group| group.iter().collect()).collect();
    Ok(Secret::new(groups.join("-")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_code_is_in_a_file_for_root_alone_until_it_has_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        let setup = SetupCode::prepare(Some(folder.path()), true);
        let text = fs::read_to_string(&path).expect("the file");
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o400);
        assert_eq!(text.trim().len(), LENGTH + LENGTH / GROUP - 1, "{text}");
        assert!(setup.fits(&Secret::new(text.trim())));
        assert!(setup.fits(&Secret::new(text.trim().to_lowercase().replace('-', ""))));
        for wrong in ["", "AAAAA-AAAAA-AAAAA-AAAAA", &text[..10]] {
            assert!(!setup.fits(&Secret::new(wrong)), "{wrong}");
        }
        let again = SetupCode::prepare(Some(folder.path()), true);
        assert!(again.fits(&Secret::new(text.trim())), "a restart keeps it");
        again.discard();
        assert!(!path.exists() && !again.fits(&Secret::new(text.trim())) && !again.fits(&Secret::default()));
    }

    #[test]
    fn a_damaged_or_needless_file_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        fs::write(&path, "AB").expect("file");
        assert!(!SetupCode::prepare(Some(folder.path()), true).fits(&Secret::new("AB")));
        SetupCode::prepare(Some(folder.path()), false);
        assert!(!path.exists());
    }
}
