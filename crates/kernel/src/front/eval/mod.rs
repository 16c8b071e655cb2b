//! Constant expressions, evaluated over the tree: what naga's evaluator lacks, and what it gets wrong. Values are exact or correctly rounded
//! from float64. `None` means "not known here", never a guess. Depth and work are bounded.

mod builtin;
mod math;
mod operate;
mod types;
pub(super) mod value;

use std::collections::HashMap;

use super::tree::{DeclKind, ExprId, ExprKind, Place, Tree};
use cantus_base::listed::Listed;
use types::{Shape, Type};
use value::{Scalar, Ty, Value};

/// Deeper expressions are not evaluated.
const DEEPEST: u32 = 300;
/// Scalars that one evaluator handles.
const MOST_WORK: usize = 1 << 22;

/// Evaluates expressions of one tree.
pub(super) struct Evaluator<'t> {
    tree: &'t Tree<'t>,
    known: HashMap<ExprId, Option<Value>>,
    depth: u32,
    work: usize,
    /// An expression exceeded the bound of depth.
    was_deep: bool,
    /// Names that `let` gives to constant expressions count as their values.
    pub(super) follows_let: bool,
}

impl<'t> Evaluator<'t> {
    pub(super) fn new(tree: &'t Tree<'t>) -> Self {
        Self { tree, known: HashMap::new(), depth: 0, work: 0, was_deep: false, follows_let: false }
    }

    /// The value of an expression.
    pub(super) fn value(&mut self, id: ExprId) -> Option<Value> {
        if let Some(known) = self.known.get(&id) {
            self.work += known.as_ref().map_or(1, Value::size);
            return if self.work < MOST_WORK { known.clone() } else { None };
        }
        // What contains itself has no value.
        self.known.insert(id, None);
        self.depth += 1;
        self.was_deep |= self.depth >= DEEPEST;
        let value = if self.depth < DEEPEST && self.work < MOST_WORK { self.compute(id) } else { None };
        self.depth -= 1;
        self.work += value.as_ref().map_or(1, Value::size);
        self.known.insert(id, value.clone());
        value
    }

    /// A whole number that is not negative: lengths, alignments, sizes.
    pub(super) fn count(&mut self, id: ExprId) -> Option<u32> {
        u32::try_from(self.value(id)?.scalar()?.as_int()?).ok()
    }

    /// Returns true while no bound of depth or work was reached. Then an expression without a value here has no value at all.
    pub(super) fn is_whole(&self) -> bool {
        self.depth == 0 && self.work < MOST_WORK && !self.was_deep
    }

    /// A whole number.
    pub(super) fn whole(&mut self, id: ExprId) -> Option<i64> {
        self.value(id)?.scalar()?.as_int()
    }

    /// The greatest of a value's whole numbers.
    pub(super) fn greatest(&mut self, id: ExprId) -> Option<i64> {
        self.value(id)?.cells()?.iter().map(|cell| cell.as_int()).try_listed()?.into_iter().max()
    }

    /// The greatest exponent that `ldexp` takes for such a number; that of `f32` where the text does not tell.
    pub(super) fn greatest_exponent(&mut self, id: ExprId) -> i64 {
        match super::infer::Inference::new(self.tree).vector(id) {
            Some((Ty::F16, _)) => 16,
            Some((Ty::Float | Ty::Int, _)) => 1024,
            _ => 128,
        }
    }

    /// Returns whether some component of both has such an order.
    pub(super) fn are_ordered(&mut self, low: ExprId, high: ExprId, order: fn(f64, f64) -> bool) -> bool {
        let (Some(low), Some(high)) = (self.value(low), self.value(high)) else { return false };
        let (Some(low), Some(high)) = (low.cells(), high.cells()) else { return false };
        let number = |cell: &Scalar| cell.as_float().or_else(|| cell.as_int().map(|whole| whole as f64));
        low.iter()
            .zip(high)
            .any(|(low, high)| number(low).zip(number(high)).is_some_and(|(low, high)| order(low, high)))
    }

    /// The components of a vector of whole numbers.
    pub(super) fn offset(&mut self, id: ExprId) -> Option<Vec<i64>> {
        match self.value(id)? {
            Value::Vector(cells) => cells.iter().map(|cell| cell.as_int()).try_listed(),
            _ => None,
        }
    }

    /// An abstract whole number is shifted by as many bits as it has, or nearly.
    pub(super) fn is_long_shift(&mut self, left: ExprId, right: ExprId) -> bool {
        let reaches = |value: &Value| {
            value.cells().is_some_and(|cells| cells.iter().any(|cell| cell.as_int().is_some_and(|by| by >= 63)))
        };
        self.value(right).as_ref().is_some_and(reaches)
            && self.value(left).and_then(|value| value.ty()) == Some(Ty::Int)
    }

