//! The job file: TOML, every key known or refused with its line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cantus::{Error, Result};
use serde::Deserialize;

use crate::colormap::Colormap;
use crate::run::contents::stdin_text;

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// The number of times that the steps run, one after the other.
    #[serde(default = "once")]
    pub repeat: u32,
    /// Textures that are read from files have all levels of detail.
    #[serde(default)]
    pub mips: bool,
    /// The first contents of each buffer or texture, in the order of the file.
    #[serde(default)]
    pub buffers: toml::Table,
    /// The steps of a round, in order.
    #[serde(rename = "step", default)]
    pub steps: Vec<StepTable>,
    /// The outputs.
    #[serde(rename = "output", default)]
    pub outputs: Vec<OutputTable>,
}

/// A kernel's run, or buffers that change places.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTable {
    /// A file beside the job file, or the name of a shipped kernel.
    pub kernel: Option<String>,
    pub entry: Option<String>,
    /// Buffers and textures by bindings, where the names differ.
    #[serde(default)]
    pub bind: BTreeMap<String, String>,
    /// Overrides, uniforms and their members.
    #[serde(default)]
    pub set: toml::Table,
    /// Uniforms that change: the value of the first round, and what each further round adds.
    #[serde(default)]
    pub advance: BTreeMap<String, [f64; 2]>,
    pub workgroups: Option<Extent>,
    pub invocations: Option<Extent>,
    /// Samplers by bindings, for those that are not the usual ones: a filter, or a table of settings.
    #[serde(default)]
    pub samplers: toml::Table,
    /// The number of times in a row.
    #[serde(default = "once")]
    pub repeat: u32,
    /// Runs in the first round only.
    #[serde(default)]
    pub once: bool,
    /// Two buffers that change places after the kernel, or instead of one.
    pub swap: Option<[String; 2]>,
}

/// One to three counts, or `@BUFFER`: those of its elements.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Extent {
    One(u32),
    List(Vec<u32>),
    Like(String),
}

impl Extent {
    /// Returns the counts along x, y and z.
    pub fn counts(&self) -> Option<[u32; 3]> {
        let list = match self {
            Self::One(count) => std::slice::from_ref(count),
            Self::List(list) => list,
            Self::Like(_) => return None,
        };
        let mut counts = [1; 3];
        if list.is_empty() || list.len() > counts.len() || list.contains(&0) {
            return None;
        }
        for (place, &count) in counts.iter_mut().zip(list) {
            *place = count;
        }
        Some(counts)
    }
}

/// A file that a buffer is written to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputTable {
    pub buffer: String,
    pub file: PathBuf,
    /// A frame after this many rounds; without it, once at the end.
    pub every: Option<u32>,
    /// Frames per second of an animation.
    pub fps: Option<f64>,
    pub colormap: Option<String>,
    pub range: Option<[f32; 2]>,
}

impl OutputTable {
    /// The colours of pictures.
    pub fn map(&self) -> Result<Colormap> {
        let Some(name) = &self.colormap else { return Ok(Colormap::Viridis) };
        <Colormap as clap::ValueEnum>::from_str(name, true).map_err(|_| {
            let all = <Colormap as clap::ValueEnum>::value_variants();
            let names: Vec<String> = all.iter().map(Colormap::to_string).collect();
            Error::invalid(format!("colormap = \"{name}\""), format!("there are {}", names.join(", ")))
        })
    }
}

fn once() -> u32 {
    1
}

impl JobFile {
    /// Reads the file, or standard input (`-`).
    ///
    /// # Errors
    /// [`Error::Unreadable`], and [`Error::InvalidFile`] with the line of what isn't understood.
    pub fn read(path: &Path) -> Result<Self> {
        let (text, name) = if path == Path::new("-") {
            (stdin_text()?, "standard input".to_owned())
        } else {
            let text = std::fs::read_to_string(path).map_err(|error| Error::unreadable(path, &error))?;
            (text, path.display().to_string())
        };
        toml::from_str(&text).map_err(|error| Error::file(name, error.to_string().trim_end().to_owned()))
    }
}

/// A table of settings as `NAME=VALUE`: tables in it are members (`params.a`), lists are vectors.
pub fn settings(table: &toml::Table) -> Result<Vec<crate::parse::Assignment>> {
    let mut all = Vec::new();
    collect(table, "", &mut all)?;
    Ok(all)
}

fn collect(table: &toml::Table, before: &str, all: &mut Vec<crate::parse::Assignment>) -> Result<()> {
    for (key, value) in table {
        let name = format!("{before}{key}");
        match value {
            toml::Value::Table(members) => collect(members, &format!("{name}."), all)?,
            value => all.push(crate::parse::Assignment { value: number(&name, value)?, name }),
        }
    }
    Ok(())
}

fn number(name: &str, value: &toml::Value) -> Result<String> {
    match value {
        toml::Value::Integer(value) => Ok(value.to_string()),
        toml::Value::Float(value) => Ok(value.to_string()),
        toml::Value::Boolean(value) => Ok(value.to_string()),
        toml::Value::Array(values) => {
            Ok(values.iter().map(|value| number(name, value)).collect::<Result<Vec<_>>>()?.join(","))
        }
        other => {
            Err(Error::invalid(format!("set {name} = {other}"), "it takes a number, true or false, or a list of them"))
        }
    }
}
