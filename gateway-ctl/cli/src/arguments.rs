//! Parser from the words of a command line to a command of the table.

use gateway_model::suggest;

use crate::commands::unavailable;
use crate::failure::Failure;
use crate::grammar::{Arity, Command, Flag, Kind, ParameterKind};
use crate::manual;

/// Parsed command line.
#[derive(Debug)]
pub enum Invocation<'a> {
    /// Help: the overview, or help on a kind or command.
    Help(Option<&'a Kind>, Option<&'a Command>),
    /// `--version`
    Version,
    /// `__complete`, for shell completions: words that may follow these.
    Candidates(Vec<String>),
    /// Manual page, for packages.
    Manual(&'static manual::Page),
    Run(&'a Kind, &'a Command, Arguments),
}

/// Operands and flags by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    operands: Vec<(&'static str, String)>,
    flags: Vec<(&'static str, String)>,
}

impl Arguments {
    /// Returns the first operand of this name.
    pub fn operand(&self, name: &str) -> Option<&str> {
        self.operands.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub fn operands(&self, name: &str) -> Vec<&str> {
        self.operands.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_str()).collect()
    }

    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Parses the words after the name of the program.
pub fn parse<'a>(table: &'a [Kind], words: &[String]) -> Result<Invocation<'a>, Failure> {
    let Some((first, rest)) = words.split_first() else {
        return Err(Failure::usage("a command is missing").advise("gateway-ctl --help lists them all"));
    };
    match first.as_str() {
        "-h" | "--help" => return Ok(Invocation::Help(None, None)),
        "-V" | "--version" => return Ok(Invocation::Version),
        "help" => return help(table, rest),
        "__complete" => return Ok(Invocation::Candidates(rest.to_vec())),
        "__manual" => {
            let page = rest.first().and_then(|name| manual::page(name));
            return page
                .map(Invocation::Manual)
                .ok_or_else(|| Failure::usage("there is no such manual page"));
        }
        _ => {}
    }
    let kind = kind(table, first)?;
    let asks_for_help = rest.iter().take_while(|word| *word != "--").any(|word| is_help(word));
    let named = rest.first().filter(|word| !word.is_empty()).and_then(|word| kind.command(word));
    if asks_for_help {
        return Ok(Invocation::Help(Some(kind), named.or_else(|| only_command(kind))));
    }
    let (command, rest) = match named {
        Some(command) => (command, &rest[1..]),
        None => (default_command(kind, rest)?, rest),
    };
    let arguments = read(kind, command, rest)?;
    Ok(Invocation::Run(kind, command, arguments))
}

fn is_help(word: &str) -> bool {
    matches!(word, "-h" | "--help")
}

fn help<'a>(table: &'a [Kind], words: &[String]) -> Result<Invocation<'a>, Failure> {
    let mut words = words.iter().filter(|word| !is_help(word));
    let Some(first) = words.next() else { return Ok(Invocation::Help(None, None)) };
    let kind = kind(table, first)?;
    let command = match words.next() {
        None => only_command(kind),
        Some(verb) => Some(kind.command(verb).ok_or_else(|| unknown_verb(kind, verb))?),
    };
    Ok(Invocation::Help(Some(kind), command))
}

fn only_command(kind: &Kind) -> Option<&Command> {
    match kind.commands.as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

fn kind<'a>(table: &'a [Kind], word: &str) -> Result<&'a Kind, Failure> {
    // Names accept - and _ alike, as in the API.
    let name = word.replace('_', "-");
    if let Some(found) = table.iter().find(|kind| kind.name == name) {
        return Ok(found);
    }
    if word.starts_with('-') {
        return Err(Failure::usage(format!("there is no option {word} before the command")).advise(
            "gateway-ctl has --help and --version; the form is: gateway-ctl KIND [VERB] [ARGUMENT...]",
        ));
    }
    let failure = Failure::usage(format!("there is no command {word:?}"));
    if let Some(pointer) = unavailable::kind(&name) {
        return Err(failure.advise(pointer));
    }
    if let Some(near) = suggest::nearest(&name, table.iter().map(|kind| kind.name)) {
        return Err(failure.advise(format!("Did you mean {near}?")));
    }
    let pointer = suggest::nearest(&name, unavailable::words()).and_then(unavailable::kind);
    Err(failure.advise(pointer.unwrap_or("gateway-ctl --help lists them all")))
}