    /// The scalar type and the number of components of a type that is a scalar or a vector.
    pub(super) fn vector_type(&mut self, id: ExprId) -> Option<(Ty, usize)> {
        match self.ty(id)? {
            Type::Scalar(ty) => Some((ty, 1)),
            Type::Vector(size, ty) => Some((ty, size)),
            _ => None,
        }
    }

    /// A number of a constant expression that lies beyond the range of `f16`.
    pub(super) fn beyond_half(&mut self, id: ExprId) -> Option<f64> {
        let value = self.value(id)?;
        let numbers =
            value.cells()?.iter().filter_map(|cell| cell.as_float().or(cell.as_int().map(|whole| whole as f64)));
        numbers.into_iter().find(|&number| value::to_half(number).is_none())
    }

    /// An abstract whole number of a constant expression that lies beyond the range of `i32`.
    pub(super) fn beyond_signed(&mut self, id: ExprId) -> Option<i64> {
        let value = self.value(id).filter(|value| value.ty() == Some(Ty::Int))?;
        value.cells()?.iter().filter_map(|cell| cell.as_int()).find(|&number| i32::try_from(number).is_err())
    }

    fn text(&self, place: Place) -> &'t str {
        place.text(self.tree.text)
    }

    fn compute(&mut self, id: ExprId) -> Option<Value> {
        let expr = self.tree.expr(id);
        match expr.kind {
            ExprKind::Literal => literal(self.text(expr.place)).map(Value::Scalar),
            ExprKind::Paren(inner) => self.value(inner),
            ExprKind::Name { name, local, templates } if templates.count == 0 => {
                let decl = *self.tree.decl(self.tree.named(name, local)?);
                let followed = decl.kind == DeclKind::Const
                    || (decl.kind == DeclKind::Let && self.follows_let && !decl.is_written);
                if !followed {
                    return None;
                }
                let value = self.value(decl.init?)?;
                match decl.ty {
                    Some(ty) => {
                        let ty = self.ty(ty)?;
                        self.fitted(value, &ty)
                    }
                    None if decl.kind == DeclKind::Let => match value.ty() {
                        Some(ty) => value.coerced(ty.concrete()),
                        None => Some(value),
                    },
                    None => Some(value),
                }
            }
            ExprKind::Name { .. } => None,
            ExprKind::Unary(operator, inner) => {
                let value = self.value(inner)?;
                operate::unary(operator, &value)
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                operate::binary(operator, &left, &right)
            }
            ExprKind::Index(base, index) => {
                let index = usize::try_from(self.value(index)?.scalar()?.as_int()?).ok()?;
                let base = self.value(base)?;
                element(&base, index)
            }
            ExprKind::Member(base, name) => {
                let base = self.value(base)?;
                member(&base, self.text(name))
            }
            ExprKind::Call { callee, arguments, .. } => self.call(callee, self.tree.list(arguments)),
        }
    }

    fn call(&mut self, callee: ExprId, arguments: &[ExprId]) -> Option<Value> {
        let ExprKind::Name { name, templates, local } = self.tree.expr(callee).kind else { return None };
        let values: Vec<Value> = arguments.iter().map(|&argument| self.value(argument)).try_listed()?;
        let word = self.text(name);
        if self.tree.named(name, local).is_none() {
            if word == "bitcast" {
                let ty = self.ty(*self.tree.list(templates).first()?)?;
                return builtin::bitcast(&ty, values.first().filter(|_| values.len() == 1)?);
            }
            if let Some(shape) = Shape::inferred(word)
                && templates.count == 0
            {
                return types::inferred(shape, values);
            }
            if self.ty(callee).is_none() && templates.count == 0 {
                return builtin::call(word, &values);
            }
        }
        let ty = self.ty(callee)?;
        types::constructed(&ty, values)
    }

    /// The type that an expression names.
    fn ty(&mut self, id: ExprId) -> Option<Type> {
        self.depth += 1;
        let ty = if self.depth < DEEPEST { self.named_type(id) } else { None };
        self.depth -= 1;
        ty
    }

    fn named_type(&mut self, id: ExprId) -> Option<Type> {
        let ExprKind::Name { name, templates, local } = self.tree.expr(id).kind else { return None };
        if let Some(decl) = self.tree.named(name, local) {
            let decl = self.tree.decl(decl);
            return if decl.kind == DeclKind::Alias { self.ty(decl.ty?) } else { None };
        }
        let arguments = self.tree.list(templates);
        let word = self.text(name);
        match (word, arguments) {
            ("array", [element]) => {
                let element = self.ty(*element)?;
                Some(Type::Array(Box::new(element), None))
            }
            ("array", [element, count]) => {
                let element = self.ty(*element)?;
                let count = self.count(*count)?;
                Some(Type::Array(Box::new(element), Some(count)))
            }
            (_, []) => types::plain(word),
            (_, [element]) => match (self.ty(*element)?, Shape::inferred(word)?) {
                (Type::Scalar(scalar), Shape::Vector(size)) => Some(Type::Vector(size, scalar)),
                (Type::Scalar(scalar), Shape::Matrix(columns, rows)) => Some(Type::Matrix(columns, rows, scalar)),
                _ => None,
            },
            _ => None,
        }
    }

    /// A value as one of a declared type.
    fn fitted(&self, value: Value, ty: &Type) -> Option<Value> {
        match (ty, value) {
            (Type::Array(element, count), Value::Array(items)) => {
                count.is_none_or(|count| count as usize == items.len()).then_some(())?;
                let items = items.into_iter().map(|item| self.fitted(item, element)).try_listed()?;
                Some(Value::Array(items))
            }
            (Type::Array(..), _) | (_, Value::Array(_) | Value::Pair(..)) => None,
            (ty, value) => {
                let fitted = value.coerced(ty.scalar()?)?;
                ty.describes(&fitted).then_some(fitted)
            }
        }
    }
}

