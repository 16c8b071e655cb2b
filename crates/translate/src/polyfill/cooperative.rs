//! Cooperative matrices: fragments in the lanes of a subgroup (`fragment`), read and written element by element, multiplied by the device's own instructions
//! where it has some, else by shuffles. What lies outside of an array reads as zero, and is not written.

use naga::{CooperativeData, Expression, Handle, TypeInner};

use super::super::expr::known_index;
use super::super::function::Body;
use super::super::place::arrow;
use super::super::types::{COMPONENTS, Ty, array_count};
use super::super::{Result, Writer};
use crate::fragment::{self, Fragment};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

/// An array in memory, in C.
struct Array {
    /// The text before the type of its elements.
    space: &'static str,
    /// Tells helpers apart, where that is needed.
    suffix: &'static str,
    in_workgroup: bool,
    /// First element, the matrix's first index, elements.
    arguments: String,
}

/// The type of what a lane holds.
pub(crate) fn fragment_type(of: Fragment) -> Option<Ty> {
    let kind = Scalar::of(of.scalar)?;
    Some(if of.elements() == 2 { Ty::Vector(2, kind) } else { Ty::Matrix(2, 4, kind) })
}

/// Returns the suffix of a fragment's name that reaches an element.
fn part(of: Fragment, element: u32) -> String {
    let component = COMPONENTS[element as usize % 4];
    if of.elements() == 2 { format!(".{component}") } else { format!(".c[{}].{component}", element / 4) }
}

/// `A`, `B` or `C`, and the size.
fn name_of(of: Fragment) -> String {
    format!("{:?}{}", of.role, of.size).to_lowercase()
}

/// `base + n`, for readers.
fn plus(base: &str, n: u32) -> String {
    if n == 0 { base.to_owned() } else { format!("({base} + {n}u)") }
}

impl<'m> Writer<'m> {
    fn fragment(&self, f: &Body<'m>, handle: Handle<Expression>) -> Result<(Fragment, Scalar)> {
        if let Some(lacking) = self.language.lacks_matrices() {
            return self.unsupported(lacking);
        }
        let invocations: u32 = self.reflection.workgroup_size.iter().product();
        if !invocations.is_multiple_of(fragment::LANES) {
            return self.unsupported(format!(
                "cooperative matrices in workgroups of {invocations} invocations: they must be a multiple of {}",
                fragment::LANES
            ));
        }
        let of = Fragment::of(f.info[handle].ty.inner_with(&self.module.types));
        let kind = of.and_then(|of| Scalar::of(of.scalar));
        let kind = self.known(kind, "cooperative matrices of this type")?;
        Ok((self.known(of, "cooperative matrices that are not square")?, kind))
    }

    /// The array that a matrix of scalars of that kind lies in.
    fn matrix_array(&mut self, f: &mut Body<'m>, pointer: Handle<Expression>, kind: Scalar) -> Result<Array> {
        let function = f.function;
        let (base, index) = match function.expressions[pointer] {
            Expression::Access { base, index } => {
                let index_kind = self.kind_of(self.ty_of(f, index)?)?;
                let text = match known_index(f, index) {
                    Some(known) => format!("{known}u"),
                    None => self.value(f, index)?,
                };
                (base, if index_kind == Scalar::U32 { text } else { format!("(u32){text}") })
            }
            Expression::AccessIndex { base, index } => (base, format!("{index}u")),
            _ => return self.unsupported("cooperative matrices in memory that is no element of an array"),
        };
        let space = self.space_of(f, base)?;
        let in_workgroup = space == naga::AddressSpace::WorkGroup;
        let TypeInner::Pointer { base: ty, .. } = *f.info[base].ty.inner_with(&self.module.types) else {
            return self.unsupported("cooperative matrices in memory that is no element of an array");
        };
        let TypeInner::Array { base: element, size, stride } = self.module.types[ty].inner else {
            return self.unsupported("cooperative matrices in memory that is no element of an array");
        };
        let plain = self.ty(element)? == Ty::Scalar(kind) && stride == kind.bytes();
        if !plain || !(in_workgroup || matches!(space, naga::AddressSpace::Storage { .. })) {
            return self
                .unsupported("cooperative matrices in memory other than arrays of storage and of the workgroup");
        }
        let (first, count) = match array_count(self.module, size) {
            Some(count) => (arrow(&self.place(f, base)?, "e"), format!("{count}u")),
            None => {
                let (bytes, stride) = self.runtime_bytes(f, base)?;
                (self.elements(f, base)?, format!("{bytes} / {stride}u"))
            }
        };
        Ok(Array {
            space: self.language.space(space, self.options.uniforms_by_value),
            suffix: self.language.space_suffix(space),
            in_workgroup,
            arguments: format!("{first}, {index}, {count}"),
        })
    }

