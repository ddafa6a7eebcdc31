//! Shell examples of the documentation: they parse, and their programs and API calls exist.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::document::{Block, Document};
use super::openapi::OpenApi;
use super::schema;
use super::shell::{self, UNKNOWN};
use crate::process;

const LANGUAGE: &str = "sh";
const API: &str = "http://127.0.0.1:8080/api/v1";
/// Kinds of the client that take an operand instead of a verb.
const WITHOUT_VERB: [&str; 4] = ["apply", "evaluate", "rollback", "validate"];

/// References of the example checks.
#[derive(Debug)]
pub(super) struct Reference {
    pub openapi: OpenApi,
    /// Command lines of `gateway-ctl` that its tests run.
    pub client: Vec<Vec<String>>,
    /// Returns true if `cargo xtask` takes the arguments.
    pub xtask: fn(&[String]) -> bool,
}

/// Request of a `curl` command.
#[derive(Debug, Default)]
struct Request {
    method: Option<String>,
    url: Option<String>,
    body: Option<String>,
    is_form: bool,
    headers: Vec<String>,
}

pub(super) fn check(document: &Document, reference: &Reference) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut files = BTreeMap::new();
    for block in document.blocks().iter().filter(|block| block.language == LANGUAGE) {
        if let Err(error) = process::output(Command::new("sh").args(["-n", "-c", &block.text])) {
            problems.push(document.at(block.line, &format!("the shell does not parse this: {error:#}")));
            continue;
        }
        problems.extend(check_block(block, reference, &mut files).iter().map(|p| document.at(block.line, p)));
    }
    Ok(problems)
}

fn check_block(block: &Block, reference: &Reference, files: &mut BTreeMap<String, String>) -> Vec<String> {
    let script = shell::parse(&block.text, &[("api", API)]);
    files.extend(script.files);
    let mut problems = Vec::new();
    for words in &script.commands {
        let Some((program, arguments)) = words.split_first() else { continue };
        let checked = match (program.as_str(), arguments.first().map(String::as_str)) {
            ("curl", _) => check_curl(arguments, &reference.openapi, files),
            ("gateway-ctl", _) => check_client(arguments, &reference.client),
            ("cargo", Some("xtask")) if !(reference.xtask)(&arguments[1..]) => {
                Err(vec!["xtask does not take these arguments".to_owned()])
            }
            _ => Ok(()),
        };
        for problem in checked.err().into_iter().flatten() {
            problems.push(format!("`{}`: {problem}", words.join(" ")));
        }
    }
    problems
}

fn check_client(arguments: &[String], known: &[Vec<String>]) -> Result<(), Vec<String>> {
    let Some(kind) = arguments.first() else { return Ok(()) };
    if kind.starts_with('-') || kind.starts_with("__") {
        return Ok(());
    }
    let mut of_kind = known.iter().filter(|command| command.first() == Some(kind)).peekable();
    if of_kind.peek().is_none() {
        return Err(vec![format!("no test of the client runs `{kind}`")]);
    }
    match arguments.get(1) {
        Some(verb) if !WITHOUT_VERB.contains(&kind.as_str()) && !of_kind.any(|c| c.get(1) == Some(verb)) => {
            Err(vec![format!("no test of the client runs `{kind} {verb}`")])
        }
        _ => Ok(()),
    }
}

fn check_curl(
    arguments: &[String],
    api: &OpenApi,
    files: &BTreeMap<String, String>,
) -> Result<(), Vec<String>> {
    let one = |problem: String| vec![problem];
    let request = request(arguments).map_err(one)?;
    let url = request.url.as_deref().ok_or_else(|| one("there is no URL".to_owned()))?;
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (path, query) = after_scheme.split_once('?').unwrap_or((after_scheme, ""));
    let path = path.find('/').map_or("/", |at| &path[at..]);
    let path = path.strip_prefix("/api/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let method = request.method.as_deref().unwrap_or(if request.body.is_some() || request.is_form {
        "POST"
    } else {
        "GET"
    });
    let operation = api.operation(method, path).map_err(one)?;
    let names = query.split('&').filter(|pair| !pair.is_empty());
    let names = names.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    let mut problems: Vec<String> = names
        .filter(|name| !operation.takes_query(name))
        .map(|name| format!("{method} {path} takes no `{name}`"))
        .collect();
    let Some(text) = request.json(files) else { return none_or(problems) };
    if !request.headers.iter().any(|header| header.eq_ignore_ascii_case("content-type: application/json")) {
        problems.push("JSON needs the header Content-Type: application/json".to_owned());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(body) => match operation.json_schema() {
            Some(schema) => problems.extend(schema::check(&api.document, schema, &body)),
            None => problems.push(format!("{method} {path} takes no JSON")),
        },
        Err(error) => problems.push(format!("the body is not JSON: {error}")),
    }
    none_or(problems)
}

