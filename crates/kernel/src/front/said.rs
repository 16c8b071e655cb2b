//! The messages of naga's validator, in WGSL's words: its own show how its module looks.

use std::error::Error;

use naga::valid::{
    CallError, EntryPointError, ExpressionError, FunctionError, GlobalVariableError, LocalVariableError, TypeFlags,
    VaryingError,
};
use naga::{BinaryOperator, BuiltIn, Scalar, ScalarKind, TypeInner, UnaryOperator};

use super::report::without_handles;

/// The message and label of a cause.
pub(super) fn of_cause(cause: &(dyn Error + 'static)) -> String {
    let said = cause.downcast_ref().and_then(of_entry);
    let said = said.or_else(|| cause.downcast_ref().and_then(of_varying));
    let said = said.or_else(|| cause.downcast_ref().and_then(of_variable));
    let said = said.or_else(|| cause.downcast_ref().and_then(of_local));
    let said = said.or_else(|| cause.downcast_ref().and_then(of_function));
    let said = said.or_else(|| cause.downcast_ref().and_then(of_call));
    let said = said.or_else(|| cause.downcast_ref().and_then(of_expression));
    said.unwrap_or_else(|| without_handles(&cause.to_string()))
}

/// The message of naga's reader about operands, which shows its module's types.
pub(super) fn of_operands(message: &str) -> Option<String> {
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

/// Names a text for a preprocessor or a template's engine, by what stands at an error's place.
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

fn of_entry(error: &EntryPointError) -> Option<String> {
    match error {
        EntryPointError::Argument(index, _) => Some(format!("argument {}", index + 1)),
        EntryPointError::BindingCollision(_) => {
            Some("it uses two variables with the same @group and @binding".to_owned())
        }
        EntryPointError::Function(error) => of_function(error),
        EntryPointError::Result(error) => of_varying(error),
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
        ExpressionError::SelectConditionNotABool { actual } => {
            Some(format!("`select` decides by a bool, and this is {}", of_type(actual)))
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
