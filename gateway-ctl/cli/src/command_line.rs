//! Command line: the table as commands of clap, which parses the words and writes help and errors.
//!
//! Completions come from the dynamic engine of clap_complete: a script calls the client with `GATEWAY_CTL_COMPLETE`, and
//! the gateway names objects within half a second; static scripts cannot offer objects. The engine is behind the feature
//! `unstable-dynamic`: an update may change the call between script and client, which the package installs together.
//! The client writes one manual page with roff, because clap_mangen writes a page for each of 138 commands. The features
//! `color` and `wrap_help` stay off: the client prints plain text.

use std::ffi::OsString;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, StyledStr, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, ValueHint};
use clap_complete::ArgValueCandidates;
use gateway_model::suggest;

use crate::candidates;
use crate::commands::unavailable;
use crate::failure::Failure;
use crate::grammar::{Arity, Command, Flag, Kind, Operand, ParameterKind};
use crate::help;

/// Parsed command line.
#[derive(Debug)]
pub(crate) enum Invocation<'a> {
    /// Help or the version.
    Text(String),
    Manual(Page),
    Run(&'a Kind, &'a Command, ArgMatches),
}

/// Manual page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Page {
    Client,
    Settings,
}

/// Hidden command that prints manual pages, for packages.
const MANUAL: &str = "__manual";
const CLIENT_PAGE: &str = "gateway-ctl.1";
const SETTINGS_PAGE: &str = "gateway.yaml.5";

/// Parses the words of a command line, with the name of the program.
pub(crate) fn parse(
    table: &[Kind],
    words: impl IntoIterator<Item = OsString>,
) -> Result<Invocation<'_>, Failure> {
    let words = normalized(words);
    let matches = match program(table).try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            return Err(Failure::CommandLine(advised(error, table, &words).render().to_string()));
        }
        Err(help) => return Ok(Invocation::Text(help.render().to_string())),
    };
    if let Some((MANUAL, matches)) = matches.subcommand() {
        let is_client = value(matches, "page") == Some(CLIENT_PAGE);
        return Ok(Invocation::Manual(if is_client { Page::Client } else { Page::Settings }));
    }
    let (kind, command, arguments) =
        chosen(table, &matches).ok_or_else(|| Failure::usage("a command is missing"))?;
    Ok(Invocation::Run(kind, command, arguments.clone()))
}

fn chosen<'a, 'm>(
    table: &'a [Kind],
    matches: &'m ArgMatches,
) -> Option<(&'a Kind, &'a Command, &'m ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    let kind = table.iter().find(|kind| kind.name == name)?;
    match matches.subcommand() {
        Some((verb, matches)) => Some((kind, kind.command(verb)?, matches)),
        None => Some((kind, kind.default_command()?, matches)),
    }
}

/// Returns the value of an argument, or the first of several.
pub(crate) fn value<'a>(arguments: &'a ArgMatches, name: &str) -> Option<&'a str> {
    values(arguments, name).first().copied()
}

pub(crate) fn values<'a>(arguments: &'a ArgMatches, name: &str) -> Vec<&'a str> {
    let values = arguments.try_get_many::<String>(name).ok().flatten();
    values.into_iter().flatten().map(String::as_str).collect()
}

/// Returns the whole program.
pub(crate) fn program(table: &[Kind]) -> clap::Command {
    let page =
        Arg::new("page").required(true).value_parser(PossibleValuesParser::new([CLIENT_PAGE, SETTINGS_PAGE]));
    clap::Command::new("gateway-ctl")
        .version(env!("CARGO_PKG_VERSION"))
        .about(help::ABOUT)
        .override_usage("gateway-ctl <kind> [verb] [argument...]\n       gateway-ctl help [kind [verb]]")
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\nOptions:\n{options}{after-help}")
        .after_help(help::overview(table))
        .subcommand_required(true)
        .subcommands(table.iter().map(kind))
        .subcommand(clap::Command::new(MANUAL).hide(true).arg(page))
}

fn kind(kind: &Kind) -> clap::Command {
    if let [only] = kind.commands.as_slice()
        && only.verb.is_empty()
    {
        return command(kind.name, only);
    }
    clap::Command::new(kind.name)
        .about(kind.about)
        .after_help(help::of_kind(kind))
        .disable_help_subcommand(true)
        .flatten_help(true)
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}\n\nVerbs:\n{subcommands}\n\nOptions:\n{options}{after-help}",
        )
        .subcommand_required(kind.default_command().is_none())
        .subcommands(
            kind.commands.iter().filter(|one| !one.verb.is_empty()).map(|one| command(one.verb, one)),
        )
}

