//! Linking: which declarations a kernel reaches, what each is called, and the text that they make. `Linker::link` makes a `Session`. Only what the kernel
//! reaches is written, in the order of meeting. A name changes only if another word of the text is the same, whatever it means there, so no scope needs to
//! be understood. Every byte's origin is kept.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::module::{Import, Module, Use};
use crate::packages::{PackageId, Packages};
use crate::{Linked, Origin, Origins};

/// A declaration: its module, and its place there.
type Id = (usize, usize);

/// The target of a path.
#[derive(Debug, Clone)]
enum Target {
    Declaration(Id),
    Module,
}

/// A declaration that the linked text has, with what its words name.
struct Reached {
    id: Id,
    /// Each use: its range, the path written there, and the declaration that it names.
    uses: Vec<(Range<usize>, Vec<String>, Option<Id>)>,
}

pub(crate) struct Session<'l> {
    packages: Packages<'l>,
    is_on: &'l dyn Fn(&str) -> bool,
    modules: Vec<Module>,
    /// The package of each module, and its path there.
    places: Vec<(PackageId, Vec<String>)>,
    /// `None`: there is no such module.
    known: HashMap<(PackageId, Vec<String>), Option<usize>>,
    asked: BTreeSet<String>,
}

impl<'l> Session<'l> {
    pub(crate) fn new(packages: Packages<'l>, is_on: &'l dyn Fn(&str) -> bool) -> Self {
        Self { packages, is_on, modules: Vec::new(), places: Vec::new(), known: HashMap::new(), asked: BTreeSet::new() }
    }

    /// Links the module that is the kernel.
    pub(crate) fn link(mut self, origin: Origin, path: Vec<String>) -> Result<Linked, Error> {
        let root = self.add(PackageId::ROOT, path, origin)?;
        // A mistyped import is an error even where nothing uses it.
        let imports: Vec<Import> = self.module(root)?.imports.values().cloned().collect();
        let globs = self.module(root)?.globs.clone();
        let mut ordered: Vec<(Import, bool)> = imports.into_iter().map(|import| (import, false)).collect();
        ordered.extend(globs.into_iter().map(|glob| (glob, true)));
        ordered.sort_by_key(|(import, _)| import.place.start);
        for (import, is_glob) in ordered {
            if is_glob {
                self.glob(root, &import)?;
            } else {
                self.import(root, &import)?;
            }
        }
        let reached = self.reach(root)?;
        let names = self.names(root, &reached);
        self.write(root, &reached, &names)
    }

    fn add(&mut self, package: PackageId, path: Vec<String>, origin: Origin) -> Result<usize, Error> {
        let module = Module::read(origin, self.is_on, &mut self.asked)?;
        let number = self.modules.len();
        self.modules.push(module);
        self.places.push((package, path.clone()));
        self.known.insert((package, path), Some(number));
        Ok(number)
    }

    /// The module of a number that this session gave.
    fn module(&self, number: usize) -> Result<&Module, Error> {
        self.modules.get(number).ok_or_else(|| Error::Unreadable {
            path: format!("module {number}"),
            reason: "it is not loaded: a defect of the linker".to_owned(),
        })
    }

    fn load(&mut self, package: PackageId, path: &[String]) -> Result<Option<usize>, Error> {
        if let Some(known) = self.known.get(&(package, path.to_vec())) {
            return Ok(*known);
        }
        match self.packages.text(package, path)? {
            Some(origin) => self.add(package, path.to_vec(), origin).map(Some),
            None => {
                self.known.insert((package, path.to_vec()), None);
                Ok(None)
            }
        }
    }

    fn fault(&self, module: usize, place: &Range<usize>, message: String) -> Error {
        match self.modules.get(module) {
            Some(module) => Error::at(&module.origin, place.clone(), message),
            None => Error::Unreadable { path: String::new(), reason: message },
        }
    }

