//! One module: its imports, its directives and its declarations, with the names that each of them uses. `link` reads each module once. Declarations are
//! found by brackets and keywords, without understanding bodies: every word in one may be a use. Conditions take away bytes before anything else sees them.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::Origin;
use crate::conditions::{self, Fault};
use crate::error::Error;
use crate::lex::{self, Kind, Token};

/// An imported name.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    /// The path from the package's or the module's root: `["package", "noise", "fbm"]`.
    pub path: Vec<String>,
    pub place: Range<usize>,
}

/// A name in a text: one word, or a path with its module.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    pub path: Vec<String>,
    pub place: Range<usize>,
}

/// A declaration at module scope.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// The name; `None` for `const_assert`.
    pub name: Option<String>,
    pub place: Range<usize>,
    /// The modules that it names, itself included.
    pub uses: Vec<Use>,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub origin: Origin,
    pub imports: HashMap<String, Import>,
    /// Modules all of whose declarations are imported.
    pub globs: Vec<Import>,
    /// The bytes of import statements.
    pub import_places: Vec<Range<usize>>,
    /// `enable` and `requires`.
    pub directives: Vec<Range<usize>>,
    pub declarations: Vec<Declaration>,
    /// The declaration of each name.
    pub by_name: HashMap<String, usize>,
    /// Bytes that conditions take away.
    pub cuts: Vec<Range<usize>>,
}

impl Module {
    /// Reads a module. `asked` gets the features that its conditions name.
    pub(crate) fn read(
        origin: Origin,
        is_on: &dyn Fn(&str) -> bool,
        asked: &mut BTreeSet<String>,
    ) -> Result<Self, Error> {
        let text = origin.text.clone();
        let fault = |fault: Fault| Error::at(&origin, fault.place, fault.message);
        let tokens = lex::tokens(&text).map_err(|at| {
            let end = text.get(at..).and_then(|rest| rest.chars().next()).map_or(at, |found| at + found.len_utf8());
            Error::at(&origin, at..end, "WGSL has no such character, or a comment has no end".to_owned())
        })?;
        let mut feature = |name: &str| {
            asked.insert(name.to_owned());
            is_on(name)
        };
        let kept = conditions::decide(&text, &tokens, &mut feature).map_err(fault)?;
        let mut module = Self {
            origin: origin.clone(),
            imports: HashMap::new(),
            globs: Vec::new(),
            import_places: Vec::new(),
            directives: Vec::new(),
            declarations: Vec::new(),
            by_name: HashMap::new(),
            cuts: kept.cuts,
        };
        Parser { text: &text, tokens: &kept.tokens, at: 0 }.module(&mut module).map_err(fault)?;
        Ok(module)
    }
}

/// Braces within an import, at most.
const DEEPEST: usize = 64;

struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
}

impl<'t> Parser<'t> {
    fn token(&self, at: usize) -> Option<Token> {
        self.tokens.get(at).copied()
    }

