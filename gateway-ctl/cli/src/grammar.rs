//! Grammar of commands: kinds, verbs, operands and flags, the rows of the API they call, what they print.

pub use gateway_model::method::Method;

/// The first word: `devices`, `status`.
#[derive(Clone, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub group: Group,
    /// One sentence without its full stop.
    pub about: &'static str,
    /// The first one may be meant when no verb is given.
    pub commands: Vec<Command>,
}

/// How the overview is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    State,
    Objects,
    Policy,
    Network,
    Operations,
}

impl Group {
    pub const ALL: [Group; 5] =
        [Group::State, Group::Policy, Group::Objects, Group::Network, Group::Operations];

    pub fn title(self) -> &'static str {
        match self {
            Group::State => "State of the gateway",
            Group::Objects => "Objects",
            Group::Policy => "Policy and enforcement",
            Group::Network => "Network services",
            Group::Operations => "Operation",
        }
    }
}

/// One verb of a kind.
#[derive(Clone, Debug)]
pub struct Command {
    /// Empty: the kind is the whole command.
    pub verb: &'static str,
    /// One sentence without its full stop.
    pub about: &'static str,
    pub operands: Vec<Operand>,
    pub flags: &'static [Flag],
    /// The rows of the API it calls.
    pub calls: Vec<Call>,
    pub work: Work,
    pub prints: Prints,
    /// When the answer itself is bad news.
    pub verdict: Option<Verdict>,
    /// Printed to standard error after success.
    pub remark: Option<&'static str>,
    /// Arguments of the examples, without the name of the program.
    pub examples: Vec<String>,
}

/// A row of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub method: Method,
    /// Below the API root.
    pub path: &'static str,
}

/// A word after the verb. It goes into the path where the path has a placeholder of its name, else into the body.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub name: &'static str,
    pub what: What,
    pub arity: Arity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Text,
    /// An object of the collection at this path: its id, or its name where that is unique.
    Object(&'static str),
    /// The body: a literal, a file or standard input.
    Json,
    /// The body: a file.
    File,
    /// One of these words.
    Word(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    One,
    Optional,
    Many,
}

/// `--name VALUE`, a field of the body.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    pub value: &'static str,
    pub field: &'static str,
    pub integer: bool,
    pub required: bool,
    pub about: &'static str,
}

/// How a command does its work.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// The first call, with the operands and flags in path and body.
    Call,
    /// The list of the first call, and of it the object that the operand names: there is no row for one of them.
    Pick,
    /// Something that one call cannot do.
    Special(Special),
}

/// Command that one call cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The client's version and, if it can be reached, the server's
    Version,
    /// The views that tell whether all is well, as checks
    Verify,
    /// By address of the card, id or name
    Evaluate,
    Block,
    Unblock,
    Completion,
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug)]
pub enum Prints {
    /// The answer's data as JSON
    Json,
    /// A list, one object a line
    Table(&'static [Column]),
    /// One object, one field a line
    Fields,
    /// The grid of `/policy/leak-matrix`: its states are its columns
    LeakMatrix,
    /// Text that is no answer of the API
    Text,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub heading: &'static str,
    /// Names and indices with dots between; `n..` is the rest of a list.
    pub field: &'static str,
}

/// A field of the answer with a value that is bad news.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// JSON pointer
    pub field: &'static str,
    pub bad: Bad,
    pub exit: u8,
}

#[derive(Clone, Copy, Debug)]
pub enum Bad {
    False,
    Text(&'static str),
}

impl Kind {
    pub fn command(&self, verb: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.verb == verb)
    }

    /// What is meant when no verb is given: only what shows something, never by accident a whole export.
    pub fn default_command(&self) -> Option<&Command> {
        self.commands.first().filter(|command| matches!(command.verb, "" | "list" | "status"))
    }

    pub fn verbs(&self) -> Vec<&'static str> {
        self.commands.iter().map(|command| command.verb).filter(|verb| !verb.is_empty()).collect()
    }
}

impl Command {
    /// The operand that is the body.
    pub fn body(&self) -> Option<&Operand> {
        self.operands.iter().find(|operand| matches!(operand.what, What::Json | What::File))
    }
}
