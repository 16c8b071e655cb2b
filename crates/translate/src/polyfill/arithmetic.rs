//! Operators. Signed integers are computed as unsigned ones, because C leaves their overflow undefined. `expr` asks `binary` for every operator. Signed
//! arithmetic goes through unsigned, division through helpers for zero and overflow, shifts through masks; compilers remove what is not needed. Matrices
//! are sums of products in WGSL's order.

use naga::BinaryOperator;

use super::super::types::{COMPONENTS, Ty};
use super::super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl<'m> Writer<'m> {
    pub(crate) fn binary(&mut self, op: BinaryOperator, types: (Ty, Ty), left: &str, right: &str) -> Result<String> {
        use BinaryOperator as B;
        if op == B::Multiply {
            match types {
                (Ty::Matrix(columns, rows, kind), Ty::Matrix(others, ..)) => {
                    return self.matrix_product((columns, rows, kind), others, left, right);
                }
                (Ty::Matrix(columns, rows, kind), Ty::Vector(..)) => {
                    return self.matrix_vector(columns, rows, kind, left, right);
                }
                (Ty::Vector(_, kind), Ty::Matrix(columns, rows, _)) => {
                    return self.vector_matrix(columns, rows, kind, left, right);
                }
                _ => {}
            }
        }
        // The larger of both, so that scalars serve vectors.
        let shape = if matches!(types.0, Ty::Scalar(_)) { types.1 } else { types.0 };
        let compares = matches!(op, B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual);
        let result = match (compares, shape) {
            (false, shape) => shape,
            (true, Ty::Vector(size, _)) => Ty::Vector(size, Scalar::Bool),
            (true, _) => Ty::Scalar(Scalar::Bool),
        };
        let name = match op {
            B::Add => "add",
            B::Subtract => "sub",
            B::Multiply => "mul",
            B::Divide => "div",
            B::Modulo => "rem",
            B::Equal => "eq",
            B::NotEqual => "ne",
            B::Less => "lt",
            B::LessEqual => "le",
            B::Greater => "gt",
            B::GreaterEqual => "ge",
            B::And | B::LogicalAnd => "and",
            B::InclusiveOr | B::LogicalOr => "or",
            B::ExclusiveOr => "xor",
            B::ShiftLeft => "shl",
            B::ShiftRight => "shr",
        };
        self.map(name, result, &[(types.0, left), (types.1, right)], &move |writer, kind, x| {
            writer.operate(op, kind, &x[0], &x[1])
        })
    }

    /// One operation on scalars.
    pub(crate) fn operate(&mut self, op: BinaryOperator, kind: Scalar, a: &str, b: &str) -> Result<String> {
        use BinaryOperator as B;
        Ok(match op {
            B::Add => self.arithmetic("add", "+", kind, a, b)?,
            B::Subtract => self.arithmetic("sub", "-", kind, a, b)?,
            B::Multiply => self.arithmetic("mul", "*", kind, a, b)?,
            B::Divide if kind.is_float() => self.arithmetic("div", "/", kind, a, b)?,
            B::Divide | B::Modulo if !kind.is_float() => self.integer_division(op == B::Divide, kind, a, b)?,
            B::Divide | B::Modulo => self.float_call("fmod", kind, &[a.to_owned(), b.to_owned()])?,
            B::Equal => self.compare("eq", "==", kind, a, b)?,
            B::NotEqual => self.compare("ne", "!=", kind, a, b)?,
            B::Less => self.compare("lt", "<", kind, a, b)?,
            B::LessEqual => self.compare("le", "<=", kind, a, b)?,
            B::Greater => self.compare("gt", ">", kind, a, b)?,
            B::GreaterEqual => self.compare("ge", ">=", kind, a, b)?,
            B::LogicalAnd => format!("({a} && {b})"),
            B::LogicalOr => format!("({a} || {b})"),
            B::And => bitwise("&", "&&", kind, a, b),
            B::InclusiveOr => bitwise("|", "||", kind, a, b),
            B::ExclusiveOr => bitwise("^", "!=", kind, a, b),
            B::ShiftLeft => self.shift("shl", "<<", kind, a, b)?,
            B::ShiftRight => self.shift("shr", ">>", kind, a, b)?,
        })
    }

    fn arithmetic(&mut self, name: &str, op: &str, kind: Scalar, a: &str, b: &str) -> Result<String> {
        let ty = kind.name();
        let parameters = [format!("{ty} a"), format!("{ty} b")];
        let parameters = [parameters[0].as_str(), parameters[1].as_str()];
        let body = match kind {
            Scalar::F32 | Scalar::F64 | Scalar::U32 | Scalar::U64 => return Ok(format!("({a} {op} {b})")),
            Scalar::Bool => return self.unsupported("arithmetic with booleans"),
            Scalar::I32 => format!("return (i32)((u32)a {op} (u32)b);"),
            Scalar::I64 => format!("return (i64)((u64)a {op} (u64)b);"),
            Scalar::I16 | Scalar::U16 => format!("return ({ty})((u32)a {op} (u32)b);"),
            Scalar::F16 => {
                let (wide, narrow) = (self.widen_half()?, self.round_to_half()?);
                match self.language.half_arithmetic(op) {
                    Some(body) => body,
                    // Exact: a float has more than twice the digits of a half.
                    None => format!("return {narrow}({wide}(a) {op} {wide}(b));"),
                }
            }
        };
        let helper = self.scalar_helper(name, kind, ty, &parameters, &body)?;
        Ok(format!("{helper}({a}, {b})"))
    }

    /// Division by zero gives the dividend, the remainder of one 0; so does the division of the least number by -1.
    fn integer_division(&mut self, divides: bool, kind: Scalar, a: &str, b: &str) -> Result<String> {
        let ty = kind.name();
        let least = match kind {
            Scalar::I16 => "(i16)-32768",
            Scalar::I32 => "(-2147483647 - 1)",
            Scalar::I64 => self.language.least_long(),
            _ => "",
        };
        let fails = match kind {
            Scalar::I16 | Scalar::I32 | Scalar::I64 => format!("b == 0 || (a == {least} && b == -1)"),
            _ => "b == 0".to_owned(),
        };
        let (name, op, otherwise) = if divides { ("div", "/", "a") } else { ("rem", "%", "0") };
        let body = format!("return {fails} ? {otherwise} : ({ty})(a {op} b);");
        let helper = self.scalar_helper(name, kind, ty, &[&format!("{ty} a"), &format!("{ty} b")], &body)?;
        Ok(format!("{helper}({a}, {b})"))
    }

    /// Comparisons of unsigned numbers with zero go through a helper: compilers warn of those that are always true.
    fn compare(&mut self, name: &str, op: &str, kind: Scalar, a: &str, b: &str) -> Result<String> {
        let ty = kind.name();
        if kind == Scalar::F16 {
            let wide = self.widen_half()?;
            return Ok(format!("({wide}({a}) {op} {wide}({b}))"));
        }
        let zero = |text: &str| matches!(text, "0u" | "0ull" | "0ul");
        let unsigned = matches!(kind, Scalar::U32 | Scalar::U64 | Scalar::U16);
        if (unsigned && (zero(a) || zero(b)) && !matches!(op, "==" | "!=")) || a == b {
            let parameters = [format!("{ty} a"), format!("{ty} b")];
            let body = format!("return a {op} b;");
            let helper = self.scalar_helper(name, kind, "bool", &[&parameters[0], &parameters[1]], &body)?;
            return Ok(format!("{helper}({a}, {b})"));
        }
        Ok(format!("({a} {op} {b})"))
    }

    /// Only as many low bits of the distance count as the number has digits to shift.
    fn shift(&mut self, name: &str, op: &str, kind: Scalar, a: &str, b: &str) -> Result<String> {
        let (ty, unsigned) = (kind.name(), kind.unsigned().name());
        let mask = kind.bytes() * 8 - 1;
        let body = match (op, kind) {
            ("<<", Scalar::I16 | Scalar::U16) => format!("return ({ty})((u32)a << (b & {mask}u));"),
            ("<<", _) => format!("return ({ty})(({unsigned})a << (b & {mask}u));"),
            _ => format!("return ({ty})(a >> (b & {mask}u));"),
        };
        let helper = self.scalar_helper(name, kind, ty, &[&format!("{ty} a"), "u32 b"], &body)?;
        Ok(format!("{helper}({a}, {b})"))
    }

    pub(crate) fn negate(&mut self, kind: Scalar, value: &str) -> Result<String> {
        let ty = kind.name();
        let parameter = format!("{ty} a");
        let body = match kind {
            Scalar::F32 | Scalar::F64 => return Ok(format!("(-{value})")),
            Scalar::F16 => "return (f16)(a ^ 0x8000u);".to_owned(),
            Scalar::I16 | Scalar::U16 => format!("return ({ty})(0u - (u32)a);"),
            Scalar::I32 | Scalar::U32 => format!("return ({ty})(0u - (u32)a);"),
            Scalar::I64 | Scalar::U64 => format!("return ({ty})((u64)0 - (u64)a);"),
            Scalar::Bool => return self.unsupported("arithmetic with booleans"),
        };
        let helper = self.scalar_helper("neg", kind, ty, &[&parameter], &body)?;
        Ok(format!("{helper}({value})"))
    }

    /// The sum of products, as an expression.
    pub(super) fn dot_text(&mut self, kind: Scalar, pairs: &[(String, String)]) -> Result<String> {
        let mut sum: Option<String> = None;
        for (a, b) in pairs {
            let product = self.operate(BinaryOperator::Multiply, kind, a, b)?;
            sum = Some(match sum {
                Some(sum) => self.operate(BinaryOperator::Add, kind, &sum, &product)?,
                None => product,
            });
        }
        self.known(sum, "a product without parts")
    }

    fn matrix_vector(&mut self, columns: u32, rows: u32, kind: Scalar, matrix: &str, vector: &str) -> Result<String> {
        let matrix_name = self.type_name(Ty::Matrix(columns, rows, kind))?;
        let vector_name = self.type_name(Ty::Vector(columns, kind))?;
        let helper = format!("cantus_mul_{matrix_name}_{vector_name}");
        if !self.defined.contains(&helper) {
            let result = self.type_name(Ty::Vector(rows, kind))?;
            let make = self.constructor(rows, kind, &vec![1; rows as usize])?;
            let mut parts = Vec::new();
            for row in &COMPONENTS[..rows as usize] {
                let pairs: Vec<(String, String)> = (0..columns as usize)
                    .map(|column| (column_path("a", column, rows, row), format!("b.{}", COMPONENTS[column])))
                    .listed();
                parts.push(self.dot_text(kind, &pairs)?);
            }
            let parts = parts.join(", ");
            self.helper(&helper, |_| {
                Ok(format!("{result} {helper}({matrix_name} a, {vector_name} b) {{ return {make}({parts}); }}"))
            })?;
        }
        Ok(format!("{helper}({matrix}, {vector})"))
    }

    fn vector_matrix(&mut self, columns: u32, rows: u32, kind: Scalar, vector: &str, matrix: &str) -> Result<String> {
        let matrix_name = self.type_name(Ty::Matrix(columns, rows, kind))?;
        let vector_name = self.type_name(Ty::Vector(rows, kind))?;
        let helper = format!("cantus_mul_{vector_name}_{matrix_name}");
        if !self.defined.contains(&helper) {
            let result = self.type_name(Ty::Vector(columns, kind))?;
            let make = self.constructor(columns, kind, &vec![1; columns as usize])?;
            let mut parts = Vec::new();
            for column in 0..columns as usize {
                let pairs: Vec<(String, String)> = COMPONENTS[..rows as usize]
                    .iter()
                    .map(|row| (format!("a.{row}"), column_path("b", column, rows, row)))
                    .listed();
                parts.push(self.dot_text(kind, &pairs)?);
            }
            let parts = parts.join(", ");
            self.helper(&helper, |_| {
                Ok(format!("{result} {helper}({vector_name} a, {matrix_name} b) {{ return {make}({parts}); }}"))
            })?;
        }
        Ok(format!("{helper}({vector}, {matrix})"))
    }

    fn matrix_product(
        &mut self,
        (columns, rows, kind): (u32, u32, Scalar),
        others: u32,
        left: &str,
        right: &str,
    ) -> Result<String> {
        let left_name = self.type_name(Ty::Matrix(columns, rows, kind))?;
        let right_name = self.type_name(Ty::Matrix(others, columns, kind))?;
        let helper = format!("cantus_mul_{left_name}_{right_name}");
        if !self.defined.contains(&helper) {
            let result = self.type_name(Ty::Matrix(others, rows, kind))?;
            let make = self.matrix_constructor(others, rows, kind)?;
            let mut parts = Vec::new();
            for column in 0..others {
                let field = if columns == 3 { ".v" } else { "" };
                parts.push(self.matrix_vector(columns, rows, kind, "a", &format!("b.c[{column}]{field}"))?);
            }
            let parts = parts.join(", ");
            self.helper(&helper, |_| {
                Ok(format!("{result} {helper}({left_name} a, {right_name} b) {{ return {make}({parts}); }}"))
            })?;
        }
        Ok(format!("{helper}({left}, {right})"))
    }
}

/// A scalar of a matrix.
pub(super) fn column_path(matrix: &str, column: usize, rows: u32, row: &str) -> String {
    format!("{matrix}.c[{column}]{}.{row}", if rows == 3 { ".v" } else { "" })
}

fn bitwise(op: &str, logical: &str, kind: Scalar, a: &str, b: &str) -> String {
    match kind {
        Scalar::Bool => format!("({a} {logical} {b})"),
        Scalar::I16 | Scalar::U16 => format!("(({})({a} {op} {b}))", kind.name()),
        _ => format!("({a} {op} {b})"),
    }
}