    /// A path as it is written in a module, from its package's root on. Imports of that module are not looked at.
    fn absolute(
        &mut self,
        module: usize,
        path: &[String],
        place: &Range<usize>,
    ) -> Result<(PackageId, Vec<String>), Error> {
        let (package, here) = self.places.get(module).cloned().unwrap_or_default();
        let Some((first, rest)) = path.split_first() else { return Ok((package, here)) };
        match first.as_str() {
            "package" => Ok((package, rest.to_vec())),
            "super" => {
                let ups = path.iter().take_while(|word| *word == "super").count();
                let Some(kept) = here.len().checked_sub(ups) else {
                    let message = format!("`super` leads out of the package: this file is `{}`", shown(&here));
                    return Err(self.fault(module, place, message));
                };
                let above = here.get(..kept).unwrap_or_default();
                Ok((package, above.iter().chain(path.get(ups..).unwrap_or_default()).cloned().collect()))
            }
            name => match self.packages.dependency(package, name)? {
                Some(other) => Ok((other, rest.to_vec())),
                None => {
                    let message = format!(
                        "there is no package `{name}`: {} (files of this package are `package::…` or `super::…`)",
                        self.packages.where_looked(package, name)
                    );
                    Err(self.fault(module, place, message))
                }
            },
        }
    }

    /// The target of a path.
    fn target(&mut self, module: usize, path: &[String], place: &Range<usize>) -> Result<Target, Error> {
        let (package, full) = self.absolute(module, path, place)?;
        let holder = full.split_last().map(|(name, holder)| (name.clone(), holder.to_vec()));
        let mut found = None;
        if let Some((name, holder)) = &holder
            && let Some(number) = self.load(package, holder)?
        {
            if let Some(declaration) = self.module(number)?.by_name.get(name) {
                return Ok(Target::Declaration((number, *declaration)));
            }
            found = Some(number);
        }
        if self.load(package, &full)?.is_some() || self.packages.is_folder(package, &full) {
            return Ok(Target::Module);
        }
        let Some((name, holder)) = holder else {
            let message = format!("the package `{}` has no module of its own", path.join("::"));
            return Err(self.fault(module, place, message));
        };
        let message = match found {
            Some(number) => {
                let found = self.module(number)?;
                let mut declared: Vec<&str> = found.by_name.keys().map(String::as_str).collect();
                declared.sort_unstable();
                format!("{} declares no `{name}`{}", found.origin.file, closest(&name, &declared))
            }
            None => {
                let there = self.packages.looked_for(package, if holder.is_empty() { &full } else { &holder });
                format!("there is no module `{}`: {there}", path_of(path, &full, &holder))
            }
        };
        Err(self.fault(module, place, message))
    }

    fn import(&mut self, module: usize, import: &Import) -> Result<Target, Error> {
        self.target(module, &import.path, &import.place)
    }

    /// The module that a glob brings.
    fn glob(&mut self, module: usize, import: &Import) -> Result<usize, Error> {
        let (package, path) = self.absolute(module, &import.path, &import.place)?;
        match self.load(package, &path)? {
            Some(number) => Ok(number),
            None => {
                let there = self.packages.looked_for(package, &path);
                Err(self.fault(
                    module,
                    &import.place,
                    format!("there is no module `{}`: {there}", import.path.join("::")),
                ))
            }
        }
    }

    /// The declaration that a use names; `None` for locals, builtins and unknown words, which the validator knows.
    fn resolve(&mut self, module: usize, used: &Use) -> Result<Option<Id>, Error> {
        let Some(first) = used.path.first() else { return Ok(None) };
        let here = self.module(module)?;
        if let [name] = used.path.as_slice() {
            if let Some(declaration) = here.by_name.get(name) {
                return Ok(Some((module, *declaration)));
            }
            if let Some(import) = here.imports.get(name).cloned() {
                return Ok(match self.import(module, &import)? {
                    Target::Declaration(id) => Some(id),
                    Target::Module => None,
                });
            }
            for glob in here.globs.clone() {
                let from = self.glob(module, &glob)?;
                if let Some(declaration) = self.module(from)?.by_name.get(name) {
                    return Ok(Some((from, *declaration)));
                }
            }
            return Ok(None);
        }
        let target = match here.imports.get(first).cloned() {
            Some(import) => {
                let path: Vec<String> = import.path.iter().chain(used.path.iter().skip(1)).cloned().collect();
                self.target(module, &path, &used.place)?
            }
            None => self.target(module, &used.path, &used.place)?,
        };
        match target {
            Target::Declaration(id) => Ok(Some(id)),
            Target::Module => {
                let message = format!("`{}` is a module: name a declaration of it", used.path.join("::"));
                Err(self.fault(module, &used.place, message))
            }
        }
    }

