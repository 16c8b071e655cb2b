//! Known defects of devices that are not ours to mend. Each entry says why. An entry whose case passes is a failure of
//! this table.

/// The behaviour of a listed case on a listed device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It runs and its result is wrong, or the device refuses it.
    Fails,
    /// It must not be tried: it would take the process down.
    Crashes,
}

pub struct Deviation {
    /// Parts of the device's name, all of which must occur in it.
    device: &'static [&'static str],
    /// The case's name; a `*` at its end stands for anything.
    case: &'static str,
    pub known: Known,
    pub reason: &'static str,
}

const SWIFTSHADER: &[&str] = &["swiftshader"];
const GL: &[&str] = &["(gl)"];
const BARE_GL: &[&str] = &["bare", "(gl)"];

const fn fails(device: &'static [&'static str], case: &'static str, reason: &'static str) -> Deviation {
    Deviation { device, case, known: Known::Fails, reason }
}

const fn crashes(device: &'static [&'static str], case: &'static str, reason: &'static str) -> Deviation {
    Deviation { device, case, known: Known::Crashes, reason }
}

const SIGN_EXTENSION: &str = "naga 30's SPIR-V widens by the sign of the result's type, not of the operand's";
const GL_DIVISION: &str =
    "wgpu runs GL without guards: division by zero, MIN / -1 and % of negative numbers are GLSL's";
const GL_SATURATION: &str =
    "wgpu runs GL without guards: a float out of the integer's range converts as the driver likes";
const GL_OFFSETS: &str = "naga 30's GLSL has no explicit offsets: kernels that need them are refused";

const NOT_EMPTY: &str = "the engine refuses an empty dispatch";

const TABLE: &[Deviation] = &[
    fails(&["cpu: "], "dispatch.no_workgroups", NOT_EMPTY),
    fails(&["wgpu: "], "dispatch.no_workgroups", NOT_EMPTY),
    fails(&["vulkan"], "wide.i32_to_u64", SIGN_EXTENSION),
    fails(&["vulkan"], "wide.u32_to_i64", SIGN_EXTENSION),
    fails(&["vulkan"], "half.i16_to_u32", SIGN_EXTENSION),
    fails(
        SWIFTSHADER,
        "atomics.sub_returns_in_workgroup",
        "SwiftShader's subgroups do not see each other's subtractions in workgroup memory",
    ),
    fails(SWIFTSHADER, "accuracy.log", "SwiftShader's log is off by 1.17 times what WGSL allows, near 0.5"),
    fails(&["vulkan", "nvidia"], "accuracy.log", "NVIDIA's log is off by 1.02 times what WGSL allows, near 0.43"),
    fails(SWIFTSHADER, "accuracy.tanh", "SwiftShader's tanh gives NaN for large numbers"),
    crashes(BARE_GL, "out_of_range.workgroup_*", "wgpu runs GL without guards: workgroup memory is read past its end"),
    fails(BARE_GL, "integer.div_i32", GL_DIVISION),
    fails(BARE_GL, "integer.div_u32", GL_DIVISION),
    fails(BARE_GL, "integer.rem_i32", GL_DIVISION),
    fails(BARE_GL, "integer.rem_u32", GL_DIVISION),
    fails(BARE_GL, "integer.div_vec4u", GL_DIVISION),
    fails(BARE_GL, "integer.div_vec2i", GL_DIVISION),
    fails(BARE_GL, "integer.rem_vec4i", GL_DIVISION),
    fails(BARE_GL, "float.to_i32_saturates", GL_SATURATION),
    fails(BARE_GL, "float.to_u32_saturates", GL_SATURATION),
    fails(BARE_GL, "float.vector_conversion", GL_SATURATION),
    fails(GL, "builtins.asin", "Mesa's GLSL asin is off by up to 2e-4"),
    fails(BARE_GL, "front.let_divide_by_zero", GL_DIVISION),
    fails(BARE_GL, "front.let_remainder_by_zero", GL_DIVISION),
    fails(BARE_GL, "front.let_typed_zero", GL_DIVISION),
    fails(BARE_GL, "front.let_divide_constant_by_zero", GL_DIVISION),
    fails(BARE_GL, "front.let_least_remainder_minus_one", GL_DIVISION),
    fails(BARE_GL, "front.let_zero_of_a_name_of_a_name", GL_DIVISION),
    fails(BARE_GL, "front.let_zero_from_a_constant", GL_DIVISION),
    fails(BARE_GL, "front.let_vector", GL_DIVISION),
    fails(BARE_GL, "front.let_shadowed", GL_DIVISION),
    fails(BARE_GL, "front.let_in_a_loop", GL_DIVISION),
    fails(BARE_GL, "front.let_divide_unsigned_by_zero", GL_DIVISION),
    fails(BARE_GL, "front.let_remainder_unsigned_by_zero", GL_DIVISION),
    fails(BARE_GL, "front.let_let_in_a_continuing", GL_DIVISION),
    fails(GL, "front.layout_*", GL_OFFSETS),
    fails(GL, "layout.read_explicit_*", GL_OFFSETS),
    fails(GL, "layout.read_inherited_align", GL_OFFSETS),
    fails(GL, "layout.write_inherited_align", GL_OFFSETS),
    fails(GL, "layout.write_explicit_*", GL_OFFSETS),
    fails(GL, "layout.read_align_and_size", GL_OFFSETS),
    fails(GL, "layout.write_align_and_size", GL_OFFSETS),
    fails(GL, "layout.uniform_nested", GL_OFFSETS),
    fails(
        GL,
        "control.break_if_sees_body_variable",
        "naga 30's GLSL evaluates break-if's condition anew, after the body's stores",
    ),
];

/// The entry for a case on a device, if there is one.
pub fn find(device: &str, case: &str) -> Option<&'static Deviation> {
    TABLE.iter().find(|d| {
        let named = match d.case.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => case == d.case,
        };
        named && d.device.iter().all(|part| device.to_lowercase().contains(part))
    })
}
