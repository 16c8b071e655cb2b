//! A crate's source as modules, the names in each, and the paths that each of them mentions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// The parsed crate. Modules are numbered; 0 is the root.
pub struct Source {
    pub modules: Vec<Module>,
    pub arrows: Vec<Arrow>,
}

/// A module: a file, or a `mod name { … }` within one.
pub struct Module {
    /// From the root, without `crate`.
    pub path: Vec<String>,
    pub file: PathBuf,
    parent: usize,
    children: BTreeMap<String, usize>,
    /// Names defined or imported here. One name may have several meanings: types, functions, what depends on `cfg`.
    names: BTreeMap<String, Vec<Meaning>>,
    /// Paths of `use …::*`.
    globs: Vec<Vec<String>>,
    /// Every path that is mentioned, with its line.
    mentions: Vec<(Vec<String>, usize)>,
}

#[derive(Clone, PartialEq)]
enum Meaning {
    Item,
    Import(Vec<String>),
}

/// A mention of something that another module defines or passes on.
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub path: String,
    pub line: usize,
}

impl Source {
    /// Parses a crate from its root file; `read` gives the text of a file, if it exists.
    pub fn parse(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let mut source = Self { modules: Vec::new(), arrows: Vec::new() };
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        let text = read(root).unwrap_or_else(|| panic!("{} cannot be read", root.display()));
        source.add_file(Vec::new(), root, &folder, 0, &text, read);
        source.arrows = source.find_arrows();
        source
    }

    fn add_file(
        &mut self,
        path: Vec<String>,
        file: &Path,
        folder: &Path,
        parent: usize,
        text: &str,
        read: &dyn Fn(&Path) -> Option<String>,
    ) -> usize {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(path, file, folder, parent, &parsed.items, read)
    }

    /// Adds a module. `folder` is where the files of its children are.
    fn add(
        &mut self,
        path: Vec<String>,
        file: &Path,
        folder: &Path,
        parent: usize,
        items: &[syn::Item],
        read: &dyn Fn(&Path) -> Option<String>,
    ) -> usize {
        let number = self.modules.len();
        let mut module = Module {
            path: path.clone(),
            file: file.to_owned(),
            parent,
            children: BTreeMap::new(),
            names: BTreeMap::new(),
            globs: Vec::new(),
            mentions: Vec::new(),
        };
        for item in items {
            if let Some(name) = defined(item) {
                module.names.entry(name).or_default().push(Meaning::Item);
            }
            module.visit_item(item);
        }
        self.modules.push(module);
        for item in items {
            let syn::Item::Mod(item) = item else {
                self.export(number, item);
                continue;
            };
            let name = item.ident.to_string();
            let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
            let child = match &item.content {
                Some((_, items)) => self.add(path, file, &folder.join(&name), number, items, read),
                None => {
                    let given = path_attribute(&item.attrs).map(|path| file.parent().unwrap_or(folder).join(path));
                    let places = match given {
                        Some(place) => vec![place],
                        None => vec![folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")],
                    };
                    let found = places.iter().find_map(|place| Some((place, read(place)?)));
                    let (place, text) = found.unwrap_or_else(|| panic!("{}: no file of mod {name}", file.display()));
                    let inner = match place.file_name() {
                        Some(last) if last == "mod.rs" => place.parent().unwrap_or(folder).to_owned(),
                        _ => place.with_extension(""),
                    };
                    self.add_file(path, place, &inner, number, &text, read)
                }
            };
            self.modules[number].children.insert(name, child);
        }
        number
    }

    /// Macros with `#[macro_export]` are names of the root.
    fn export(&mut self, module: usize, item: &syn::Item) {
        if let syn::Item::Macro(item) = item
            && let Some(name) = &item.ident
            && item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
        {
            let mut path = vec!["crate".to_owned()];
            path.extend(self.modules[module].path.iter().cloned());
            path.push(name.to_string());
            self.modules[0].names.entry(name.to_string()).or_default().push(Meaning::Import(path));
        }
    }

    /// All mentions of other modules' names: of those that define them, and of those that only pass them on.
    fn find_arrows(&self) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for (from, module) in self.modules.iter().enumerate() {
            for (path, line) in &module.mentions {
                let mut reached = BTreeSet::new();
                self.resolve(from, path, &mut reached, &mut BTreeSet::new());
                reached.remove(&from);
                // The root is a front page: it defines nothing.
                reached.remove(&0);
                let arrow = |to| Arrow { from, to, path: path.join("::"), line: *line };
                arrows.extend(reached.into_iter().map(arrow));
            }
        }
        arrows
    }