    /// The kernel's own declarations, and whatever these name, in the order in which they are met.
    fn reach(&mut self, root: usize) -> Result<Vec<Reached>, Error> {
        let mut queue: Vec<Id> = (0..self.module(root)?.declarations.len()).map(|place| (root, place)).collect();
        let mut seen: HashSet<Id> = queue.iter().copied().collect();
        let mut entered = HashSet::from([root]);
        let mut reached = Vec::new();
        let mut next = 0;
        while let Some(&id) = queue.get(next) {
            next += 1;
            if entered.insert(id.0) {
                // What a module asserts holds for whoever uses it.
                for (place, declaration) in self.module(id.0)?.declarations.iter().enumerate() {
                    if declaration.name.is_none() && seen.insert((id.0, place)) {
                        queue.push((id.0, place));
                    }
                }
            }
            let Some(declaration) = self.module(id.0)?.declarations.get(id.1) else { continue };
            let mut uses = Vec::with_capacity(declaration.uses.len());
            for used in declaration.uses.clone() {
                let named = self.resolve(id.0, &used)?;
                if let Some(named) = named
                    && seen.insert(named)
                {
                    queue.push(named);
                }
                uses.push((used.place, used.path, named));
            }
            reached.push(Reached { id, uses });
        }
        Ok(reached)
    }

    /// The names of the declarations. The kernel's own keep theirs; others do where no other word of the linked text is the same.
    fn names(&self, root: usize, reached: &[Reached]) -> HashMap<Id, String> {
        let mut words: HashMap<&str, HashSet<Option<Id>>> = HashMap::new();
        for (_, path, named) in reached.iter().flat_map(|reached| &reached.uses) {
            if let [word] = path.as_slice() {
                words.entry(word).or_default().insert(*named);
            }
        }
        let name = |id: Id| self.modules.get(id.0).and_then(|module| module.declarations.get(id.1)?.name.clone());
        let mut names = HashMap::new();
        let mut taken: HashSet<String> = HashSet::new();
        for id in reached.iter().map(|reached| reached.id).filter(|id| id.0 == root) {
            if let Some(name) = name(id) {
                taken.insert(name.clone());
                names.insert(id, name);
            }
        }
        for id in reached.iter().map(|reached| reached.id).filter(|id| id.0 != root) {
            let Some(own) = name(id) else { continue };
            let is_free = |candidate: &str| {
                let others = |named: &HashSet<Option<Id>>| named.iter().any(|named| *named != Some(id));
                !WORDS_OF_WGSL.contains(&candidate)
                    && !taken.contains(candidate)
                    && !words.get(candidate).is_some_and(others)
            };
            let mut chosen = own.clone();
            let path = self.places.get(id.0).map_or(&[][..], |(_, path)| path);
            for from in (0..path.len()).rev() {
                if is_free(&chosen) {
                    break;
                }
                chosen = format!("{}_{own}", path.get(from..).unwrap_or_default().join("_"));
            }
            let base = chosen.clone();
            for number in 2.. {
                if is_free(&chosen) {
                    break;
                }
                chosen = format!("{base}_{number}");
            }
            taken.insert(chosen.clone());
            names.insert(id, chosen);
        }
        names
    }

