//! Grammar of commands: kinds, verbs, operands and flags, the API endpoints they call, their output.

pub use gateway_model::method::Method;

/// First word of a command: `devices`, `status`.
#[derive(Clone, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub group: Group,
    /// One sentence without its full stop.
    pub about: &'static str,
    /// Commands of the kind. The first one may be the default without a verb.
    pub commands: Vec<Command>,
}

/// Section of the overview.
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
            Group::State => "Status of the gateway",
            Group::Objects => "Objects",
            Group::Policy => "Policy and enforcement",
            Group::Network => "Network services",
            Group::Operations => "Operation",
        }
    }
}

/// Command: one verb of a kind.
#[derive(Clone, Debug)]
pub struct Command {
    /// Empty: the kind is the whole command.
    pub verb: &'static str,
    /// One sentence without its full stop.
    pub about: &'static str,
    pub operands: Vec<Operand>,
    pub flags: &'static [Flag],
    /// The API endpoints that it calls.
    pub calls: Vec<Call>,
    pub work: Work,
    pub prints: Prints,
    /// Condition under which a successful response is bad news.
    pub verdict: Option<Verdict>,
    /// Text printed to standard error after success.
    pub remark: Option<&'static str>,
    /// Arguments of the examples, without the name of the program.
    pub examples: Vec<String>,
}

/// Endpoint of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub method: Method,
    /// Path below the API root.
    pub path: &'static str,
}

/// Word after the verb. It replaces the placeholder of its name in the path; without one, it is a field of the body, or of the
/// query of a GET.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub name: &'static str,
    pub what: ParameterKind,
    pub arity: Arity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    Text,
    /// An object of the collection at this path: its id, or its name if unique.
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

/// `--name VALUE`, a field of the body, or of the query of a GET.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    pub value: &'static str,
    pub field: &'static str,
    pub integer: bool,
    pub required: bool,
    pub about: &'static str,
}

/// Execution of a command.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Makes the first call, with the operands and flags in path and body.
    Call,
    /// Gets the list of the first call, and picks the object of the operand: there is no endpoint for a single object.
    Pick,
    /// Does more than one call can.
    Special(Special),
}

/// Command that one call cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The client's version and, if reachable, the server's.
    Version,
    /// The views that show whether the gateway is healthy, as checks.
    Verify,
    /// Evaluates by MAC address, id or name.
    Evaluate,
    Block,
    Unblock,
    Completion,
    /// Clears a stored secret of a receiver of alerts.
    ClearSecret,
    /// Builds a support bundle, waits for it, and writes it to a file.
    Bundle,
}

/// Format of standard output.
#[derive(Clone, Copy, Debug)]
pub enum Prints {
    /// The data of the response as JSON.
    Json,
    /// A list, one object a line.
    Table(&'static [Column]),
    /// The same of a list in a field of the data.
    TableOf(&'static str, &'static [Column]),
    /// One object, one field a line.
    Fields,
    /// The grid of `/policy/leak-matrix`: its states are the columns.
    LeakMatrix,
    /// Text that is no response of the API.
    Text,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub heading: &'static str,
    /// Path of the field: names and indices, separated by dots. `n..` is the rest of a list.
    pub field: &'static str,
}

/// Field of the response with a value that is bad news.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// JSON pointer.
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

    /// Returns the command without a verb. Only commands that show something qualify: a whole export is never the
    /// default.
    pub fn default_command(&self) -> Option<&Command> {
        self.commands.first().filter(|command| matches!(command.verb, "" | "list" | "status"))
    }

    pub fn verbs(&self) -> impl Iterator<Item = &'static str> {
        self.commands.iter().map(|command| command.verb).filter(|verb| !verb.is_empty())
    }
}

impl Command {
    /// Returns the operand that is the body.
    pub fn body(&self) -> Option<&Operand> {
        self.operands.iter().find(|operand| matches!(operand.what, ParameterKind::Json | ParameterKind::File))
    }
}