fn default_command<'a>(kind: &'a Kind, rest: &[String]) -> Result<&'a Command, Failure> {
    let takes_words = |command: &Command| !command.operands.is_empty() || !command.flags.is_empty();
    match (kind.default_command(), rest.first()) {
        (Some(command), None) => Ok(command),
        (Some(command), Some(word)) if command.verb.is_empty() && kind.commands.len() == 1 => {
            if takes_words(command) || word == "--" {
                return Ok(command);
            }
            Err(Failure::usage(format!("{} takes no arguments, so {word:?} means nothing", kind.name)))
        }
        (_, Some(word)) => Err(unknown_verb(kind, word)),
        (None, None) => Err(Failure::usage(format!("{} needs a verb", kind.name)).advise(verbs(kind))),
    }
}

fn unknown_verb(kind: &Kind, word: &str) -> Failure {
    let failure = Failure::usage(format!("{} has no verb {word:?}", kind.name));
    if let Some(pointer) = unavailable::verb(kind.name, word) {
        return failure.advise(pointer);
    }
    match suggest::nearest(word, kind.verbs()) {
        Some(near) => failure.advise(format!("Did you mean {} {near}?", kind.name)),
        None => failure.advise(verbs(kind)),
    }
}

fn verbs(kind: &Kind) -> String {
    match kind.verbs().as_slice() {
        [] => format!("{} stands alone", kind.name),
        verbs => format!("Verbs: {}", verbs.join(", ")),
    }
}

fn read(kind: &Kind, command: &Command, words: &[String]) -> Result<Arguments, Failure> {
    let mut arguments = Arguments::default();
    let mut places = command.operands.iter().peekable();
    let mut words = words.iter();
    let mut options = true;
    while let Some(word) = words.next() {
        if options && word == "--" {
            options = false;
        } else if options && word.starts_with('-') && word != "-" {
            let (flag, value) = flag(command, word)?;
            let value = match value {
                Some(value) => value.to_owned(),
                None => words.next().cloned().ok_or_else(|| missing_value(flag))?,
            };
            check(flag, &value)?;
            if arguments.flag(flag.name).is_some() {
                return Err(Failure::usage(format!("--{} stands there twice", flag.name)));
            }
            arguments.flags.push((flag.name, value));
        } else {
            let Some(place) = places.peek() else { return Err(too_many(kind, command, word)) };
            if let ParameterKind::Word(allowed) = place.what
                && !allowed.contains(&word.as_str())
            {
                return Err(Failure::usage(format!("{word:?} is no {}", place.name))
                    .advise(format!("It is one of: {}", allowed.join(", "))));
            }
            if word.is_empty() {
                return Err(Failure::usage(format!("{} is empty", place.name)));
            }
            arguments.operands.push((place.name, word.clone()));
            if place.arity != Arity::Many {
                places.next();
            }
        }
    }
    for operand in places {
        let is_given = arguments.operand(operand.name).is_some();
        if operand.arity != Arity::Optional && !is_given {
            return Err(synopsis(Failure::usage(format!("{} is missing", operand.name)), kind, command));
        }
    }
    for flag in command.flags.iter().filter(|flag| flag.required) {
        if arguments.flag(flag.name).is_none() {
            let failure = Failure::usage(format!("--{} <{}> is missing", flag.name, flag.value));
            return Err(synopsis(failure, kind, command));
        }
    }
    Ok(arguments)
}

fn flag<'a>(command: &'a Command, word: &'a str) -> Result<(&'a Flag, Option<&'a str>), Failure> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let known = || command.flags.iter().map(|flag| flag.name);
    if let Some(flag) = command.flags.iter().find(|flag| name.strip_prefix("--") == Some(flag.name)) {
        return Ok((flag, value));
    }
    let failure = Failure::usage(format!("there is no option {name} here"));
    let typed = name.trim_start_matches('-');
    Err(match suggest::nearest(typed, known()) {
        Some(near) => failure.advise(format!("Did you mean --{near}?")),
        None if command.flags.is_empty() => {
            failure.advise("Fields are given as JSON, not as options. After -- a word may begin with a dash.")
        }
        None => failure.advise(format!(
            "Options: {}",
            known().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", ")
        )),
    })
}

fn missing_value(flag: &Flag) -> Failure {
    Failure::usage(format!("--{} needs a value: --{} <{}>", flag.name, flag.name, flag.value))
}

fn check(flag: &Flag, value: &str) -> Result<(), Failure> {
    if value.is_empty() {
        return Err(missing_value(flag));
    }
    if flag.integer && value.parse::<u64>().is_err() {
        return Err(Failure::usage(format!("--{} must be a whole number (got {value:?})", flag.name)));
    }
    Ok(())
}