fn element(base: &Value, index: usize) -> Option<Value> {
    Some(match base {
        Value::Vector(cells) => Value::Scalar(*cells.get(index)?),
        Value::Matrix { rows, cells } => Value::Vector(cells.get(index.checked_mul(*rows)?..)?.get(..*rows)?.to_vec()),
        Value::Array(items) => items.get(index)?.clone(),
        _ => return None,
    })
}

/// A member of a result, or components of a vector.
fn member(base: &Value, name: &str) -> Option<Value> {
    match base {
        Value::Pair(second, members) => match name {
            "fract" => Some(members[0].clone()),
            _ if name == *second => Some(members[1].clone()),
            _ => None,
        },
        Value::Vector(cells) => {
            let place = |letter: char| "xyzw".find(letter).or_else(|| "rgba".find(letter));
            let parts: Vec<Scalar> = name.chars().map(|letter| cells.get(place(letter)?).copied()).try_listed()?;
            match parts.as_slice() {
                [one] => Some(Value::Scalar(*one)),
                [_, _] | [_, _, _] | [_, _, _, _] => Some(Value::Vector(parts)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The value of a literal. Those of naga's own types (`1li`, `1lf`) are not known here.
fn literal(text: &str) -> Option<Scalar> {
    match text {
        "true" => return Some(Scalar::Bool(true)),
        "false" => return Some(Scalar::Bool(false)),
        _ => {}
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        if hex.contains(['.', 'p', 'P']) {
            return hex_float(hex);
        }
        let (digits, ty) = suffixed(hex, &[('i', Ty::I32), ('u', Ty::U32)]);
        return ty.unwrap_or(Ty::Int).int(i64::from_str_radix(digits, 16).ok()?);
    }
    let (digits, ty) = suffixed(text, &[('i', Ty::I32), ('u', Ty::U32), ('f', Ty::F32), ('h', Ty::F16)]);
    match ty {
        Some(ty) if ty.is_int() => ty.int(digits.parse().ok()?),
        None if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(Scalar::Int(digits.parse().ok()?)),
        // Rounded once, from the decimal digits.
        Some(Ty::F32) => digits.parse().ok().filter(|value: &f32| value.is_finite()).map(Scalar::F32),
        ty => ty.unwrap_or(Ty::Float).float(digits.parse().ok()?),
    }
}

fn suffixed<'a>(text: &'a str, known: &[(char, Ty)]) -> (&'a str, Option<Ty>) {
    let found = known.iter().find_map(|&(suffix, ty)| Some((text.strip_suffix(suffix)?, Some(ty))));
    found.unwrap_or((text, None))
}

/// `1.8p3f`, behind `0x`.
fn hex_float(text: &str) -> Option<Scalar> {
    let (mantissa, exponent) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    // Without an exponent, `f` is a digit.
    let (exponent, ty) = suffixed(exponent, &[('f', Ty::F32), ('h', Ty::F16)]);
    let mut exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.len() > 13 {
        return None;
    }
    exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let mantissa = if significant.is_empty() { 0 } else { u64::from_str_radix(significant, 16).ok()? };
    ty.unwrap_or(Ty::Float).float(math::scaled(mantissa as f64, exponent))
}