    fn write(mut self, root: usize, reached: &[Reached], names: &HashMap<Id, String>) -> Result<Linked, Error> {
        let mut edits: HashMap<usize, Vec<(Range<usize>, String)>> = HashMap::new();
        for reached in reached {
            let edits = edits.entry(reached.id.0).or_default();
            for (place, path, named) in &reached.uses {
                let Some(new) = named.as_ref().and_then(|named| names.get(named)) else { continue };
                if !matches!(path.as_slice(), [word] if word == new) {
                    edits.push((place.clone(), new.clone()));
                }
            }
        }
        let mut order: Vec<usize> = Vec::new();
        for reached in reached {
            if !order.contains(&reached.id.0) {
                order.push(reached.id.0);
            }
        }
        for (number, module) in self.modules.iter().enumerate() {
            let edits = edits.entry(number).or_default();
            let gone = module.cuts.iter().chain(&module.import_places);
            edits.extend(gone.map(|place| (place.clone(), String::new())));
            edits.sort_by_key(|(place, _)| place.start);
        }
        let none = Vec::new();
        let mut out = Writer::default();
        out.origins.file(&self.module(root)?.origin);
        // Directives come before everything else.
        let mut seen = HashSet::new();
        for number in order.iter().copied().filter(|number| *number != root) {
            let module = self.module(number)?;
            for place in &module.directives {
                let line: String = module.origin.text.get(place.clone()).unwrap_or_default().to_owned();
                if seen.insert(line) {
                    out.copy(&module.origin, place.clone(), edits.get(&number).unwrap_or(&none));
                    out.text.push('\n');
                }
            }
        }
        let own = self.module(root)?;
        out.copy(&own.origin, 0..own.origin.text.len(), edits.get(&root).unwrap_or(&none));
        for number in order.into_iter().filter(|number| *number != root) {
            let module = self.module(number)?;
            let mut kept: Vec<usize> =
                reached.iter().filter(|reached| reached.id.0 == number).map(|reached| reached.id.1).collect();
            kept.sort_unstable();
            if !out.text.ends_with('\n') {
                out.text.push('\n');
            }
            out.text.push_str(&format!("\n// {}\n", module.origin.file));
            for declaration in kept.into_iter().filter_map(|place| module.declarations.get(place)) {
                out.copy(&module.origin, declaration.place.clone(), edits.get(&number).unwrap_or(&none));
                out.text.push('\n');
            }
        }
        Ok(Linked {
            text: Arc::from(out.text),
            origins: Arc::new(out.origins),
            files: self.packages.take_files(),
            features: self.asked,
        })
    }
}

/// Names that WGSL looks up where variables and pointers say what they are: a declaration of that name would be found instead.
const WORDS_OF_WGSL: [&str; 9] =
    ["read", "write", "read_write", "function", "private", "workgroup", "uniform", "storage", "immediate"];

#[derive(Default)]
struct Writer {
    text: String,
    origins: Origins,
}

impl Writer {
    fn put(&mut self, text: &str, file: usize, old: Range<usize>) {
        let start = self.text.len();
        self.text.push_str(text);
        self.origins.add(start..self.text.len(), file, old);
    }

    /// A part of a file, with its edits.
    fn copy(&mut self, origin: &Origin, place: Range<usize>, edits: &[(Range<usize>, String)]) {
        let file = self.origins.file(origin);
        let mut done = place.start;
        let first = edits.partition_point(|(edit, _)| edit.start < place.start);
        for (edit, new) in edits.get(first..).unwrap_or_default() {
            if edit.end > place.end {
                break;
            }
            if edit.start < done {
                continue;
            }
            self.put(origin.text.get(done..edit.start).unwrap_or_default(), file, done..edit.start);
            self.put(new, file, edit.clone());
            done = edit.end;
        }
        self.put(origin.text.get(done..place.end).unwrap_or_default(), file, done..place.end);
    }
}

fn shown(path: &[String]) -> String {
    format!("package::{}", path.join("::"))
}

/// The part of a written path that names its module.
fn path_of(written: &[String], full: &[String], holder: &[String]) -> String {
    let fewer = if holder.is_empty() { 0 } else { full.len() - holder.len() };
    written.get(..written.len().saturating_sub(fewer)).unwrap_or(written).join("::")
}

/// A hint at a name that differs little.
fn closest(name: &str, known: &[&str]) -> String {
    let best = known.iter().map(|known| (distance(name, known), known)).min();
    match best {
        Some((distance, known)) if distance <= name.len().div_ceil(3) => format!(" (did you mean `{known}`?)"),
        _ if known.is_empty() => String::new(),
        _ => {
            let mut list: Vec<String> = known.iter().take(12).map(|known| format!("`{known}`")).collect();
            if known.len() > list.len() {
                list.push("…".to_owned());
            }
            format!(" (it has {})", list.join(", "))
        }
    }
}

/// Levenshtein's.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(&b) {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = *cell;
            before = replaced.min(before + 1).min(*cell + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