fn none_or(problems: Vec<String>) -> Result<(), Vec<String>> {
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

impl Request {
    /// Returns the JSON of the body, if the example shows it.
    fn json<'a>(&'a self, files: &'a BTreeMap<String, String>) -> Option<&'a str> {
        let body = self.body.as_deref().filter(|body| *body != UNKNOWN)?;
        match body.strip_prefix('@') {
            Some(file) => files.get(file).map(String::as_str),
            None => Some(body),
        }
    }
}

fn request(arguments: &[String]) -> Result<Request, String> {
    let mut request = Request::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value =
            || arguments.next().cloned().ok_or_else(|| format!("curl needs a value after {argument}"));
        match argument.as_str() {
            "-X" => request.method = Some(value()?),
            "-H" => request.headers.push(value()?),
            "-d" | "--data-binary" => request.body = Some(value()?),
            "-F" => {
                value()?;
                request.is_form = true;
            }
            "-b" | "-c" | "-o" | "--cacert" | "--unix-socket" => drop(value()?),
            "-s" | "-f" | "-i" | "-N" => {}
            option if option.starts_with('-') => return Err(format!("the check does not know {option}")),
            url => request.url = Some(url.to_owned()),
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(example: &str) -> Vec<String> {
        let body =
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let post = json!({"requestBody": {"content": {"application/json": {"schema": body}}}});
        let list = json!({"parameters": [{"in": "query", "name": "status"}]});
        let paths = json!({"/things": {"get": list, "post": post}, "/things/{id}": {"delete": {}}, "/metrics": {"get": {}}});
        let client = ["things list", "things get a", "evaluate laptop"];
        let reference = Reference {
            openapi: OpenApi { document: json!({"paths": paths}) },
            client: client.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect(),
            xtask: |arguments| arguments == ["check"],
        };
        let document = Document { path: "a.md".to_owned(), text: format!("```sh\n{example}\n```\n") };
        check(&document, &reference).expect("the shell runs")
    }

    #[test]
    fn examples_that_work_have_no_problem() {
        let examples = [
            "curl -s $api/things",
            "curl -s \"$api/things?status=blocked\" | jq .",
            "curl -s $api/things -H 'Content-Type: application/json' -d '{\"name\":\"'$id'\"}'",
            "cat > a.json <<'E'\n{\"name\": \"a\"}\nE\ncurl $api/things -H 'Content-Type: application/json' -d @a.json",
            "curl -s -X DELETE $api/things/$id",
            "curl -s http://127.0.0.1:8080/metrics",
            "gateway-ctl things get b && gateway-ctl evaluate phone && gateway-ctl --help",
            "cargo xtask check",
        ];
        for example in examples {
            assert_eq!(problems(example), Vec::<String>::new(), "{example}");
        }
    }

    #[test]
    fn examples_that_do_not_work_are_found() {
        let examples = [
            ("curl -s $api/thing", "the API has no path /thing"),
            ("curl -s -X PUT $api/things", "the API has no PUT /things"),
            ("curl -s \"$api/things?state=x\"", "takes no `state`"),
            ("curl -s $api/things -d '{\"name\":\"a\"}'", "needs the header"),
            ("curl $api/things -H 'Content-Type: application/json' -d '{\"nam\":\"a\"}'", "no such field"),
            ("curl $api/things -H 'Content-Type: application/json' -d '{'", "is not JSON"),
            ("gateway-ctl thing", "no test of the client runs `thing`"),
            ("gateway-ctl things remove a", "no test of the client runs `things remove`"),
            ("cargo xtask chek", "xtask does not take these arguments"),
            ("curl 'x", "the shell does not parse this"),
        ];
        for (example, problem) in examples {
            let found = problems(example);
            assert!(found.iter().any(|found| found.contains(problem)), "{example}: {found:?}");
        }
    }
}
