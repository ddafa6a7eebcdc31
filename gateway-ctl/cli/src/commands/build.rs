//! Constructors for the entries of the command table.

use crate::grammar::{
    Arity, Call, Column, Command, Flag, Method, Operand, ParameterKind, Prints, Verdict, Work,
};

pub(super) const fn column(heading: &'static str, field: &'static str) -> Column {
    Column { heading, field }
}

pub(super) const fn operand(name: &'static str, what: ParameterKind, arity: Arity) -> Operand {
    Operand { name, what, arity }
}

pub(super) const BODY: Operand = operand("json", ParameterKind::Json, Arity::Optional);

pub(super) fn get(path: &'static str) -> Call {
    Call { method: Method::Get, path }
}

pub(super) fn post(path: &'static str) -> Call {
    Call { method: Method::Post, path }
}

pub(super) fn put(path: &'static str) -> Call {
    Call { method: Method::Put, path }
}

pub(super) fn delete(path: &'static str) -> Call {
    Call { method: Method::Delete, path }
}

/// Returns a command that makes one call and prints the response as JSON; methods change the rest.
pub(super) fn command(verb: &'static str, call: Call, about: &'static str) -> Command {
    Command {
        verb,
        about,
        operands: Vec::new(),
        flags: &[],
        calls: vec![call],
        work: Work::Call,
        prints: Prints::Json,
        verdict: None,
        remark: None,
        examples: Vec::new(),
    }
}

/// Returns a `list` command that prints a table.
pub(super) fn list(call: Call, about: &'static str, columns: &'static [Column]) -> Command {
    command("list", call, about).prints(Prints::Table(columns))
}

impl Command {
    pub fn verb(mut self, verb: &'static str) -> Self {
        self.verb = verb;
        self
    }

    pub fn operands<const N: usize>(mut self, operands: [Operand; N]) -> Self {
        self.operands = operands.into();
        self
    }

    pub fn flags(mut self, flags: &'static [Flag]) -> Self {
        self.flags = flags;
        self
    }

    pub fn prints(mut self, prints: Prints) -> Self {
        self.prints = prints;
        self
    }

    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = Some(verdict);
        self
    }

    pub fn remark(mut self, remark: &'static str) -> Self {
        self.remark = Some(remark);
        self
    }

    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }

    pub fn also_calls(mut self, calls: &[Call]) -> Self {
        self.calls.extend_from_slice(calls);
        self
    }

    pub fn examples<const N: usize>(mut self, examples: [&str; N]) -> Self {
        self.examples = examples.map(str::to_owned).into();
        self
    }
}
