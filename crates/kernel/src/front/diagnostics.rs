//! The messages of naga's validator in WGSL's words. Its own describe its module. `edits` asks it for each error before it is shown; `None` leaves naga's
//! own words, without the numbers that it gives to handles. Nothing here decides what is valid. naga's enums are matched by variant, so a new naga shows in
//! the compiler.

use std::error::Error;

use naga::valid::{
    CallError, EntryPointError, ExpressionError, FunctionError, GlobalVariableError, LocalVariableError, TypeError,
    TypeFlags, VaryingError,
};
use naga::{BinaryOperator, BuiltIn, ImageClass, ImageDimension, Scalar, ScalarKind, TypeInner, UnaryOperator};

use super::report::without_handles;

/// The message and label of a cause.
pub(super) fn of_cause(cause: &(dyn Error + 'static)) -> String {
    let message = cause.downcast_ref().and_then(of_entry);
    let message = message.or_else(|| cause.downcast_ref().and_then(of_varying));
    let message = message.or_else(|| cause.downcast_ref().and_then(of_variable));
    let message = message.or_else(|| cause.downcast_ref().and_then(of_local));
    let message = message.or_else(|| cause.downcast_ref().and_then(of_function));
    let message = message.or_else(|| cause.downcast_ref().and_then(of_call));
    let message = message.or_else(|| cause.downcast_ref().and_then(of_expression));
    let message = message.or_else(|| cause.downcast_ref().and_then(of_made_type));
    message.unwrap_or_else(|| without_handles(&cause.to_string()))
}

/// The message of naga's reader about operands, which shows its module's types.
pub(super) fn of_operands(message: &str) -> Option<String> {
    let conversion = message.strip_prefix("automatic conversions cannot convert elements of `");
    if let Some((from, to)) = conversion.and_then(|rest| rest.strip_suffix('`')?.split_once("` to `")) {
        return Some(format!("the value is {from}, and {to} is wanted (convert it, as {to}(x) or vec4<{to}>(x) does)"));
    }
    let shown = message.strip_prefix("Incompatible operands: ")?;
    let known = shown.split_once('(').and_then(|(name, rest)| {
        let op = match name {
            "LogicalAnd" => BinaryOperator::LogicalAnd,
            "LogicalOr" => BinaryOperator::LogicalOr,
            _ => return None,
        };
        let ty = rest.strip_suffix(", _)").filter(|ty| !ty.contains(['{', '(']))?;
        Some(format!("`{}` does not take {ty}", binary(op)))
    });
    Some(known.unwrap_or_else(|| "an operator does not take operands of these types (convert them)".to_owned()))
}

/// Returns a note about text for a preprocessor or a template engine, by the text at the place of an error.
pub(crate) fn of_template(rest: &str) -> Option<&'static str> {
    if ["{{", "${", "#{", "{%", "<%"].iter().any(|open| rest.starts_with(open)) {
        return Some(
            "note: this is a template's placeholder: fill it in first, or declare an `override` for a number that is set later\n",
        );
    }
    rest.starts_with('#').then_some(
        "note: WGSL has no lines that begin with `#`: run their preprocessor first, or write `import package::file::name;` and `@if(feature)`, as WESL does\n",
    )
}