    /// The lane's row and column, and for each element what it adds to the array's first index.
    fn matrix_places(&mut self, of: Fragment, row_major: bool) -> Result<(&'static str, Vec<String>)> {
        self.uses_subgroups = true;
        self.subgroup_sites += 1;
        self.subgroup_primitives()?;
        let lane = if of.rows_are_major() {
            "const u32 row = cantus_lane() % 32u / 4u, column = cantus_lane() % 4u * 2u;"
        } else {
            "const u32 column = cantus_lane() % 32u / 4u, row = cantus_lane() % 4u * 2u;"
        };
        let place = |element| {
            let (down, across) = of.place(element);
            let (row, column) = (plus("row", down), plus("column", across));
            if row_major { format!("{row} * stride + {column}") } else { format!("{column} * stride + {row}") }
        };
        Ok((lane, (0..of.elements()).map(place).listed()))
    }

    /// `coopLoad` and `coopLoadT`.
    pub(crate) fn matrix_load(
        &mut self,
        f: &mut Body<'m>,
        handle: Handle<Expression>,
        data: &CooperativeData,
    ) -> Result<String> {
        let (of, kind) = self.fragment(f, handle)?;
        let array = self.matrix_array(f, data.pointer, kind)?;
        let stride = self.value(f, data.stride)?;
        let ty = self.known(fragment_type(of), "cooperative matrices of this type")?;
        let (name, scalar) = (self.type_name(ty)?, self.type_name(Ty::Scalar(kind))?);
        let order = if data.row_major { "rows" } else { "columns" };
        let own = (array.in_workgroup && kind == Scalar::F16)
            .then(|| self.language.matrix_load(of.size, data.row_major, data.row_major != of.rows_are_major()))
            .flatten();
        let place = if own.is_some() { "_workgroup" } else { array.suffix };
        let constant = if array.space.is_empty() { "" } else { "_const" };
        let helper = format!("cantus_load_{}_{order}_{name}{place}{constant}", name_of(of));
        let (lane, places) = self.matrix_places(of, data.row_major)?;
        let (space, zero) = (array.space, self.zero(Ty::Scalar(kind))?);
        self.helper(&helper, |writer| {
            let mut body = format!("{name} m = {};", writer.language.zero());
            if let Some((condition, own)) = own {
                body += &format!("\n    if constexpr ({condition}) {{\n    {own}\n       ");
                for pair in 0..of.elements() / 2 {
                    let [low, high] = [2 * pair, 2 * pair + 1].map(|element| part(of, element));
                    body += &format!(" m{low} = (f16)r{pair}; m{high} = (f16)(r{pair} >> 16);");
                }
                body += "\n        return m;\n    } }\n   ";
            }
            body += &format!(" {lane} u32 i;");
            for (element, place) in (0..).zip(&places) {
                let target = part(of, element);
                body += &format!("\n    i = first + {place}; m{target} = i < count ? p[i] : {zero};");
            }
            Ok(format!("{name} {helper}({space}{scalar} *p, u32 first, u32 count, u32 stride) {{\n    {body}\n    return m;\n}}"))
        })?;
        Ok(format!("{helper}({}, {stride})", array.arguments))
    }

    /// `coopStore` and `coopStoreT`, as a statement without its semicolon.
    pub(crate) fn matrix_store(
        &mut self,
        f: &mut Body<'m>,
        target: Handle<Expression>,
        data: &CooperativeData,
    ) -> Result<String> {
        let (of, kind) = self.fragment(f, target)?;
        let value = self.value(f, target)?;
        let array = self.matrix_array(f, data.pointer, kind)?;
        let stride = self.value(f, data.stride)?;
        let ty = self.known(fragment_type(of), "cooperative matrices of this type")?;
        let (name, scalar) = (self.type_name(ty)?, self.type_name(Ty::Scalar(kind))?);
        let order = if data.row_major { "rows" } else { "columns" };
        let helper = format!("cantus_store_{}_{order}_{name}{}", name_of(of), array.suffix);
        let (lane, places) = self.matrix_places(of, data.row_major)?;
        let space = array.space;
        self.helper(&helper, |_| {
            let mut body = format!("{lane} u32 i;");
            for (element, place) in (0..).zip(&places) {
                let part = part(of, element);
                body += &format!("\n    i = first + {place}; if (i < count) {{ p[i] = m{part}; }}");
            }
            Ok(format!(
                "void {helper}({space}{scalar} *p, u32 first, u32 count, u32 stride, {name} m) {{\n    {body}\n}}"
            ))
        })?;
        Ok(format!("{helper}({}, {stride}, {value})", array.arguments))
    }

