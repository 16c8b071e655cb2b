//! Tests that need no process of their own, in one program. Each module is a test file; its name is the filter: `-- fallback::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops where it fails")]

mod ahead_overrides;
mod architecture;
mod ascend;
mod build_script;
mod cancel;
mod drivers;
mod dropped;
mod embedding;
mod fallback;
mod from_wgpu;
mod functions;
mod graph;
mod group;
mod hostile;
mod library;
mod math_accuracy;
mod misuse;
mod naga;
mod paths;
mod pjrt;
mod printed;
mod readme;
mod reproducible;
mod shaders_math;
mod spmd;
mod stores;
mod stream;
mod stress;
mod tables;
mod texts;
mod textures;
mod third_party;
mod translate;
mod typed;
mod weights;
