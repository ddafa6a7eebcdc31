//! Shell completions. A script registers the client itself, which the shell calls at every key press.

use std::env;

use clap_complete::env::{CompleteEnv, Shells};

use crate::command_line::program;
use crate::commands::table;

const NAME: &str = "gateway-ctl";
/// Variable with the shell, which scripts set.
const VARIABLE: &str = "GATEWAY_CTL_COMPLETE";

/// A function that zsh loads from this file has to complete the first time, too.
const ZSH_LOADED: &str = "\
if [[ $funcstack[1] == _gateway-ctl ]]; then
    _clap_dynamic_completer_gateway_ctl \"$@\"
fi
";

/// Returns the script for a shell.
pub(crate) fn script(shell: &str) -> String {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(shell) {
        // Writing to a vector cannot fail.
        let _ = shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script);
    }
    let loaded = if shell == "zsh" { ZSH_LOADED } else { "" };
    String::from_utf8_lossy(&script).trim_start().to_owned() + loaded
}

/// Answers the call of a script, and reports whether there was one. An error is no text for a command line: it leaves
/// the answer empty.
pub(crate) fn answer() -> bool {
    CompleteEnv::with_factory(|| program(&table()))
        .var(VARIABLE)
        .try_complete(env::args_os(), env::current_dir().ok().as_deref())
        .unwrap_or(true)
}

#[cfg(test)]
mod tests;