    fn word_at(&self, at: usize) -> &'t str {
        match self.token(at) {
            Some(token) if token.kind == Kind::Word => self.text.get(token.start..token.end).unwrap_or_default(),
            _ => "",
        }
    }

    fn is(&self, at: usize, sign: u8) -> bool {
        self.token(at).is_some_and(|token| token.is(sign))
    }

    fn is_path(&self, at: usize) -> bool {
        self.token(at).is_some_and(|token| token.kind == Kind::Path)
    }

    fn here(&self) -> Range<usize> {
        self.token(self.at).map_or(self.text.len()..self.text.len(), |token| token.start..token.end)
    }

    fn expected(&self, what: &str) -> Fault {
        Fault { message: format!("expected {what}"), place: self.here() }
    }

    fn bytes(&self, from: usize, to: usize) -> Range<usize> {
        let start = self.token(from).map_or(self.text.len(), |token| token.start);
        let end = to.checked_sub(1).and_then(|last| self.token(last)).map_or(start, |token| token.end);
        start..end.max(start)
    }

    fn module(&mut self, module: &mut Module) -> Result<(), Fault> {
        while self.at < self.tokens.len() {
            let start = self.at;
            self.skip_attributes()?;
            match self.word_at(self.at) {
                "import" => {
                    self.at += 1;
                    self.import(Vec::new(), module, 0)?;
                    if !self.is(self.at, b';') {
                        return Err(self.expected("`;` after the import"));
                    }
                    self.at += 1;
                    module.import_places.push(self.bytes(start, self.at));
                }
                word @ ("enable" | "requires" | "diagnostic") => {
                    self.to(b";")?;
                    self.at += 1;
                    if word != "diagnostic" {
                        module.directives.push(self.bytes(start, self.at));
                    }
                }
                "" if self.is(self.at, b';') => self.at += 1,
                _ => self.declaration(start, module)?,
            }
        }
        for (name, import) in &module.imports {
            if module.by_name.contains_key(name) {
                let message = format!(
                    "`{name}` is imported and declared in this file too: import it under another name (`{name} as other`)"
                );
                return Err(Fault { message, place: import.place.clone() });
            }
        }
        Ok(())
    }

    /// One path of an import, or the content of its braces.
    fn import(&mut self, mut path: Vec<String>, module: &mut Module, depth: usize) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(self.expected("fewer braces"));
        }
        loop {
            if self.is(self.at, b'{') {
                self.at += 1;
                while !self.is(self.at, b'}') {
                    self.import(path.clone(), module, depth + 1)?;
                    if self.is(self.at, b',') {
                        self.at += 1;
                    } else if !self.is(self.at, b'}') {
                        return Err(self.expected("`,` or `}` in the import"));
                    }
                }
                self.at += 1;
                return Ok(());
            }
            let place = self.here();
            if self.is(self.at, b'*') && !path.is_empty() {
                self.at += 1;
                module.globs.push(Import { path, place });
                return Ok(());
            }
            let word = self.word_at(self.at);
            if word.is_empty() {
                return Err(self.expected("a name, `{` or `*` in the import"));
            }
            path.push(word.to_owned());
            self.at += 1;
            if self.is_path(self.at) {
                self.at += 1;
                continue;
            }
            let mut local = word;
            if self.word_at(self.at) == "as" {
                self.at += 1;
                local = self.word_at(self.at);
                if local.is_empty() {
                    return Err(self.expected("a name after `as`"));
                }
                self.at += 1;
            }
            if matches!(local, "package" | "super") {
                let message = "an import must name an item: `import super::file::name;`".to_owned();
                return Err(Fault { message, place });
            }
            if module.imports.contains_key(local) {
                let message = format!("`{local}` is imported twice: give one another name (`{local} as other`)");
                return Err(Fault { message, place });
            }
            module.imports.insert(local.to_owned(), Import { path, place });
            return Ok(());
        }
    }

    fn skip_attributes(&mut self) -> Result<(), Fault> {
        while self.is(self.at, b'@') {
            self.at += 2;
            if self.is(self.at, b'(') {
                self.close()?;
            }
        }
        Ok(())
    }

    /// Skips from an opening bracket past the one that closes it.
    fn close(&mut self) -> Result<(), Fault> {
        let open = self.here();
        let mut depth = 0_usize;
        while let Some(token) = self.token(self.at) {
            self.at += 1;
            match token.kind {
                Kind::Sign(b'(' | b'[' | b'{') => depth += 1,
                Kind::Sign(b')' | b']' | b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(Fault { message: "this bracket is never closed".to_owned(), place: open })
    }

    /// Skips to the first of some signs outside of brackets.
    fn to(&mut self, signs: &[u8]) -> Result<(), Fault> {
        let start = self.here();
        while let Some(token) = self.token(self.at) {
            match token.kind {
                Kind::Sign(sign) if signs.contains(&sign) => return Ok(()),
                Kind::Sign(b'(' | b'[' | b'{') => self.close()?,
                _ => self.at += 1,
            }
        }
        let end = if signs == b";" { "`;`" } else { "`{`" };
        Err(Fault { message: format!("the text ends before the {end} of this declaration"), place: start })
    }

    fn declaration(&mut self, start: usize, module: &mut Module) -> Result<(), Fault> {
        let keyword = self.word_at(self.at);
        let mut name_at = self.at + 1;
        match keyword {
            "fn" | "struct" => {
                self.to(b"{")?;
                self.close()?;
            }
            "const" | "override" | "let" | "var" | "alias" | "const_assert" => {
                if keyword == "var" && self.is(name_at, b'<') {
                    while name_at < self.tokens.len() && !self.is(name_at, b'>') {
                        name_at += 1;
                    }
                    name_at += 1;
                }
                self.to(b";")?;
                self.at += 1;
            }
            "" => return Err(self.expected("a declaration")),
            _ => {
                return Err(self.expected(
                    "a declaration: import, enable, fn, struct, var, const, override, alias or const_assert",
                ));
            }
        }
        let place = self.bytes(start, self.at);
        let (name, name_place) = if keyword == "const_assert" {
            (None, place.start..place.start)
        } else {
            let word = self.word_at(name_at);
            if word.is_empty() {
                self.at = name_at;
                return Err(self.expected("a name"));
            }
            (Some(word.to_owned()), self.bytes(name_at, name_at + 1))
        };
        if let Some(name) = &name {
            let number = module.declarations.len();
            if module.by_name.insert(name.clone(), number).is_some() {
                let message = format!("`{name}` is declared twice in this file: rename one");
                return Err(Fault { message, place: name_place });
            }
        }
        let uses = self.uses(start, self.at, keyword == "struct");
        module.declarations.push(Declaration { name, place, uses });
        Ok(())
    }

    /// The names in some tokens that may be of module scope. Locals are among them: whoever renames a name renames its locals too, so they
    /// stay what they are.
    fn uses(&self, from: usize, to: usize, is_struct: bool) -> Vec<Use> {
        let mut uses = Vec::new();
        let mut at = from;
        while at < to {
            let word = self.word_at(at);
            if word.is_empty() {
                // A member, a component, or an attribute's name.
                at += if self.is(at, b'.') && !self.word_at(at + 1).is_empty() { 2 } else { 1 };
                if self.is(at - 1, b'@') {
                    let opens = self.is(at + 1, b'(');
                    let is_vocabulary = matches!(self.word_at(at), "builtin" | "interpolate" | "diagnostic");
                    at += 1;
                    while opens && is_vocabulary && at < to && !self.is(at, b')') {
                        at += 1;
                    }
                }
                continue;
            }
            if word == "var" && self.is(at + 1, b'<') {
                while at < to && !self.is(at, b'>') {
                    at += 1;
                }
                continue;
            }
            let first = at;
            at += 1;
            let is_member = is_struct && self.is(at, b':');
            if (is_keyword(word) || is_member) && !self.is_path(at) {
                continue;
            }
            let mut path = vec![word.to_owned()];
            while self.is_path(at) && !self.word_at(at + 1).is_empty() {
                path.push(self.word_at(at + 1).to_owned());
                at += 2;
            }
            uses.push(Use { path, place: self.bytes(first, at) });
        }
        uses
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "alias"
            | "break"
            | "case"
            | "const"
            | "const_assert"
            | "continue"
            | "continuing"
            | "default"
            | "discard"
            | "else"
            | "false"
            | "fn"
            | "for"
            | "if"
            | "let"
            | "loop"
            | "override"
            | "return"
            | "struct"
            | "switch"
            | "true"
            | "var"
            | "while"
            | "_"
    )
}
