//! Main program: from the arguments to the exit code.

use std::env;
use std::process::ExitCode;

use crate::arguments::{Arguments, Invocation, parse};
use crate::client::{Answer, Client};
use crate::commands::table;
use crate::failure::Failure;
use crate::grammar::{Bad, Command, Kind, Verdict, Work};
use crate::{candidates, help, manual, output, request, special};

pub fn main() -> ExitCode {
    let code = words().and_then(|words| run(&table(), &words)).unwrap_or_else(|failure| {
        // If standard error is closed, the message is lost.
        let text = failure.text();
        if !text.is_empty() {
            output::warn(text.trim_end());
        }
        failure.exit_code()
    });
    ExitCode::from(code)
}

fn words() -> Result<Vec<String>, Failure> {
    let word = |word: std::ffi::OsString| {
        word.into_string()
            .map_err(|word| Failure::usage(format!("the argument {} is not UTF-8", word.to_string_lossy())))
    };
    env::args_os().skip(1).map(word).collect()
}

/// Runs a command and returns the exit code of its success.
fn run(table: &[Kind], words: &[String]) -> Result<u8, Failure> {
    match parse(table, words)? {
        Invocation::Help(None, _) => output::write(&help::overview(table))?,
        Invocation::Help(Some(kind), None) => output::write(&help::kind(kind))?,
        Invocation::Help(Some(kind), Some(command)) => output::write(&help::command(kind, command))?,
        Invocation::Version => output::write(&format!("gateway-ctl {}\n", env!("CARGO_PKG_VERSION")))?,
        Invocation::Candidates(words) => output::write(&candidates::lines(table, &words))?,
        Invocation::Manual(page) => output::write(&manual::render(page, table))?,
        Invocation::Run(kind, command, arguments) => {
            let answer = answer(table, kind, command, &arguments)?;
            output::print(kind, command, &answer)?;
            return Ok(command.verdict.map_or(0, |verdict| exit_code(verdict, &answer)));
        }
    }
    Ok(0)
}

fn answer(table: &[Kind], kind: &Kind, command: &Command, arguments: &Arguments) -> Result<Answer, Failure> {
    match (command.work, command.calls.first()) {
        (Work::Special(special), _) => special::run(special, table, arguments),
        (Work::Call, Some(call)) => {
            let client = Client::from_environment()?;
            let (path, body) = request::build(&client, command, *call, arguments)?;
            client.call(call.method, &path, body.as_deref())
        }
        (Work::Pick, Some(call)) => {
            let client = Client::from_environment()?;
            let mut answer = client.get(call.path)?;
            let name = command.operands.first().and_then(|operand| arguments.operand(operand.name));
            let name = name.unwrap_or_default();
            let objects = answer.data.as_array().map_or(&[][..], Vec::as_slice);
            let noun = kind.name.trim_end_matches('s').replace('-', " ");
            match request::find(objects, name)?.cloned() {
                Some(object) => answer.data = object,
                None => return Err(special::absent(&client, call.method, call.path, &noun, name)),
            }
            Ok(answer)
        }
        (Work::Call | Work::Pick, None) => Err(Failure::Other("this command calls nothing".to_owned())),
    }
}

fn exit_code(verdict: Verdict, answer: &Answer) -> u8 {
    let is_bad = match (answer.data.pointer(verdict.field), verdict.bad) {
        (Some(value), Bad::False) => value == false,
        (Some(value), Bad::Text(text)) => value == text,
        (None, _) => false,
    };
    if is_bad { verdict.exit } else { 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_bad_news_changes_the_exit_code() {
        let verify = Verdict { field: "/ok", bad: Bad::False, exit: 7 };
        let code = |data| exit_code(verify, &Answer { data, warnings: Vec::new(), total: None });
        assert_eq!(code(json!({"ok": true})), 0);
        assert_eq!(code(json!({"ok": false})), 7);
        assert_eq!(code(json!({})), 0);
    }
}
