//! Imports between the files of one crate, read from their text.
//!
//! A name counts as imported from the file that defines it, and from each file that re-exports it on the way there. A
//! re-export alone is no import: a module that only declares and re-exports its submodules imports nothing. Test code is
//! excluded.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{self, Token};

/// Names that lead to a module from the root of its crate.
pub(super) type Path = Vec<String>;

/// Files of a crate by module.
#[derive(Debug, Default)]
pub(super) struct Crate {
    modules: BTreeMap<Path, Module>,
}

/// Names that a file defines and imports.
#[derive(Debug, Default)]
struct Module {
    imports: Vec<Import>,
    /// Paths in the code with at least two names.
    paths: BTreeSet<Path>,
    /// All names in the code, without those of declared modules.
    names: BTreeSet<String>,
    /// Names of items.
    items: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Import {
    path: Path,
    /// Name in this file; `*` for all names.
    name: String,
    is_public: bool,
}

/// The target of a path.
enum Target {
    Module(Path),
    /// Item, by the module of its file.
    Item(Path),
}

/// Limit for chains of re-exports, which also stops names that lead to themselves.
const MAX_STEPS: usize = 16;

impl Crate {
    pub(super) fn add(&mut self, module: Path, text: &str) {
        self.modules.insert(module, Module::read(&tokens::without_tests(tokens::read(text))));
    }

    /// Returns the modules that a module imports names from, each with one of the names.
    pub(super) fn imports(&self, of: &Path) -> BTreeMap<Path, String> {
        let mut taken = BTreeMap::new();
        let module = &self.modules[of];
        let is_used = |import: &&Import| !import.is_public || module.names.contains(&import.name);
        let imported = module.imports.iter().filter(is_used).map(|import| &import.path);
        for path in imported.chain(&module.paths) {
            let mut lookup = Lookup { files: &self.modules, re_exports: Vec::new() };
            let found = match lookup.find(of, path, MAX_STEPS) {
                Some(Target::Item(from)) => from,
                // All names of a module are imported, including re-exported ones.
                Some(Target::Module(from)) if module.takes_all(path) => from,
                _ => continue,
            };
            for from in lookup.re_exports.into_iter().chain([found]).filter(|from| from != of) {
                taken.entry(from).or_insert_with(|| path.last().cloned().unwrap_or_default());
            }
        }
        taken
    }

    pub(super) fn modules(&self) -> impl Iterator<Item = &Path> {
        self.modules.keys()
    }
}

/// Search for the target of a path.
struct Lookup<'a> {
    files: &'a BTreeMap<Path, Module>,
    /// Modules whose imports led to the target.
    re_exports: Vec<Path>,
}

impl Lookup<'_> {
    /// Resolves a path in a module. Returns `None` if it leads out of the crate.
    fn find(&mut self, at: &Path, path: &[String], steps: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.within(Path::new(), rest, true, steps),
            "self" => self.within(at.clone(), rest, true, steps),
            "super" => self.within(at.clone(), path, true, steps),
            _ => self.within(at.clone(), path, false, steps),
        }
    }

    /// Resolves a path within a module. `is_ours`: the path certainly begins in this crate.
    fn within(&mut self, at: Path, path: &[String], is_ours: bool, steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let Some((name, rest)) = path.split_first() else { return Some(Target::Module(at)) };
        if name == "super" {
            return self.within(at[..at.len().checked_sub(1)?].to_vec(), rest, true, steps);
        }
        let mut below = at.clone();
        below.push(name.clone());
        if self.files.contains_key(&below) {
            return self.within(below, rest, true, steps);
        }
        let module = self.files.get(&at)?;
        if module.items.contains(name) {
            return Some(Target::Item(at));
        }
        if let Some(import) = module.imports.iter().find(|import| import.name == *name) {
            self.re_exports.push(at.clone());
            return match self.find(&at, &import.path, steps)? {
                Target::Module(other) => self.within(other, rest, true, steps),
                item => Some(item),
            };
        }
        let all = module.imports.iter().filter(|import| import.name == "*");
        for import in all {
            let known = self.re_exports.len();
            self.re_exports.push(at.clone());
            if let Some(Target::Module(other)) = self.find(&at, &import.path, steps)
                && let Some(found) = self.within(other, path, false, steps)
            {
                return Some(found);
            }
            self.re_exports.truncate(known);
        }
        // Macro-generated definitions.
        is_ours.then_some(Target::Item(at))
    }
}

