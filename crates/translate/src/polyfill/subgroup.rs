//! Subgroup operations, made of two things that every language gives: which lanes take part, and the value of another lane.
//!
//! Lanes take part as follows. Where an operation is in the entry point, outside of branches, all lanes of the subgroup that the
//! workgroup fills; elsewhere, those that arrive together. Sums of a full subgroup are made pairwise, others in the order of lanes.

use naga::{BinaryOperator, CollectiveOperation, Direction, GatherMode, MathFunction, SubgroupOperation};

use super::super::types::{COMPONENTS, Ty};
use super::super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl<'m> Writer<'m> {
    /// The first argument of every subgroup operation: who takes part, or for the host, where they meet.
    fn participants(&mut self, straight: bool) -> Result<String> {
        if let Some(lacking) = self.language.lacks_subgroups(&self.options) {
            return self.unsupported(lacking);
        }
        self.uses_subgroups = true;
        self.subgroup_sites += 1;
        let invocations: u32 = self.reflection.workgroup_size.iter().product();
        Ok(self.language.participants(straight, invocations, self.subgroup_sites))
    }

    pub(crate) fn subgroup_ballot(&mut self, straight: bool, predicate: &str) -> Result<String> {
        let who = self.participants(straight)?;
        let vector = self.type_name(Ty::Vector(4, Scalar::U32))?;
        let body = self.language.ballot().replace("VEC4", &vector);
        let lanes = self.language.lanes_parameter();
        self.helper("cantus_subgroup_ballot", |_| {
            Ok(format!("{vector} cantus_subgroup_ballot({lanes}, bool x) {{ {body} }}"))
        })?;
        Ok(format!("cantus_subgroup_ballot({who}, {predicate})"))
    }

    pub(crate) fn subgroup_gather(
        &mut self,
        straight: bool,
        mode: &GatherMode,
        ty: Ty,
        value: &str,
        index: Option<&str>,
    ) -> Result<String> {
        let who = self.participants(straight)?;
        let (name, lane) = match mode {
            GatherMode::BroadcastFirst => ("broadcast_first", "cantus_lowest(lanes)"),
            GatherMode::Broadcast(_) => ("broadcast", "i"),
            GatherMode::Shuffle(_) => ("shuffle", "i"),
            GatherMode::ShuffleDown(_) => ("shuffle_down", "cantus_lane() + i"),
            GatherMode::ShuffleUp(_) => ("shuffle_up", "cantus_lane() - i"),
            GatherMode::ShuffleXor(_) => ("shuffle_xor", "cantus_lane() ^ i"),
            GatherMode::QuadBroadcast(_) => ("quad_broadcast", "(cantus_lane() & ~3u) | (i & 3u)"),
            GatherMode::QuadSwap(Direction::X) => ("quad_swap_x", "cantus_lane() ^ 1u"),
            GatherMode::QuadSwap(Direction::Y) => ("quad_swap_y", "cantus_lane() ^ 2u"),
            GatherMode::QuadSwap(Direction::Diagonal) => ("quad_swap_diagonal", "cantus_lane() ^ 3u"),
        };
        self.subgroup_primitives()?;
        let build = |writer: &mut Self, kind: Scalar| {
            let read = writer.lane_value(kind, lane)?;
            Ok((String::new(), format!("return {read};")))
        };
        self.subgroup_call(name, ty, &who, value, index, build)
    }

    pub(crate) fn subgroup_collective(
        &mut self,
        straight: bool,
        operation: SubgroupOperation,
        how: CollectiveOperation,
        ty: Ty,
        value: &str,
    ) -> Result<String> {
        let who = self.participants(straight)?;
        let name = match operation {
            SubgroupOperation::All => "all",
            SubgroupOperation::Any => "any",
            SubgroupOperation::Add => "add",
            SubgroupOperation::Mul => "mul",
            SubgroupOperation::Min => "min",
            SubgroupOperation::Max => "max",
            SubgroupOperation::And => "and",
            SubgroupOperation::Or => "or",
            SubgroupOperation::Xor => "xor",
        };
        let name = match how {
            CollectiveOperation::Reduce => name.to_owned(),
            CollectiveOperation::InclusiveScan => format!("inclusive_{name}"),
            CollectiveOperation::ExclusiveScan => format!("exclusive_{name}"),
        };
        self.subgroup_primitives()?;
        let build = |writer: &mut Self, kind: Scalar| writer.collective_body(operation, how, kind);
        self.subgroup_call(&name, ty, &who, value, None, build)
    }

    /// Defines an operation on scalars, and one that does it for each component, and calls it.
    fn subgroup_call(
        &mut self,
        name: &str,
        ty: Ty,
        who: &str,
        value: &str,
        index: Option<&str>,
        build: impl FnOnce(&mut Self, Scalar) -> Result<(String, String)>,
    ) -> Result<String> {
        let kind = self.kind_of(ty)?;
        let scalar = self.type_name(Ty::Scalar(kind))?;
        let helper = format!("cantus_subgroup_{name}_{scalar}");
        let lanes = self.language.lanes_parameter();
        let (index_parameter, index_argument) = match index {
            Some(_) => (", u32 i", ", i"),
            None => ("", ""),
        };
        if !self.defined.contains(&helper) {
            let (before, body) = build(self, kind)?;
            let meet = self.language.meet().replace('T', &scalar);
            self.helper(&helper, |_| {
                Ok(format!("{scalar} {helper}({lanes}, {scalar} x{index_parameter}) {{ {meet}{before}{body} }}"))
            })?;
        }
        let index = index.map(|index| format!(", {index}")).unwrap_or_default();
        let Ty::Vector(size, _) = ty else {
            if !matches!(ty, Ty::Scalar(_)) {
                return self.unsupported("subgroup operations on this type");
            }
            return Ok(format!("{helper}({who}, {value}{index})"));
        };
        let vector = self.type_name(ty)?;
        let make = self.constructor(size, kind, &vec![1; size as usize])?;
        let vector_helper = format!("cantus_subgroup_{name}_{vector}");
        let who_name = self.language.lanes_argument();
        self.helper(&vector_helper, |_| {
            // In this order: on the host, invocations meet in each of them.
            let stores: Vec<String> = COMPONENTS[..size as usize]
                .iter()
                .map(|part| format!("const {scalar} {part} = {helper}({who_name}, v.{part}{index_argument});"))
                .listed();
            let parts = COMPONENTS[..size as usize].join(", ");
            Ok(format!(
                "{vector} {vector_helper}({lanes}, {vector} v{index_parameter}) {{ {} return {make}({parts}); }}",
                stores.join(" ")
            ))
        })?;
        Ok(format!("{vector_helper}({who}, {value}{index})"))
    }

    /// Writes the primitives of subgroup operations.
    pub(crate) fn subgroup_primitives(&mut self) -> Result<()> {
        for (name, text) in self.language.subgroup_primitives() {
            self.helper(name, |_| Ok((*text).to_owned()))?;
        }
        Ok(())
    }

    /// The value of a lane, as an expression.
    fn lane_value(&mut self, kind: Scalar, lane: &str) -> Result<String> {
        if self.language.shuffle(kind).is_none() {
            return Ok(format!("values[({lane}) & 31u]"));
        }
        Ok(format!("{}(lanes, x, {lane})", self.lane_reader(kind)?))
    }

    /// The function that gives the value of another lane, where the language has shuffles.
    pub(super) fn lane_reader(&mut self, kind: Scalar) -> Result<String> {
        let body = self.known(self.language.shuffle(kind), "shuffles")?;
        let ty = kind.name();
        let helper = format!("cantus_lane_value_{ty}");
        let lanes = self.language.lanes_parameter();
        self.helper(&helper, |_| Ok(format!("{ty} {helper}({lanes}, {ty} x, u32 i) {{ {body} }}")))?;
        Ok(helper)
    }

    /// `(r op y)` of an operation.
    fn fold(&mut self, operation: SubgroupOperation, kind: Scalar, r: &str, y: &str) -> Result<String> {
        use SubgroupOperation as S;
        let op = match operation {
            S::Add => BinaryOperator::Add,
            S::Mul => BinaryOperator::Multiply,
            S::And | S::All => BinaryOperator::And,
            S::Or | S::Any => BinaryOperator::InclusiveOr,
            S::Xor => BinaryOperator::ExclusiveOr,
            S::Min | S::Max => {
                let function = if operation == S::Min { MathFunction::Min } else { MathFunction::Max };
                let ty = Ty::Scalar(kind);
                return self.math(function, ty, &[ty, ty], &[r.to_owned(), y.to_owned()]);
            }
        };
        self.operate(op, kind, r, y)
    }

    fn collective_body(
        &mut self,
        operation: SubgroupOperation,
        how: CollectiveOperation,
        kind: Scalar,
    ) -> Result<(String, String)> {
        let ty = kind.name();
        let fold = self.fold(operation, kind, "r", "y")?;
        let next = self.lane_value(kind, "i")?;
        let walk = format!(
            "for (cantus_lanes rest = lanes; rest != 0u; rest &= rest - 1u) {{ const u32 i = cantus_lowest(rest); const {ty} y = {next};"
        );
        let pairs = self.language.shuffle(kind).is_some();
        Ok(match how {
            CollectiveOperation::Reduce => {
                let first = self.lane_value(kind, "first")?;
                let quick = if pairs {
                    // Read first: `&&` and `||` pass over their second operand, and a shuffle takes every lane.
                    let other = self.lane_value(kind, "cantus_lane() ^ d")?;
                    let fold = self.fold(operation, kind, "x", "y")?;
                    format!(
                        "if (cantus_is_full(lanes)) {{ for (u32 d = cantus_subgroup_size() / 2u; d != 0u; d /= 2u) {{ const {ty} y = {other}; x = {fold}; }} return x; }} "
                    )
                } else {
                    String::new()
                };
                let body = format!(
                    "const u32 first = cantus_lowest(lanes); {ty} r = {first}; {} if (i != first) {{ r = {fold}; }} }} return r;",
                    walk
                );
                (quick, body)
            }
            CollectiveOperation::InclusiveScan | CollectiveOperation::ExclusiveScan => {
                let inclusive = how == CollectiveOperation::InclusiveScan;
                let start = match operation {
                    SubgroupOperation::Add => self.convert(Scalar::U32, kind, "0u")?,
                    SubgroupOperation::Mul => self.convert(Scalar::U32, kind, "1u")?,
                    _ => return self.unsupported("scans other than sums and products"),
                };
                let op = if inclusive { "<=" } else { "<" };
                let quick = if pairs {
                    let before = self.lane_value(kind, "cantus_lane() >= d ? cantus_lane() - d : cantus_lane()")?;
                    let fold = self.fold(operation, kind, "y", "x")?;
                    let last = self.lane_value(kind, "cantus_lane() - 1u")?;
                    let end = if inclusive {
                        "return x;".to_owned()
                    } else {
                        format!("const {ty} before = {last}; return cantus_lane() == 0u ? {start} : before;")
                    };
                    format!(
                        "if (cantus_is_full(lanes)) {{ for (u32 d = 1u; d < cantus_subgroup_size(); d *= 2u) {{ const {ty} y = {before}; \
                         if (cantus_lane() >= d) {{ x = {fold}; }} }} {end} }} "
                    )
                } else {
                    String::new()
                };
                let body = format!("{ty} r = {start}; {walk} if (i {op} cantus_lane()) {{ r = {fold}; }} }} return r;");
                (quick, body)
            }
        })
    }
}
