//! The library of WGSL that every kernel may import from: `import cantus::random::uniform;`.

use std::sync::OnceLock;

/// A module of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryModule {
    /// `random` of `cantus::random`.
    pub name: &'static str,
    /// Its WGSL.
    pub text: &'static str,
}

/// A function that kernels may import.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// `uniform(n: u32, seed: vec2u) -> f32`
    pub signature: &'static str,
    /// The comment above it.
    pub about: String,
}

impl LibraryModule {
    /// The comment at its head.
    #[must_use]
    pub fn about(&self) -> String {
        comment(self.text.lines().take_while(|line| line.starts_with("//")))
    }

    /// Its functions: those with a comment of their own. The others are parts of these.
    ///
    /// ```
    /// let random = cantus_link::library().iter().find(|module| module.name == "random").unwrap();
    /// let uniform = random.functions().into_iter().find(|function| function.name == "uniform").unwrap();
    /// assert_eq!(uniform.signature, "uniform(n: u32, seed: vec2u) -> f32");
    /// ```
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let lines: Vec<&'static str> = self.text.lines().collect();
        let mut found: Vec<Function> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let Some(signature) = line.strip_prefix("fn ") else { continue };
            let before = lines.get(..at).unwrap_or_default();
            let above = before.iter().rev().skip_while(|line| line.starts_with('@'));
            let mut about: Vec<&str> = above.take_while(|line| line.starts_with("//")).copied().collect();
            about.reverse();
            let signature = signature.split_once(" {").map_or(signature, |(signature, _)| signature);
            let name = signature.split('(').next().unwrap_or_default();
            // The forms of a condition are one function.
            if !about.is_empty() && found.iter().all(|known| known.name != name) {
                found.push(Function { name, signature, about: comment(about.into_iter()) });
            }
        }
        found
    }
}

fn comment<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    let plain: Vec<&str> = lines.map(|line| line.trim_start_matches('/').trim()).collect();
    plain.join(" ").trim().to_owned()
}

/// The modules of the library, by name.
#[must_use]
pub fn library() -> &'static [LibraryModule] {
    static MODULES: OnceLock<Vec<LibraryModule>> = OnceLock::new();
    MODULES.get_or_init(|| cantus_shaders::LIBRARY.iter().map(|&(name, text)| LibraryModule { name, text }).collect())
}