    /// Adds the modules in which a path ends or is passed on. Paths of other crates reach nothing.
    fn resolve(
        &self,
        from: usize,
        path: &[String],
        reached: &mut BTreeSet<usize>,
        seen: &mut BTreeSet<(usize, Vec<String>)>,
    ) {
        if !seen.insert((from, path.to_vec())) {
            return;
        }
        let mut module = from;
        let mut rest = path;
        let mut rooted = false;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => module = 0,
                "self" => {}
                "super" => module = self.modules[module].parent,
                _ => break,
            }
            (rest, rooted) = (others, true);
        }
        while let Some((first, others)) = rest.split_first() {
            if let Some(&child) = self.modules[module].children.get(first) {
                (module, rest, rooted) = (child, others, true);
                continue;
            }
            let known = self.look_up(module, first, others, reached, seen);
            // What a macro defines is not seen: it counts for the module that should have it.
            if rooted && !known {
                reached.insert(module);
            }
            return;
        }
        reached.insert(module);
    }

    /// Follows a name within a module, if the module has it.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        rest: &[String],
        reached: &mut BTreeSet<usize>,
        seen: &mut BTreeSet<(usize, Vec<String>)>,
    ) -> bool {
        if let Some(meanings) = self.modules[module].names.get(name) {
            reached.insert(module);
            for meaning in meanings {
                if let Meaning::Import(path) = meaning {
                    let path: Vec<String> = path.iter().chain(rest).cloned().collect();
                    self.resolve(module, &path, reached, seen);
                }
            }
            return true;
        }
        for glob in &self.modules[module].globs {
            let Some(target) = self.globbed(module, glob, seen) else { continue };
            if !seen.insert((target, vec!["*".to_owned(), name.to_owned()])) {
                continue;
            }
            if let Some(&child) = self.modules[target].children.get(name) {
                self.resolve(child, &[&["self".to_owned()], rest].concat(), reached, seen);
                return true;
            }
            if self.look_up(target, name, rest, reached, seen) {
                reached.insert(module);
                return true;
            }
        }
        false
    }

    /// The module behind a glob, unless the search comes from there.
    fn globbed(&self, module: usize, path: &[String], seen: &BTreeSet<(usize, Vec<String>)>) -> Option<usize> {
        let key = (module, [&["*".to_owned()], path].concat());
        if seen.contains(&key) {
            return None;
        }
        let mut seen = seen.clone();
        seen.insert(key);
        let mut reached = BTreeSet::new();
        self.resolve(module, path, &mut reached, &mut seen);
        reached.into_iter().next_back()
    }
}

/// The name that an item gives its module.
fn defined(item: &syn::Item) -> Option<String> {
    Some(match item {
        syn::Item::Const(item) => item.ident.to_string(),
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Fn(item) => item.sig.ident.to_string(),
        syn::Item::Macro(item) => item.ident.as_ref()?.to_string(),
        syn::Item::Static(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        syn::Item::Trait(item) => item.ident.to_string(),
        syn::Item::TraitAlias(item) => item.ident.to_string(),
        syn::Item::Type(item) => item.ident.to_string(),
        syn::Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| {
        let syn::Meta::NameValue(value) = &attribute.meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &value.value else { return None };
        Some(text.value())
    })
}

impl Module {
    fn mention(&mut self, path: Vec<String>, line: usize) {
        self.mentions.push((path, line));
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String], line: usize) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let mut named = |name: String, path: Vec<String>| {
            self.names.entry(name).or_default().push(Meaning::Import(path.clone()));
            self.mentions.push((path, line));
        };
        match tree {
            syn::UseTree::Path(tree) => self.import(&tree.tree, &with(&tree.ident), line),
            syn::UseTree::Name(tree) if tree.ident == "self" => {
                named(before.last().cloned().unwrap_or_default(), before.to_vec());
            }
            syn::UseTree::Name(tree) => named(tree.ident.to_string(), with(&tree.ident)),
            syn::UseTree::Rename(tree) if tree.ident == "self" => named(tree.rename.to_string(), before.to_vec()),
            syn::UseTree::Rename(tree) => named(tree.rename.to_string(), with(&tree.ident)),
            syn::UseTree::Glob(_) => {
                self.globs.push(before.to_vec());
                self.mentions.push((before.to_vec(), line));
            }
            syn::UseTree::Group(tree) => tree.items.iter().for_each(|tree| self.import(tree, before, line)),
        }
    }

    /// Paths within what a macro is given, or what it is made of.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let line = tokens[at].span().start().line;
            match &tokens[at] {
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Ident(word) if word == "use" => {
                    let end = tokens[at..].iter().position(|token| is_mark(token, ';'));
                    let whole = end.map(|end| tokens[at..=at + end].iter().filter(|token| !is_mark(token, '$')));
                    let item = whole.and_then(|whole| syn::parse2::<syn::ItemUse>(whole.cloned().collect()).ok());
                    if let (Some(item), Some(end)) = (item, end) {
                        self.import(&item.tree, &[], line);
                        at += end;
                    }
                }
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while let [a, b, TokenTree::Ident(next), ..] = &tokens[at + 1..]
                        && is_mark(a, ':')
                        && is_mark(b, ':')
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    if path.len() > 1 {
                        self.mention(path, line);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

impl<'ast> Visit<'ast> for Module {
    /// Modules of their own are added by `Source::add`.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    /// `pub(in path)` opens a door; it goes nowhere.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[], item.use_token.span.start().line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A name by itself is one that the module has: what brought it here counts already.
        if path.leading_colon.is_none()
            && path.segments.len() > 1
            && let Some(first) = path.segments.first()
        {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.mention(segments, first.ident.span().start().line);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.scan(item.tokens.clone());
    }
}