/// Returns a note with WGSL's word for one of another language, by an error of naga's reader and the text at its place.
pub(crate) fn of_other_language(message: &str, rest: &str) -> Option<String> {
    if rest.starts_with('?') {
        return Some("note: WGSL has no `a ? b : c`: write select(c, b, a)\n".to_owned());
    }
    let name = message.strip_prefix("no definition in scope for identifier: `")?.strip_suffix('`')?;
    let instead = match name {
        "lerp" => "mix(a, b, t)",
        "mod" | "fmod" => "a % b, or a - b * floor(a / b) for the sign of b",
        "frac" => "fract(x)",
        "rsqrt" | "inversesqrt" | "rsqrtf" => "inverseSqrt(x)",
        "mad" => "fma(a, b, c)",
        "mul" => "a * b",
        "ddx" => "dpdx(x)",
        "ddy" => "dpdy(x)",
        "faceforward" => "faceForward(a, b, c)",
        "inverse" => "no inverse of a matrix: compute it on the host, or write it out",
        "float" => "f32",
        "int" => "i32",
        "uint" => "u32",
        "half" => "f16, with `enable f16;`",
        "double" => "f32",
        "float2" | "vec2d" => "vec2f",
        "float3" => "vec3f",
        "float4" => "vec4f",
        "int2" | "ivec2" => "vec2i",
        "int3" | "ivec3" => "vec3i",
        "int4" | "ivec4" => "vec4i",
        "uint2" | "uvec2" => "vec2u",
        "uint3" | "uvec3" => "vec3u",
        "uint4" | "uvec4" => "vec4u",
        "mat2" | "float2x2" => "mat2x2f",
        "mat3" | "float3x3" => "mat3x3f",
        "mat4" | "float4x4" => "mat4x4f",
        "asfloat" | "uintBitsToFloat" | "intBitsToFloat" => "bitcast<f32>(x)",
        "asuint" | "floatBitsToUint" => "bitcast<u32>(x)",
        "asint" | "floatBitsToInt" => "bitcast<i32>(x)",
        "barrier" | "GroupMemoryBarrierWithGroupSync" | "__syncthreads" => "workgroupBarrier()",
        "texture" | "texture2D" | "tex2D" => "textureSampleLevel(t, s, uv, 0.0)",
        "imageLoad" | "texelFetch" => "textureLoad(t, at, 0)",
        "imageStore" => "textureStore(t, at, value)",
        "printf" | "print" | "debugPrintfEXT" => "no output of text: store the numbers in a buffer",
        "gl_GlobalInvocationID" => "a parameter @builtin(global_invocation_id) id: vec3u",
        "gl_LocalInvocationID" | "threadIdx" => "a parameter @builtin(local_invocation_id) id: vec3u",
        "gl_WorkGroupID" | "blockIdx" => "a parameter @builtin(workgroup_id) id: vec3u",
        _ => return None,
    };
    Some(match instead.strip_prefix("no ") {
        Some(lacking) => format!("note: WGSL has no {lacking}\n"),
        None => format!("note: WGSL writes `{name}` as {instead}\n"),
    })
}

fn of_entry(error: &EntryPointError) -> Option<String> {
    match error {
        EntryPointError::Argument(index, _) => Some(format!("argument {}", index + 1)),
        EntryPointError::BindingCollision(_) => {
            Some("it uses two variables with the same @group and @binding".to_owned())
        }
        EntryPointError::Function(error) => of_function(error),
        EntryPointError::Result(error) => of_varying(error),
        EntryPointError::OutOfRangeWorkgroupSize => {
            Some("a side of @workgroup_size is below 1, or beyond what any device has".to_owned())
        }
        EntryPointError::InvalidGlobalUsage(..) => {
            Some("it stores to a variable that is only read, or reads one that is only written".to_owned())
        }
        EntryPointError::ForbiddenStageOperations => {
            Some("it uses what only fragment stages have, such as discard and derivatives".to_owned())
        }
        _ => None,
    }
}

fn of_varying(error: &VaryingError) -> Option<String> {
    let VaryingError::InvalidBuiltInType(builtin, _) = error else { return None };
    let (name, ty) = match builtin {
        BuiltIn::GlobalInvocationId => ("global_invocation_id", "vec3<u32>"),
        BuiltIn::LocalInvocationId => ("local_invocation_id", "vec3<u32>"),
        BuiltIn::WorkGroupId => ("workgroup_id", "vec3<u32>"),
        BuiltIn::NumWorkGroups => ("num_workgroups", "vec3<u32>"),
        BuiltIn::LocalInvocationIndex => ("local_invocation_index", "u32"),
        BuiltIn::SubgroupInvocationId => ("subgroup_invocation_id", "u32"),
        BuiltIn::SubgroupId => ("subgroup_id", "u32"),
        BuiltIn::SubgroupSize => ("subgroup_size", "u32"),
        BuiltIn::NumSubgroups => ("num_subgroups", "u32"),
        _ => return None,
    };
    Some(format!("@builtin({name}) is of the type {ty}"))
}

