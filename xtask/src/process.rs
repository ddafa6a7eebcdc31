//! Execution of other programs: cargo without the variables of the running xtask, errors that name the command, and the
//! lock that prevents parallel runs.

use std::{
    env,
    ffi::OsString,
    fs,
    fs::File,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{paths, progress};

/// Returns the cargo that started this process, with the environment of an interactive call.
pub(crate) fn cargo() -> Command {
    interactive(Command::new(cargo_program()))
}

/// Returns the command at the lowest priority of the scheduler.
pub(crate) fn in_background(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "39"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    nice
}

fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn interactive(command: Command) -> Command {
    let mut command = without_package_variables(command);
    command.current_dir(paths::root());
    command
}

/// Removes the variables in which `cargo run` describes the package xtask. They are wrong for another build.
pub(crate) fn without_package_variables(mut command: Command) -> Command {
    for (name, _) in env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|p| name.starts_with(p))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Runs to the end with output on the terminal and no input.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a build, which shows its own progress, and reports its duration.
pub(crate) fn build(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("=> build of {what} (with nothing built yet: 10 to 15 minutes on two processors)");
    let start = Instant::now();
    run(command)?;
    eprintln!("   build of {what}: done after {}", progress::elapsed(start.elapsed()));
    Ok(())
}

/// Runs to the end and returns the standard output. The standard error goes into the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", shown(command), output.status, complaint.trim());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something else than text", shown(command)))
}

/// Returns program and arguments as a shell command.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Finds a program like a shell does, including the administrators' folders that PATH may omit.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(administrators)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Fails with the command to type if the user is not root.
pub(crate) fn require_root(why: &str) -> Result<()> {
    if is_root() {
        return Ok(());
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    bail!(
        "root is needed: {why}. Run:\n    sudo env \"PATH=$PATH\" \"HOME=$HOME\" cargo xtask {}",
        arguments.join(" ")
    );
}

/// Takes the lock, held until dropped. A second run waits and reports that.
pub(crate) fn lock(name: &str) -> Result<File> {
    let path = paths::lock(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        eprintln!("xtask: waiting for another run ({name})");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_in_the_background_has_its_arguments_its_environment_and_the_lowest_priority() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $(nice) \"$NAME\" $(pwd)"]).env("NAME", "a b").current_dir("/");
        assert_eq!(output(&mut in_background(&command)).unwrap().trim(), "19 a b /");
    }
}