fn command(name: &'static str, command: &Command) -> clap::Command {
    clap::Command::new(name)
        .about(command.about)
        .after_help(help::of_command(command))
        .args(command.operands.iter().map(operand))
        .args(command.flags.iter().map(flag))
}

fn operand(operand: &Operand) -> Arg {
    let mut arg = Arg::new(operand.name)
        .required(operand.arity != Arity::Optional)
        .value_parser(NonEmptyStringValueParser::new());
    if operand.arity == Arity::Many {
        arg = arg.action(ArgAction::Append).num_args(1..);
    }
    if let Some(text) = help::operand(operand) {
        arg = arg.help(text);
    }
    match operand.what {
        ParameterKind::Json | ParameterKind::File => arg.value_hint(ValueHint::FilePath),
        ParameterKind::Word(words) => arg.value_parser(PossibleValuesParser::new(words)),
        ParameterKind::Object(collection) => {
            arg.add(ArgValueCandidates::new(move || candidates::objects(collection)))
        }
        ParameterKind::Text => arg,
    }
}

fn flag(flag: &Flag) -> Arg {
    let parser =
        if flag.integer { ValueParser::new(whole_number) } else { NonEmptyStringValueParser::new().into() };
    Arg::new(flag.name)
        .long(flag.name)
        .value_name(flag.value)
        .help(flag.about)
        .required(flag.required)
        .allow_hyphen_values(true)
        .value_parser(parser)
}

fn whole_number(text: &str) -> Result<String, &'static str> {
    text.parse::<u64>().map(|number| number.to_string()).map_err(|_| "it must be a whole number")
}

/// Returns the words with `-` for `_` in the kind, as in the API.
fn normalized(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let is_help = words.get(1).is_some_and(|word| word == "help");
    if let Some(word) = words.get_mut(if is_help { 2 } else { 1 })
        && let Some(text) = word.to_str().filter(|text| !text.starts_with('_'))
    {
        *word = text.replace('_', "-").into();
    }
    if is_help {
        words.retain(|word| word != "-h" && word != "--help");
    }
    words
}

/// Adds what clap does not know to its error: where objects without a command are edited, and how JSON is quoted.
fn advised(mut error: clap::Error, table: &[Kind], words: &[OsString]) -> clap::Error {
    let mut typed = words.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| *word != "help");
    let kind = typed.next().and_then(|word| table.iter().find(|kind| kind.name == word));
    let advice = match (error.kind(), kind) {
        (ErrorKind::InvalidSubcommand, kind) => {
            let word = context(&error, ContextKind::InvalidSubcommand);
            let names: Vec<&str> = match kind {
                Some(kind) => kind.verbs().collect(),
                None => table.iter().map(|kind| kind.name).collect(),
            };
            let near = suggest::nearest(&word, names);
            if let Some(near) = near {
                // Of several similar words, clap does not name the nearest first.
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(near.to_owned()));
            }
            match kind {
                Some(kind) => unavailable::verb(kind.name, &word),
                None => unavailable::kind(&word).or_else(|| {
                    let words = unavailable::words().filter(|_| near.is_none());
                    suggest::nearest(&word, words).and_then(unavailable::kind)
                }),
            }
        }
        (ErrorKind::UnknownArgument, Some(kind)) => {
            let command = typed.next().and_then(|verb| kind.command(verb)).or_else(|| kind.default_command());
            command.and_then(|command| quoting(command, &context(&error, ContextKind::InvalidArg)))
        }
        (ErrorKind::MissingSubcommand, None) => {
            error.remove(ContextKind::ValidSubcommand);
            Some("gateway-ctl --help lists the commands")
        }
        _ => None,
    };
    if let Some(advice) = advice {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
    }
    error
}

fn context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => String::new(),
    }
}

fn quoting(command: &Command, word: &str) -> Option<&'static str> {
    let last = command.operands.last().map(|operand| operand.what);
    match (word.starts_with('-'), last) {
        (true, _) if command.flags.is_empty() => {
            Some("fields are given as JSON, not as options; after -- a word may begin with a dash")
        }
        (false, Some(ParameterKind::Json)) => Some("quote the JSON, so that the shell leaves it whole"),
        (false, Some(ParameterKind::Text)) => Some("quote the text, so that it is one word"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
