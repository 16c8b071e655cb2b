//! naga's module between its front end and its validator: what naga 30 gets wrong or cannot write is put right. `docs/naga.md` lists the
//! reasons. Modules without such constructs stay as they are.

#[cfg(all(feature = "wgpu", not(target_arch = "wasm32")))]
pub(crate) mod components;
mod emitted;
#[cfg(any(feature = "vulkan", feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
mod inserted;
mod lanes;
mod layout;
mod magnitude;
mod pointers;
mod remap;
mod returns;
#[cfg(any(feature = "vulkan", feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
pub(crate) mod shifts;

#[cfg(any(feature = "writers", all(feature = "wgpu", not(target_arch = "wasm32"))))]
pub(crate) use emitted::check_glsl;
#[cfg(any(test, feature = "writers", all(feature = "wgpu", target_arch = "wasm32")))]
pub(crate) use emitted::wgsl;

pub(in crate::kernel) use remap::operands;

use super::front::Attributes;

/// Puts a module right. An error is the reason why it cannot be run.
pub(super) fn amend(module: &mut naga::Module, attributes: &Attributes) -> Result<(), String> {
    if !attributes.is_empty() {
        layout::settle(module, attributes)?;
    }
    returns::settle(module);
    magnitude::settle(module);
    lanes::settle(module);
    pointers::settle(module);
    Ok(())
}