    /// `coopMultiplyAdd`. Sums are float32, and rounded to f16 at the end where they are kept so.
    pub(crate) fn matrix_multiply_add(
        &mut self,
        f: &mut Body<'m>,
        operands: [Handle<Expression>; 3],
    ) -> Result<String> {
        let [a, b, c] = operands.map(|operand| self.fragment(f, operand));
        let ((a, kind), (b, _), (c, sums)) = (a?, b?, c?);
        if !c.takes(a, b) {
            return self.unsupported("products of cooperative matrices of different sizes or types");
        }
        let mut values = Vec::new();
        let mut names = Vec::new();
        for (operand, of) in operands.into_iter().zip([a, b, c]) {
            values.push(self.value(f, operand)?);
            let ty = self.known(fragment_type(of), "cooperative matrices of this type")?;
            names.push(self.type_name(ty)?);
        }
        let who = self.matrix_lanes();
        let helper = format!("cantus_multiply_add_{}_{}", names[0], names[2]);
        if !self.defined.contains(&helper) {
            self.subgroup_primitives()?;
            let shuffled = self.shuffled_product(a, kind, (c, sums))?;
            let own = (kind == Scalar::F16).then(|| self.language.matrix_multiply_add(c.size, sums)).flatten();
            let body = match own {
                Some((condition, own)) => {
                    format!("\n    if constexpr ({condition}) {{\n    {own}\n    }} else {{\n    {shuffled}\n    }}\n")
                }
                None => format!("\n    {shuffled}\n"),
            };
            let (lanes, [x, y, z]) = (self.language.lanes_parameter(), [&names[0], &names[1], &names[2]]);
            self.helper(&helper, |_| Ok(format!("{z} {helper}({lanes}, {x} a, {y} b, {z} c) {{{body}}}")))?;
        }
        Ok(format!("{helper}({who}, {})", values.join(", ")))
    }

    /// The first argument of a product: all lanes take part.
    fn matrix_lanes(&mut self) -> String {
        self.uses_subgroups = true;
        self.subgroup_sites += 1;
        let invocations: u32 = self.reflection.workgroup_size.iter().product();
        self.language.participants(true, invocations, self.subgroup_sites)
    }

    /// The body of a product whose elements come from other lanes.
    fn shuffled_product(&mut self, a: Fragment, kind: Scalar, (c, sums): (Fragment, Scalar)) -> Result<String> {
        let (elements, halves) = (c.elements(), c.size / 8);
        self.type_name(Ty::Scalar(Scalar::F32))?;
        let mut list = |name: &str, kind| {
            let values: Result<Vec<String>> = (0..elements)
                .map(|element| self.convert(kind, Scalar::F32, &format!("{name}{}", part(c, element))))
                .try_listed();
            values.map(|values| values.join(", "))
        };
        let (x, y, z) = (list("a", kind)?, list("b", kind)?, list("c", sums)?);
        debug_assert_eq!(a.elements(), elements);
        let mut body = format!(
            "const f32 x[{elements}] = {{ {x} }}, y[{elements}] = {{ {y} }};\n    f32 z[{elements}] = {{ {z} }};"
        );
        let [left, right] = match self.language.shuffle(Scalar::F32) {
            // By way of arrays that all lanes fill.
            None => {
                body += &format!(
                    "\n    f32 xs[{elements}][32], ys[{elements}][32];\n    for (u32 e = 0u; e < {elements}u; e++) {{ \
                     (void)cantus_meet(site, &x[e], xs[e], sizeof(f32)); (void)cantus_meet(site, &y[e], ys[e], sizeof(f32)); }}"
                );
                ["xs[ELEMENT][LANE]", "ys[ELEMENT][LANE]"].map(str::to_owned)
            }
            Some(_) => {
                let read = self.lane_reader(Scalar::F32)?;
                ["x", "y"].map(|name| format!("{read}(lanes, {name}[ELEMENT], cantus_lane() / 32u * 32u + LANE)"))
            }
        };
        let read = |text: &str, first: &str, read: &fragment::Read| {
            text.replace("ELEMENT", &read.element.to_string()).replace("LANE", &format!("({})", plus(first, read.lane)))
        };
        body += "\n    const u32 left = cantus_lane() % 32u / 4u * 4u, right = cantus_lane() % 4u * 8u;";
        for k in 0..c.size {
            body += "\n    {";
            for half in 0..halves {
                body += &format!(" const f32 a{half} = {};", read(&left, "left", &fragment::left(k, half)));
            }
            for (pair, half) in (0..2).flat_map(|pair| (0..halves).map(move |half| (pair, half))) {
                let column = read(&right, "right", &fragment::right(k, pair, half));
                body += &format!(" const f32 b{pair}{half} = {column};");
                for below in 0..halves {
                    body += &format!(" z[{}] += a{below} * b{pair}{half};", pair + 2 * below + 4 * half);
                }
            }
            body += " }";
        }
        for element in 0..elements {
            let value = self.convert(Scalar::F32, sums, &format!("z[{element}]"))?;
            body += &format!("\n    c{} = {value};", part(c, element));
        }
        Ok(body + "\n    return c;")
    }
}