fn too_many(kind: &Kind, command: &Command, word: &str) -> Failure {
    let failure = Failure::usage(format!("{word:?} is one argument too many"));
    let failure = synopsis(failure, kind, command);
    match command.operands.last() {
        Some(last) if last.what == ParameterKind::Json => {
            failure.advise("Quote the JSON, so that the shell leaves it whole.")
        }
        Some(last) if last.what == ParameterKind::Text => {
            failure.advise("Quote the text, so that it is one word.")
        }
        _ => failure,
    }
}

fn synopsis(failure: Failure, kind: &Kind, command: &Command) -> Failure {
    failure.advise(format!("The form is: {}", crate::help::synopsis(kind, command)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    fn asked(line: &str) -> String {
        let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match parse(&commands::table(), &words) {
            Ok(Invocation::Run(kind, command, arguments)) => {
                let words = arguments.operands.iter().chain(&arguments.flags);
                let words: Vec<String> = words.map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {} {}", kind.name, command.verb, words.join(" ")).trim().to_owned()
            }
            Ok(Invocation::Help(kind, command)) => {
                format!("help {:?} {:?}", kind.map(|kind| kind.name), command.map(|command| command.verb))
            }
            Ok(other) => format!("{other:?}"),
            Err(failure) => {
                assert_eq!(failure.exit_code(), 2);
                failure.text()
            }
        }
    }

    #[test]
    fn the_verb_may_be_left_out() {
        assert_eq!(asked("devices"), "devices list");
        assert_eq!(asked("device_groups"), "device-groups list");
        assert_eq!(asked("dns"), "dns status");
        assert_eq!(asked("enforce"), "enforce");
        assert_eq!(asked("enforce reconcile"), "enforce reconcile");
        assert_eq!(asked("capture"), "capture list");
        assert_eq!(asked("evaluate laptop"), "evaluate  device=laptop");
    }

    #[test]
    fn a_backup_is_not_printed_by_accident() {
        assert!(asked("backup").contains("Verbs: export, import"));
    }

    #[test]
    fn operands_and_flags_find_their_names() {
        assert_eq!(asked("devices update 7 {}"), "devices update id=7 json={}");
        assert_eq!(asked("dns block a b c"), "dns block domain=a domain=b domain=c");
        assert_eq!(asked("capture start --count=5 --iface eth1"), "capture start count=5 iface=eth1");
        assert_eq!(asked("ai query -- --why"), "ai query text=--why");
        assert_eq!(asked("apply -"), "apply  file=-");
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        assert!(asked("devcies").contains("Did you mean devices?"));
        assert!(asked("devices creat {}").contains("Did you mean devices create?"));
        assert!(asked("devices get").contains("The form is: gateway-ctl devices get <id>"));
        assert!(asked("devices create {\"a\": 1}").contains("Quote the JSON"));
        assert!(asked("status now").contains("takes no arguments"));
        assert!(asked("capture start --ifcae x").contains("Did you mean --iface?"));
        assert!(asked("capture start").contains("--iface <interface> is missing"));
        assert!(asked("capture start --iface").contains("needs a value"));
        assert!(asked("capture start --iface a --iface b").contains("twice"));
        assert!(asked("capture start --iface a --count many").contains("whole number"));
        assert!(asked("federation sync").contains("--peer <url> is missing"));
        assert!(asked("devices create --name x").contains("as JSON, not as options"));
        assert!(asked("completion tcsh").contains("bash, zsh, fish"));
        assert!(asked("").contains("a command is missing"));
        assert!(asked("--json status").contains("before the command"));
    }

    #[test]
    fn kinds_without_a_command_point_elsewhere() {
        assert!(asked("policies list").contains("/api/v1/routing/policies"));
        assert!(asked("polices").contains("/api/v1/routing/policies"));
        assert!(asked("bridges").contains("gateway-ctl apply plan.json"));
        assert!(asked("tunnels create {}").contains("/api/v1/tunnels"));
        assert!(asked("exceptions update 1 {}").contains("delete the exception and create another"));
    }

    #[test]
    fn help_is_there_at_every_level() {
        assert_eq!(asked("--help"), "help None None");
        assert_eq!(asked("help"), "help None None");
        assert_eq!(asked("devices --help"), "help Some(\"devices\") None");
        assert_eq!(asked("devices create x -h"), "help Some(\"devices\") Some(\"create\")");
        assert_eq!(asked("help devices create"), "help Some(\"devices\") Some(\"create\")");
        assert_eq!(asked("status -h"), "help Some(\"status\") Some(\"\")");
    }
}
