//! Helpers in the emitted source, each written when something first asks for it. What WGSL promises and C does not is in these. `Writer::helper` defines
//! one under a mangled name the first time; what its body asks for is defined before it. An operation on a vector is a helper that calls the scalar's for
//! each component. Helpers that nothing calls in the end are left out (`entry`).

mod arithmetic;
mod atomic;
mod bits;
mod convert;
mod cooperative;
mod geometry;
mod math;
mod packing;
mod subgroup;

pub(super) use atomic::{Atomic, exchange_loop};
pub(super) use cooperative::fragment_type;

use super::types::{COMPONENTS, Ty};
use super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

/// Builds the expression of one scalar from those of its operands. Each operand is mentioned once.
type Build<'a, 'm> = &'a dyn Fn(&mut Writer<'m>, Scalar, &[String]) -> Result<String>;

impl<'m> Writer<'m> {
    /// An operation on each component: an expression for scalars, a call of a helper for vectors and matrices. Scalars among the
    /// operands of vectors serve all components.
    pub(super) fn map(
        &mut self,
        name: &str,
        result: Ty,
        arguments: &[(Ty, &str)],
        build: Build<'_, 'm>,
    ) -> Result<String> {
        let Some((first, _)) = arguments.first() else { return self.unsupported("an operation without operands") };
        let kind = self.kind_of(*first)?;
        let values: Vec<String> = arguments.iter().map(|(_, value)| (*value).to_owned()).listed();
        if matches!(result, Ty::Scalar(_)) {
            return build(self, kind, &values);
        }
        let mut names = Vec::new();
        for (ty, _) in arguments {
            names.push(self.type_name(*ty)?);
        }
        let same = names.iter().all(|name| Some(name) == names.first());
        let mangled = if same { names[0].clone() } else { names.join("_") };
        let result_name = self.type_name(result)?;
        // The same operands may have several results.
        let suffix = match (self.kind_of(result)?, kind) {
            (to, from) if to == from || to == Scalar::Bool => String::new(),
            (to, _) => format!("_to_{}", to.name()),
        };
        let helper = format!("cantus_{name}_{mangled}{suffix}");
        if !self.defined.contains(&helper) {
            let letters = ["a", "b", "c", "d"];
            let parameters: Vec<String> =
                names.iter().zip(letters).map(|(name, letter)| format!("{name} {letter}")).listed();
            let parameters = parameters.join(", ");
            let body = match result {
                Ty::Matrix(columns, rows, kind) => {
                    let mut parts = Vec::new();
                    for column in 0..columns {
                        let field = format!(".c[{column}]{}", if rows == 3 { ".v" } else { "" });
                        let types: Vec<Ty> = arguments
                            .iter()
                            .map(|(ty, _)| match ty {
                                Ty::Matrix(_, rows, kind) => Ty::Vector(*rows, *kind),
                                other => *other,
                            })
                            .listed();
                        let operands: Vec<String> = arguments
                            .iter()
                            .zip(letters)
                            .map(|((ty, _), letter)| match ty {
                                Ty::Matrix(..) => format!("{letter}{field}"),
                                _ => letter.to_owned(),
                            })
                            .listed();
                        let pairs: Vec<(Ty, &str)> =
                            types.into_iter().zip(operands.iter().map(String::as_str)).listed();
                        parts.push(self.map(name, Ty::Vector(rows, kind), &pairs, build)?);
                    }
                    let make = self.matrix_constructor(columns, rows, kind)?;
                    format!("return {make}({});", parts.join(", "))
                }
                Ty::Vector(size, to) => {
                    let mut parts = Vec::new();
                    for component in &COMPONENTS[..size as usize] {
                        let operands: Vec<String> = arguments
                            .iter()
                            .zip(letters)
                            .map(|((ty, _), letter)| match ty {
                                Ty::Vector(..) => format!("{letter}.{component}"),
                                _ => letter.to_owned(),
                            })
                            .listed();
                        parts.push(build(self, kind, &operands)?);
                    }
                    let make = self.constructor(size, to, &vec![1; size as usize])?;
                    format!("return {make}({});", parts.join(", "))
                }
                _ => return self.unsupported("an operation on this type"),
            };
            self.helper(&helper, |_| Ok(format!("{result_name} {}({parameters}) {{ {body} }}", helper.clone())))?;
        }
        Ok(format!("{helper}({})", values.join(", ")))
    }

