//! Main program: from the arguments to the exit code.

use std::env;
use std::process::ExitCode;

use clap::ArgMatches;

use crate::client::{Answer, Client};
use crate::command_line::{Invocation, Page, parse, value};
use crate::commands::table;
use crate::failure::Failure;
use crate::grammar::{Bad, Command, Kind, Verdict, Work};
use crate::{completion, manual, output, request, special};

pub fn main() -> ExitCode {
    if completion::answer() {
        return ExitCode::SUCCESS;
    }
    let code = run(&table()).unwrap_or_else(|failure| {
        // If standard error is closed, the message is lost.
        let text = failure.text();
        if !text.is_empty() {
            output::warn(text.trim_end());
        }
        failure.exit_code()
    });
    ExitCode::from(code)
}

/// Runs the command of the command line and returns the exit code of its success.
fn run(table: &[Kind]) -> Result<u8, Failure> {
    match parse(table, env::args_os())? {
        Invocation::Text(text) => output::write(&text).map(|()| 0),
        Invocation::Manual(Page::Client) => output::write(&manual::client(table)).map(|()| 0),
        Invocation::Manual(Page::Settings) => output::write(&manual::settings::page()).map(|()| 0),
        Invocation::Run(kind, command, arguments) => {
            let answer = answer(kind, command, &arguments)?;
            output::print(kind, command, &answer)?;
            Ok(command.verdict.map_or(0, |verdict| exit_code(verdict, &answer)))
        }
    }
}

fn answer(kind: &Kind, command: &Command, arguments: &ArgMatches) -> Result<Answer, Failure> {
    match (command.work, command.calls.first()) {
        (Work::Special(special), _) => special::run(special, arguments),
        (Work::Call, Some(call)) => {
            let client = Client::from_environment()?;
            let (path, body) = request::build(&client, command, *call, arguments)?;
            client.call(call.method, &path, body.as_deref())
        }
        (Work::Pick, Some(call)) => {
            let client = Client::from_environment()?;
            let mut answer = client.get(call.path)?;
            let name = command.operands.first().and_then(|operand| value(arguments, operand.name));
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