fn of_variable(error: &GlobalVariableError) -> Option<String> {
    let GlobalVariableError::MissingTypeFlags { required, seen } = error else { return None };
    let missing = required.difference(*seen);
    let reason = if missing.contains(TypeFlags::HOST_SHAREABLE) {
        "buffers cannot hold values of its type, such as bool (use u32)"
    } else if missing.contains(TypeFlags::SIZED) {
        "its type has no size here (say how many elements it has)"
    } else if missing.contains(TypeFlags::CONSTRUCTIBLE) {
        "its type has no values that could be kept here (no atomic numbers, and sizes that are known)"
    } else {
        "its type does not belong into this address space"
    };
    Some(reason.to_owned())
}

fn of_local(error: &LocalVariableError) -> Option<String> {
    match error {
        LocalVariableError::InvalidType(_) => {
            Some("no variable of a function keeps its type (no atomic numbers, and sizes that are known)".to_owned())
        }
        _ => None,
    }
}

fn of_function(error: &FunctionError) -> Option<String> {
    match error {
        FunctionError::InvalidCall { .. } => Some("a call".to_owned()),
        FunctionError::InvalidReturnType { expected_ty: None, .. } => {
            Some("it returns a value, and declares no type of one (write -> and the type)".to_owned())
        }
        FunctionError::InvalidArgumentType { name, .. } => {
            Some(format!("`{name}` has a type that no function takes (pass a pointer to it)"))
        }
        FunctionError::NonConstructibleReturnType => {
            Some("no function returns its type (no atomic numbers, and sizes that are known)".to_owned())
        }
        FunctionError::InvalidReturnType { .. } => Some("it returns another type than it declares".to_owned()),
        FunctionError::InvalidStorePointer(_) => {
            Some("nothing can be stored here: a variable of a buffer needs var<storage, read_write>".to_owned())
        }
        FunctionError::InvalidStoreTypes { .. } => {
            Some("the value has another type than what it is stored to".to_owned())
        }
        FunctionError::InvalidStoreTexture { .. } => {
            Some("textureStore takes a storage texture that is written".to_owned())
        }
        FunctionError::InvalidStoreValue { actual_ty, expected_ty, .. } => {
            Some(format!("textureStore takes a {} here, and this is a {}", of_type(expected_ty), of_type(actual_ty)))
        }
        FunctionError::InvalidIfType(_) => Some("the condition of `if` is no bool".to_owned()),
        FunctionError::InvalidSwitchType(_) => Some("`switch` takes an i32 or a u32".to_owned()),
        _ => None,
    }
}

fn of_call(error: &CallError) -> Option<String> {
    match error {
        CallError::ArgumentCount { required, seen } => Some(format!("it takes {required} arguments and gets {seen}")),
        CallError::ArgumentType { index, .. } => {
            Some(format!("argument {} has another type than the function declares", index + 1))
        }
        _ => None,
    }
}