impl Module {
    fn read(tokens: &[Token<'_>]) -> Module {
        let mut module = Module::default();
        let mut inline = Inline::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            inline.enter(tokens, at);
            let after_path = at > 0 && matches!(tokens[at - 1], Token::Colons | Token::Mark('.'));
            match token {
                Token::Name("use") if !after_path => {
                    let end =
                        at + tokens[at..].iter().take_while(|token| **token != Token::Mark(';')).count();
                    let is_public = at > 0 && matches!(tokens[at - 1], Token::Name("pub") | Token::Mark(')'));
                    let mut imports = Vec::new();
                    tree(&mut tokens[at + 1..end].iter().peekable(), &Path::new(), &mut imports);
                    module.imports.extend(imports.into_iter().filter_map(|(path, name)| {
                        Some(Import { path: inline.outside(path)?, name, is_public })
                    }));
                    at = end;
                }
                Token::Name(name) if !after_path => {
                    let path = path_at(tokens, at);
                    let is_declared = at > 0 && tokens[at - 1] == Token::Name("mod");
                    if !is_declared {
                        module.names.insert((*name).to_owned());
                    }
                    if is_item(name)
                        && let Some(Token::Name(item)) = tokens.get(at + 1)
                    {
                        module.items.insert((*item).to_owned());
                    }
                    if let Some(path) = inline.outside(path).filter(|path| path.len() > 1) {
                        module.paths.insert(path);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        module
    }

    fn takes_all(&self, path: &Path) -> bool {
        self.imports.iter().any(|import| import.name == "*" && import.path == *path)
    }
}

fn is_item(keyword: &str) -> bool {
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static"].contains(&keyword)
}

fn path_at(tokens: &[Token<'_>], mut at: usize) -> Path {
    let mut path = Path::new();
    while let Some(Token::Name(name)) = tokens.get(at) {
        path.push((*name).to_owned());
        if tokens.get(at + 1) != Some(&Token::Colons) {
            break;
        }
        at += 2;
    }
    path
}

type Tokens<'a> = std::iter::Peekable<std::slice::Iter<'a, Token<'a>>>;

/// Parses the tree after `use`: paths with their local names.
fn tree(tokens: &mut Tokens<'_>, prefix: &Path, found: &mut Vec<(Path, String)>) {
    let mut path = prefix.clone();
    let mut name = None;
    while let Some(token) = tokens.next() {
        match token {
            Token::Name("as") => {
                if let Some(Token::Name(alias)) = tokens.next() {
                    name = Some((*alias).to_owned());
                }
            }
            Token::Name("self") if !path.is_empty() => {}
            Token::Name(part) => path.push((*part).to_owned()),
            Token::Mark('*') => name = Some("*".to_owned()),
            Token::Mark('{') => {
                while tokens.peek().is_some_and(|token| **token != Token::Mark('}')) {
                    tree(tokens, &path, found);
                    tokens.next_if(|token| **token == Token::Mark(','));
                }
                tokens.next();
                return;
            }
            _ => {}
        }
        if tokens.peek().is_none_or(|token| matches!(token, Token::Mark(',' | '}'))) {
            break;
        }
    }
    if let Some(last) = path.last() {
        let name = name.unwrap_or_else(|| last.clone());
        found.push((path, name));
    }
}

/// Open inline modules at a token.
#[derive(Default)]
struct Inline {
    depth: usize,
    /// Brace depth of each.
    open: Vec<usize>,
}

impl Inline {
    fn enter(&mut self, tokens: &[Token<'_>], at: usize) {
        match tokens[at] {
            Token::Mark('{') => {
                self.depth += 1;
                if at >= 2 && matches!(tokens[at - 2..at], [Token::Name("mod"), Token::Name(_)]) {
                    self.open.push(self.depth);
                }
            }
            Token::Mark('}') => {
                self.open.pop_if(|depth| *depth == self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// Returns a path as the file's own module would write it. `None` if it stays inside the file.
    fn outside(&self, mut path: Path) -> Option<Path> {
        let up = path.iter().take_while(|name| *name == "super").count().min(self.open.len());
        path.drain(..up);
        (up == 0 || path.len() > 1).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the modules that the first file imports names from. The first name of each file is its module's.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let module =
            |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut all = Crate::default();
        for (name, text) in files {
            all.add(module(name), text);
        }
        all.imports(&module(files[0].0)).keys().map(|path| path.join("::")).collect()
    }

    #[test]
    fn names_are_taken_from_where_they_are_defined_and_re_exported() {
        let root = ("", "mod a;\nmod b;\npub use b::{Thing as Other, deep::*};\n");
        let files = |text| {
            [("a", text), root, ("b", "pub mod deep;\npub struct Thing;"), ("b::deep", "pub fn far() {}")]
        };
        assert_eq!(imports(&files("use crate::Other;")), ["", "b"]);
        assert_eq!(imports(&files("use super::{Other, far};")), ["", "b", "b::deep"]);
        assert_eq!(imports(&files("use crate::b;\nfn f() { b::deep::far(); }")), ["b::deep"]);
        assert_eq!(imports(&files("fn f() -> crate::b::Thing { std::fs::read() }")), ["b"]);
        assert_eq!(imports(&files("use crate::b::deep::*;")), ["b::deep"]);
    }

    #[test]
    fn a_module_that_declares_and_re_exports_imports_nothing() {
        let child = ("child", "pub struct Item;\npub fn run() {}");
        assert!(imports(&[("", "mod child;\npub use child::Item;\n"), child]).is_empty());
        let namesake = ("child", "pub fn child() {}");
        assert!(imports(&[("", "mod child;\npub use child::child;\n"), namesake]).is_empty());
        assert_eq!(imports(&[("", "mod child;\npub use child::Item;\nfn f(_: Item) {}"), child]), ["child"]);
        assert_eq!(imports(&[("", "mod child;\nfn f() { child::run() }"), child]), ["child"]);
    }

    #[test]
    fn comments_texts_and_tests_import_nothing() {
        let text = "// use crate::b::B;\n/// [`crate::b::B`]\nconst A: &str = \"crate::b::B\";\n\
                    #[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n#[cfg(test)]\nuse crate::b::B;\n";
        assert!(imports(&[("a", text), ("b", "pub struct B;")]).is_empty());
    }

    #[test]
    fn a_module_with_a_body_belongs_to_its_file() {
        let text = "mod inner {\n    use super::X;\n    use super::super::b::B;\n}\nstruct X;";
        assert_eq!(imports(&[("a", text), ("", "mod a; mod b;"), ("b", "pub struct B;")]), ["b"]);
    }
}
