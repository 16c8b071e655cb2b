//! Builtin functions on whole vectors and matrices, and those with results of several parts. `math` comes here for functions of whole vectors. Sums run
//! from the first component to the last; `length` avoids no overflow that WGSL allows. Results with two parts (`modf`, `frexp`) are two helpers and a
//! structure.

use naga::proc::NameKey;
use naga::{BinaryOperator, MathFunction};

use super::super::types::{COMPONENTS, Ty};
use super::super::{Result, Writer};
use super::arithmetic::column_path;
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl<'m> Writer<'m> {
    /// `None` for functions that work component by component.
    pub(super) fn geometry(
        &mut self,
        function: MathFunction,
        result: Ty,
        types: &[Ty],
        values: &[String],
    ) -> Result<Option<String>> {
        use MathFunction as F;
        let Some(first) = types.first().copied() else { return self.unsupported("a function without arguments") };
        let list = values.join(", ");
        let helper = match (function, first) {
            (F::Modf | F::Frexp, _) => {
                let Ty::Struct(handle) = result else { return self.unsupported("this result") };
                self.split(function == F::Frexp, handle, first)?
            }
            (F::Dot, Ty::Vector(size, kind)) => self.dot_helper(size, kind)?,
            (F::Length | F::Distance | F::Normalize, _) => self.length_helper(function, first)?,
            (F::Cross, Ty::Vector(3, kind)) => self.cross_helper(kind)?,
            (F::FaceForward, Ty::Vector(size, kind)) => {
                let dot = self.dot_helper(size, kind)?;
                let cosine = format!("{dot}(b, c)");
                let away = self.scalar(BinaryOperator::Less, kind, &cosine, &real(kind, "0.0"))?;
                let negative =
                    self.map("neg", first, &[(first, "a")], &|writer, kind, x| writer.negate(kind, &x[0]))?;
                self.vector_helper("face_forward", first, 3, &format!("return {away} ? a : {negative};"))?
            }
            (F::Reflect, Ty::Vector(size, kind)) => {
                let dot = self.dot_helper(size, kind)?;
                let twice = self.scalar(BinaryOperator::Multiply, kind, &real(kind, "2.0"), &format!("{dot}(b, a)"))?;
                let along = self.binary(BinaryOperator::Multiply, (first, Ty::Scalar(kind)), "b", "twice")?;
                let rest = self.binary(BinaryOperator::Subtract, (first, first), "a", &along)?;
                let body = format!("const {} twice = {twice}; return {rest};", kind.name());
                self.vector_helper("reflect", first, 2, &body)?
            }
            (F::Refract, Ty::Vector(size, kind)) => self.refract_helper(size, kind)?,
            (F::Transpose, Ty::Matrix(columns, rows, kind)) => self.transpose_helper(columns, rows, kind)?,
            (F::Determinant, Ty::Matrix(side, _, kind)) => self.determinant_helper(side, kind)?,
            (F::Mix, Ty::Vector(..)) | (_, Ty::Scalar(_)) | (_, Ty::Vector(..)) => return Ok(None),
            _ => return self.unsupported(format!("the function {function:?} of this type")),
        };
        Ok(Some(format!("{helper}({list})")))
    }

    /// A helper on `count` vectors of a type that gives such a one.
    fn vector_helper(&mut self, name: &str, ty: Ty, count: usize, body: &str) -> Result<String> {
        let vector = self.type_name(ty)?;
        let helper = format!("cantus_{name}_{vector}");
        self.helper(&helper, |_| {
            let parameters: Vec<String> =
                ["a", "b", "c"][..count].iter().map(|letter| format!("{vector} {letter}")).listed();
            Ok(format!("{vector} {helper}({}) {{ {body} }}", parameters.join(", ")))
        })?;
        Ok(helper)
    }

    fn dot_helper(&mut self, size: u32, kind: Scalar) -> Result<String> {
        let vector = self.type_name(Ty::Vector(size, kind))?;
        let helper = format!("cantus_dot_{vector}");
        if !self.defined.contains(&helper) {
            let pairs: Vec<(String, String)> =
                COMPONENTS[..size as usize].iter().map(|part| (format!("a.{part}"), format!("b.{part}"))).listed();
            let sum = self.dot_text(kind, &pairs)?;
            self.helper(&helper, |_| {
                Ok(format!("{} {helper}({vector} a, {vector} b) {{ return {sum}; }}", kind.name()))
            })?;
        }
        Ok(helper)
    }

    /// The Euclidean length, and what is made of it.
    fn length_helper(&mut self, function: MathFunction, ty: Ty) -> Result<String> {
        use MathFunction as F;
        let kind = self.kind_of(ty)?;
        let scalar = kind.name();
        let name = self.type_name(ty)?;
        let helper = match function {
            F::Length => format!("cantus_length_{name}"),
            F::Distance => format!("cantus_distance_{name}"),
            _ => format!("cantus_normalize_{name}"),
        };
        if self.defined.contains(&helper) {
            return Ok(helper);
        }
        let (result, parameters, body) = match (function, ty) {
            (F::Length, Ty::Vector(size, _)) => {
                let dot = self.dot_helper(size, kind)?;
                let root = self.float_call("sqrt", kind, &[format!("{dot}(a, a)")])?;
                (scalar.to_owned(), format!("{name} a"), format!("return {root};"))
            }
            (F::Length, _) => {
                let size = self.float_call("fabs", kind, &["a".to_owned()])?;
                (scalar.to_owned(), format!("{name} a"), format!("return {size};"))
            }
            (F::Distance, _) => {
                let length = self.length_helper(F::Length, ty)?;
                let difference = self.binary(BinaryOperator::Subtract, (ty, ty), "a", "b")?;
                (scalar.to_owned(), format!("{name} a, {name} b"), format!("return {length}({difference});"))
            }
            _ => {
                let length = self.length_helper(F::Length, ty)?;
                let part = self.binary(BinaryOperator::Divide, (ty, Ty::Scalar(kind)), "a", "size")?;
                (name.clone(), format!("{name} a"), format!("const {scalar} size = {length}(a); return {part};"))
            }
        };
        self.helper(&helper, |_| Ok(format!("{result} {helper}({parameters}) {{ {body} }}")))?;
        Ok(helper)
    }

    /// `a * b - c * d`.
    fn minor(&mut self, kind: Scalar, [a, b, c, d]: [&str; 4]) -> Result<String> {
        let left = self.scalar(BinaryOperator::Multiply, kind, a, b)?;
        let right = self.scalar(BinaryOperator::Multiply, kind, c, d)?;
        self.scalar(BinaryOperator::Subtract, kind, &left, &right)
    }

    fn cross_helper(&mut self, kind: Scalar) -> Result<String> {
        let ty = Ty::Vector(3, kind);
        let make = self.constructor(3, kind, &[1; 3])?;
        let x = self.minor(kind, ["a.y", "b.z", "a.z", "b.y"])?;
        let y = self.minor(kind, ["a.z", "b.x", "a.x", "b.z"])?;
        let z = self.minor(kind, ["a.x", "b.y", "a.y", "b.x"])?;
        self.vector_helper("cross", ty, 2, &format!("return {make}({x}, {y}, {z});"))
    }

    fn refract_helper(&mut self, size: u32, kind: Scalar) -> Result<String> {
        use BinaryOperator as B;
        let ty = Ty::Vector(size, kind);
        let (vector, scalar) = (self.type_name(ty)?, kind.name());
        let helper = format!("cantus_refract_{vector}");
        if self.defined.contains(&helper) {
            return Ok(helper);
        }
        let dot = self.dot_helper(size, kind)?;
        let one = real(kind, "1.0");
        let square = self.scalar(B::Multiply, kind, "cosine", "cosine")?;
        let sine = self.scalar(B::Subtract, kind, &one, &square)?;
        let ratio = self.scalar(B::Multiply, kind, "c", "c")?;
        let bent = self.scalar(B::Multiply, kind, &ratio, &sine)?;
        let k = self.scalar(B::Subtract, kind, &one, &bent)?;
        let reflects = self.scalar(B::Less, kind, "k", &real(kind, "0.0"))?;
        let root = self.float_call("sqrt", kind, &["k".to_owned()])?;
        let along = self.scalar(B::Multiply, kind, "c", "cosine")?;
        let factor = self.scalar(B::Add, kind, &along, &root)?;
        let straight = self.binary(B::Multiply, (ty, Ty::Scalar(kind)), "a", "c")?;
        let aside = self.binary(B::Multiply, (ty, Ty::Scalar(kind)), "b", &factor)?;
        let through = self.binary(B::Subtract, (ty, ty), &straight, &aside)?;
        let zero = self.zero(ty)?;
        self.helper(&helper, |_| {
            Ok(format!(
                "{vector} {helper}({vector} a, {vector} b, {scalar} c) {{ const {scalar} cosine = {dot}(b, a); \
                 const {scalar} k = {k}; if ({reflects}) {{ return {zero}; }} return {through}; }}"
            ))
        })?;
        Ok(helper)
    }

    fn transpose_helper(&mut self, columns: u32, rows: u32, kind: Scalar) -> Result<String> {
        let from = self.type_name(Ty::Matrix(columns, rows, kind))?;
        let helper = format!("cantus_transpose_{from}");
        if self.defined.contains(&helper) {
            return Ok(helper);
        }
        let to = self.type_name(Ty::Matrix(rows, columns, kind))?;
        let make = self.matrix_constructor(rows, columns, kind)?;
        let column = self.constructor(columns, kind, &vec![1; columns as usize])?;
        let parts: Vec<String> = COMPONENTS[..rows as usize]
            .iter()
            .map(|row| {
                let parts: Vec<String> = (0..columns as usize).map(|at| column_path("a", at, rows, row)).listed();
                format!("{column}({})", parts.join(", "))
            })
            .listed();
        self.helper(&helper, |_| Ok(format!("{to} {helper}({from} a) {{ return {make}({}); }}", parts.join(", "))))?;
        Ok(helper)
    }

    fn determinant_helper(&mut self, side: u32, kind: Scalar) -> Result<String> {
        let matrix = self.type_name(Ty::Matrix(side, side, kind))?;
        let helper = format!("cantus_determinant_{matrix}");
        if !self.defined.contains(&helper) {
            let columns: Vec<usize> = (0..side as usize).listed();
            let text = self.determinant(kind, side, &columns, &columns)?;
            self.helper(&helper, |_| Ok(format!("{} {helper}({matrix} a) {{ return {text}; }}", kind.name())))?;
        }
        Ok(helper)
    }

    /// The determinant of chosen columns and rows, by the first column.
    fn determinant(&mut self, kind: Scalar, side: u32, columns: &[usize], rows: &[usize]) -> Result<String> {
        let at = |column: usize, row: usize| column_path("a", column, side, COMPONENTS[row]);
        if let (&[left, right], &[top, bottom]) = (columns, rows) {
            let parts = [at(left, top), at(right, bottom), at(right, top), at(left, bottom)];
            return self.minor(kind, [&parts[0], &parts[1], &parts[2], &parts[3]]);
        }
        let Some((first, others)) = columns.split_first() else { return self.unsupported("this determinant") };
        let mut sum: Option<String> = None;
        for (place, row) in rows.iter().enumerate() {
            let rest: Vec<usize> = rows.iter().copied().filter(|other| other != row).listed();
            let minor = self.determinant(kind, side, others, &rest)?;
            let term = self.scalar(BinaryOperator::Multiply, kind, &at(*first, *row), &minor)?;
            sum = Some(match sum {
                None => term,
                Some(sum) if place % 2 == 1 => self.scalar(BinaryOperator::Subtract, kind, &sum, &term)?,
                Some(sum) => self.scalar(BinaryOperator::Add, kind, &sum, &term)?,
            });
        }
        self.known(sum, "this determinant")
    }

    /// `modf` and `frexp`, whose results have two members.
    fn split(&mut self, is_frexp: bool, handle: naga::Handle<naga::Type>, ty: Ty) -> Result<String> {
        let result = self.type_name(Ty::Struct(handle))?;
        let name = self.type_name(ty)?;
        let helper = format!("cantus_{}_{name}", if is_frexp { "frexp" } else { "modf" });
        if self.defined.contains(&helper) {
            return Ok(helper);
        }
        let members = [self.named(NameKey::StructMember(handle, 0)), self.named(NameKey::StructMember(handle, 1))];
        let (first, second) = if is_frexp {
            let exponents = match ty {
                Ty::Vector(size, _) => Ty::Vector(size, Scalar::I32),
                _ => Ty::Scalar(Scalar::I32),
            };
            let fraction =
                self.map("fraction", ty, &[(ty, "a")], &|writer, kind, x| writer.frexp(true, kind, &x[0]))?;
            let exponent =
                self.map("exponent", exponents, &[(ty, "a")], &|writer, kind, x| writer.frexp(false, kind, &x[0]))?;
            (fraction, exponent)
        } else {
            let whole = self.math(MathFunction::Trunc, ty, &[ty], &["a".to_owned()])?;
            (self.binary(BinaryOperator::Subtract, (ty, ty), "a", &whole)?, whole)
        };
        let zero = self.language.zero();
        self.helper(&helper, |_| {
            Ok(format!(
                "{result} {helper}({name} a) {{ {result} r = {zero}; r.{} = {first}; r.{} = {second}; return r; }}",
                members[0], members[1]
            ))
        })?;
        Ok(helper)
    }

    /// Fraction or exponent. Infinity and NaN are their own fraction, with exponent 0.
    fn frexp(&mut self, fraction: bool, kind: Scalar, x: &str) -> Result<String> {
        if kind == Scalar::F16 {
            let wide = self.widen_half()?;
            let inner = self.frexp(fraction, Scalar::F32, &format!("{wide}({x})"))?;
            return Ok(if fraction { format!("{}({inner})", self.round_to_half()?) } else { inner });
        }
        let finite = self.bits_finite(kind)?;
        let function = self.language.float_function("frexp", kind);
        let ty = kind.name();
        let (name, result, body) = if fraction {
            ("fraction", ty, format!("i32 e = 0; return {finite}(a) ? {function}(a, &e) : a;"))
        } else {
            ("exponent", "i32", format!("i32 e = 0; if ({finite}(a)) {{ (void){function}(a, &e); }} return e;"))
        };
        self.call_scalar(name, kind, result, &[x.to_owned()], &body)
    }

    fn bits_finite(&mut self, kind: Scalar) -> Result<String> {
        let suffix = self.language.long_suffixes().1;
        let unsigned = kind.unsigned();
        let bits = self.bit_cast(kind, unsigned)?;
        let body = if kind == Scalar::F64 {
            format!("return ({bits}(a) & 0x7ff0000000000000{suffix}) != 0x7ff0000000000000{suffix};")
        } else {
            format!("return ({bits}(a) & 0x7f800000u) != 0x7f800000u;")
        };
        self.scalar_helper("is_finite", kind, "bool", &[&format!("{} a", kind.name())], &body)
    }
}

/// A constant of a kind of floats.
fn real(kind: Scalar, text: &str) -> String {
    match kind {
        Scalar::F64 => text.to_owned(),
        Scalar::F16 => match text {
            "1.0" => "((f16)0x3c00)".to_owned(),
            "2.0" => "((f16)0x4000)".to_owned(),
            _ => "((f16)0)".to_owned(),
        },
        _ => format!("{text}f"),
    }
}