fn of_expression(error: &ExpressionError) -> Option<String> {
    match error {
        ExpressionError::InvalidBinaryOperandTypes { op, lhs_type, rhs_type, .. } => {
            let (left, right) = (of_type(lhs_type), of_type(rhs_type));
            let remedy = if left == right { "" } else { " (convert one of them)" };
            Some(format!("`{}` does not take {left} with {right}{remedy}", binary(*op)))
        }
        ExpressionError::InvalidUnaryOperandType(op, _) => {
            let sign = match op {
                UnaryOperator::Negate => "-",
                UnaryOperator::LogicalNot => "!",
                UnaryOperator::BitwiseNot => "~",
            };
            Some(format!("`{sign}` does not take a value of this type"))
        }
        ExpressionError::SelectValuesTypeMismatch { accept, reject } => Some(format!(
            "`select` takes two values of one type, and these are {} and {}",
            of_type(reject),
            of_type(accept)
        )),
        ExpressionError::InvalidImageCoordinateType(dimension, _) => {
            let parts = match dimension {
                ImageDimension::D1 => "one number",
                ImageDimension::D2 => "a vector of two",
                ImageDimension::D3 | ImageDimension::Cube => "a vector of three",
            };
            Some(format!(
                "the coordinates of this texture are {parts} (whole for loads and stores, floats for samples)"
            ))
        }
        ExpressionError::InvalidImageArrayIndexType(_) => Some("the layer of a texture is an i32 or a u32".to_owned()),
        ExpressionError::InvalidImageOtherIndexType(_) => {
            Some("the level or the sample of a texture is an i32 or a u32".to_owned())
        }
        ExpressionError::InvalidImageClass(class) => {
            let what = match class {
                ImageClass::Storage { .. } => "storage textures, which have one level and one sample",
                ImageClass::Depth { .. } => "depth textures",
                ImageClass::Sampled { multi: true, .. } => "multisampled textures",
                _ => "textures of this kind",
            };
            Some(format!("this function does not take {what}"))
        }
        ExpressionError::InvalidSampleOffset(..) => {
            Some("the offset is a constant vector with as many whole numbers as the texture has dimensions".to_owned())
        }
        ExpressionError::ExpectedImageType(_) => Some("a texture is wanted here".to_owned()),
        ExpressionError::ExpectedSamplerType(_) => Some("a sampler is wanted here".to_owned()),
        ExpressionError::SelectConditionNotABool { actual } => {
            Some(format!("`select` decides by a bool, and this is {}", of_type(actual)))
        }
        _ => None,
    }
}

fn of_made_type(error: &TypeError) -> Option<String> {
    match error {
        TypeError::InvalidData(_) => Some("a structure holds no textures, samplers and pointers".to_owned()),
        TypeError::InvalidArrayBaseType(_) => Some("no array has elements of this type".to_owned()),
        TypeError::InvalidDynamicArray(name, _) => {
            Some(format!("`{name}` is an array without a length: only the last member of a structure may be one"))
        }
        _ => None,
    }
}

fn binary(op: BinaryOperator) -> &'static str {
    match op {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::Equal => "==",
        BinaryOperator::NotEqual => "!=",
        BinaryOperator::Less => "<",
        BinaryOperator::LessEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterEqual => ">=",
        BinaryOperator::And => "&",
        BinaryOperator::ExclusiveOr => "^",
        BinaryOperator::InclusiveOr => "|",
        BinaryOperator::LogicalAnd => "&&",
        BinaryOperator::LogicalOr => "||",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
    }
}

fn of_type(ty: &TypeInner) -> String {
    match ty {
        TypeInner::Scalar(scalar) => of_scalar(*scalar),
        TypeInner::Vector { size, scalar } => format!("vec{}<{}>", *size as u8, of_scalar(*scalar)),
        TypeInner::Matrix { columns, rows, scalar } => {
            format!("mat{}x{}<{}>", *columns as u8, *rows as u8, of_scalar(*scalar))
        }
        TypeInner::Atomic(scalar) => format!("atomic<{}>", of_scalar(*scalar)),
        TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => "pointer".to_owned(),
        TypeInner::Array { .. } | TypeInner::BindingArray { .. } => "array".to_owned(),
        TypeInner::Struct { .. } => "structure".to_owned(),
        _ => "value of this type".to_owned(),
    }
}

fn of_scalar(scalar: Scalar) -> String {
    let kind = match scalar.kind {
        ScalarKind::Sint => "i",
        ScalarKind::Uint => "u",
        ScalarKind::Float => "f",
        ScalarKind::Bool => return "bool".to_owned(),
        ScalarKind::AbstractInt => return "whole number".to_owned(),
        ScalarKind::AbstractFloat => return "decimal number".to_owned(),
    };
    format!("{kind}{}", u32::from(scalar.width) * 8)
}
