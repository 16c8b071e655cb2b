//! `cantus config`: the settings in force and where they come from, and one way to write the file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use cantus::config::KEYS;
use cantus::files;
use cantus::{Config, Error, Result};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::global::{Global, canonical, known_backend};
use super::output::{self, OutputFile};
use super::{parse, report};

/// Show or change the settings: default < file < CANTUS_* variables < flags
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  cantus config show
  cantus config set memory_limit 8GiB
  cantus config set backend \"\"      removes the setting";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print every setting as TOML, and where its value comes from
    Show {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a setting to the file
    Set {
        #[arg(help = keys())]
        key: String,
        /// The value; an empty one takes the setting out
        value: String,
    },
    /// Print the file's path
    Path,
}

/// The names of the settings, for the help.
fn keys() -> String {
    KEYS.map(|(key, _)| key).join(", ")
}

/// Runs the subcommand.
///
/// # Errors
/// [`Error::Config`] for what cannot be understood, [`Error::Unreadable`] or [`Error::Io`] when the file cannot be read or written.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.action {
        Action::Show { json } => show(global, *json),
        Action::Set { key, value } => set(key, value),
        Action::Path => report::print(&format!("{}\n", path()?.display())),
    }
}

fn show(global: &Global, as_json: bool) -> Result<ExitCode> {
    let effective = global.config()?;
    let path = Config::path();
    let file = match &path {
        Some(path) if path.exists() => Config::from_file(path)?,
        _ => Config::default(),
    };
    let (mut loaded, told) = (Config::load()?, global.told()?);
    loaded.backend = loaded.backend.map(|name| canonical(&name));
    // The last of file, variable and flag that gave the value; what none did is the program's own.
    let origin = |key: &str| -> Option<String> {
        let value = effective.get(key)?;
        let variable = format!("CANTUS_{}", key.to_uppercase());
        if told.get(key).as_ref() != Some(&value) {
            Some("this program".to_owned())
        } else if loaded.get(key).as_ref() != Some(&value) {
            Some("flag".to_owned())
        } else if std::env::var_os(&variable).is_some_and(|value| !value.is_empty()) {
            Some(variable)
        } else if file.get(key).is_some() {
            path.as_ref().map(|path| path.display().to_string())
        } else {
            None
        }
    };
    if as_json {
        let settings: Map<String, Value> = KEYS
            .iter()
            .map(|(key, _)| ((*key).to_owned(), json!({ "value": effective.get(key), "from": origin(key) })))
            .collect();
        return report::print_json(&json!({ "path": path, "settings": settings }));
    }
    let mut text = String::new();
    for (key, takes) in KEYS {
        let _ = match (effective.get(key), origin(key)) {
            (Some(value), origin) => {
                writeln!(text, "{key} = {}  # from {}", toml_value(&value), origin.unwrap_or_default())
            }
            (None, _) => writeln!(text, "# {key} is not set: {takes}"),
        };
    }
    report::print(&text)
}

fn set(key: &str, value: &str) -> Result<ExitCode> {
    let path = path()?;
    let fault = |error: std::io::Error| output::fault(&path, &error);
    known_key(key)?;
    let mut checked = Config::default();
    let line = if value.is_empty() {
        None
    } else {
        checked.set(key, value)?;
        if let Some(name) = &checked.backend {
            known_backend(name)?;
        }
        Some(format!("{key} = {}", toml_value(&checked.get(key).unwrap_or_default())))
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    // From the reading to the renaming: who sets another key at the same time waits.
    let _lock = files::exclusive(&path).map_err(fault)?;
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::unreadable(&path, &error)),
    };
    if !before.is_empty() {
        // A file that is already wrong is the user's to mend: nothing is written over it.
        Config::from_file(&path)?;
    }
    let mut file = OutputFile::create(&path)?;
    file.write_all(replaced(&before, key, line.as_deref()).as_bytes()).map_err(fault)?;
    file.commit()?;
    Ok(report::done(&match line {
        Some(line) => format!("{line} -> {}", path.display()),
        None => format!("{key} is not set any more in {}", path.display()),
    }))
}

fn known_key(key: &str) -> Result<()> {
    let known = KEYS.map(|(known, _)| known);
    if known.contains(&key) {
        return Ok(());
    }
    Err(Error::Config {
        place: key.to_owned(),
        reason: format!("there is no such key{} (the keys are: {})", parse::closest(key, &known), keys()),
    })
}

fn path() -> Result<PathBuf> {
    Config::path().ok_or_else(|| Error::Config {
        place: "the configuration file".to_owned(),
        reason: "this system names no folder for it (set CANTUS_CONFIG to a file's path)".to_owned(),
    })
}

/// The file's text with the key's line replaced, added or taken out; comments and order stay. The settings are flat, one to a line.
fn replaced(text: &str, key: &str, line: Option<&str>) -> String {
    let is_key = |text: &str| {
        let rest = text.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let mut lines: Vec<&str> = Vec::new();
    let mut line = line;
    for old in text.lines() {
        if is_key(old) { lines.extend(line.take()) } else { lines.push(old) }
    }
    lines.extend(line);
    let mut joined = lines.join("\n");
    if !joined.is_empty() {
        joined.push('\n');
    }
    joined
}

/// Numbers and booleans as they are, all else as a string.
fn toml_value(text: &str) -> String {
    if text.parse::<u64>().is_ok() || matches!(text, "true" | "false") { text.to_owned() } else { format!("{text:?}") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_is_replaced_added_or_taken_out() {
        let text = "# mine\nbackend = \"wgpu\" # fast\nprofile = true\n";
        let replaced = |key, line| super::replaced(text, key, line);
        assert_eq!(replaced("backend", Some("backend = \"cpu\"")), "# mine\nbackend = \"cpu\"\nprofile = true\n");
        assert_eq!(replaced("device", Some("device = 1")), format!("{text}device = 1\n"));
        assert_eq!(replaced("backend", None), "# mine\nprofile = true\n");
        assert_eq!(super::replaced("", "device", Some("device = 1")), "device = 1\n");
    }
}