    /// The function that makes a vector of parts of these sizes.
    pub(super) fn constructor(&mut self, size: u32, kind: Scalar, sizes: &[u32]) -> Result<String> {
        let name = self.type_name(Ty::Vector(size, kind))?;
        let scalars = sizes.iter().all(|size| *size == 1);
        let helper = if scalars {
            format!("cantus_{name}")
        } else {
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).listed();
            format!("cantus_{name}_{}", sizes.join("_"))
        };
        if !self.defined.contains(&helper) {
            let mut parameters = Vec::new();
            let mut parts = Vec::new();
            for (place, size) in sizes.iter().enumerate() {
                let part = if *size == 1 { Ty::Scalar(kind) } else { Ty::Vector(*size, kind) };
                parameters.push(format!("{} a{place}", self.type_name(part)?));
                match size {
                    1 => parts.push(format!("a{place}")),
                    _ => parts.extend(COMPONENTS[..*size as usize].iter().map(|part| format!("a{place}.{part}"))),
                }
            }
            let (parameters, parts) = (parameters.join(", "), parts.join(", "));
            self.helper(&helper, |_| {
                Ok(format!("{name} {helper}({parameters}) {{ {name} r = {{ {parts} }}; return r; }}"))
            })?;
        }
        Ok(helper)
    }

    pub(super) fn matrix_constructor(&mut self, columns: u32, rows: u32, kind: Scalar) -> Result<String> {
        let name = self.type_name(Ty::Matrix(columns, rows, kind))?;
        let column = self.type_name(Ty::Vector(rows, kind))?;
        let helper = format!("cantus_{name}");
        let zero = self.language.zero();
        self.helper(&helper, |_| {
            let parameters: Vec<String> = (0..columns).map(|place| format!("{column} a{place}")).listed();
            let field = if rows == 3 { ".v" } else { "" };
            let stores: Vec<String> = (0..columns).map(|place| format!("r.c[{place}]{field} = a{place};")).listed();
            Ok(format!(
                "{name} {helper}({}) {{ {name} r = {zero}; {} return r; }}",
                parameters.join(", "),
                stores.join(" ")
            ))
        })?;
        Ok(helper)
    }

    pub(super) fn splat(&mut self, size: u32, kind: Scalar, value: &str) -> Result<String> {
        let name = self.type_name(Ty::Vector(size, kind))?;
        let make = self.constructor(size, kind, &vec![1; size as usize])?;
        let helper = format!("cantus_splat_{name}");
        let parts = vec!["a"; size as usize].join(", ");
        self.helper(&helper, |_| Ok(format!("{name} {helper}({} a) {{ return {make}({parts}); }}", kind.name())))?;
        Ok(format!("{helper}({value})"))
    }

    /// The function that picks a component by an index below the size.
    pub(super) fn component(&mut self, size: u32, kind: Scalar) -> Result<String> {
        let name = self.type_name(Ty::Vector(size, kind))?;
        let helper = format!("cantus_component_{name}");
        let (scalar, last) = (kind.name(), COMPONENTS[size as usize - 1]);
        self.helper(&helper, |_| {
            let mut choice = format!("v.{last}");
            for place in (0..size as usize - 1).rev() {
                choice = format!("i == {place}u ? v.{} : {choice}", COMPONENTS[place]);
            }
            Ok(format!("{scalar} {helper}({name} v, u32 i) {{ return {choice}; }}"))
        })?;
        Ok(helper)
    }

    /// The function that keeps an index at or below a last one.
    pub(super) fn clamp_helper(&mut self, kind: Scalar) -> Result<&'static str> {
        let (helper, ty) = match kind {
            Scalar::I64 | Scalar::U64 => ("cantus_index64", "u64"),
            _ => ("cantus_index", "u32"),
        };
        self.helper(helper, |_| Ok(format!("u32 {helper}({ty} i, u32 last) {{ return i < last ? (u32)i : last; }}")))?;
        Ok(helper)
    }

    pub(super) fn select(&mut self, ty: Ty, many: bool, condition: &str, accept: &str, reject: &str) -> Result<String> {
        if let (true, Ty::Vector(size, _)) = (many, ty) {
            let condition_type = Ty::Vector(size, Scalar::Bool);
            return self.map("select", ty, &[(condition_type, condition), (ty, accept), (ty, reject)], &|_, _, x| {
                Ok(format!("({} ? {} : {})", x[0], x[1], x[2]))
            });
        }
        Ok(format!("({condition} ? {accept} : {reject})"))
    }

    pub(super) fn fold_bool(&mut self, name: &str, op: &str, size: u32, value: &str) -> Result<String> {
        let vector = self.type_name(Ty::Vector(size, Scalar::Bool))?;
        let helper = format!("cantus_{name}_{vector}");
        self.helper(&helper, |_| {
            let parts: Vec<String> = COMPONENTS[..size as usize].iter().map(|part| format!("v.{part}")).listed();
            Ok(format!("bool {helper}({vector} v) {{ return {}; }}", parts.join(&format!(" {op} "))))
        })?;
        Ok(format!("{helper}({value})"))
    }

    /// A helper on scalars of one kind: `body` with `T` for the type.
    fn scalar_helper(
        &mut self,
        name: &str,
        kind: Scalar,
        result: &str,
        parameters: &[&str],
        body: &str,
    ) -> Result<String> {
        let helper = format!("cantus_{name}_{}", kind.name());
        self.type_name(Ty::Scalar(kind))?;
        self.helper(&helper, |_| Ok(format!("{result} {helper}({}) {{ {body} }}", parameters.join(", "))))?;
        Ok(helper)
    }
}
