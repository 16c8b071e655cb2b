//! Atomics: one helper for each operation, type and, where pointers differ by it, address space. All are relaxed.

use naga::proc::NameKey;
use naga::{AddressSpace, AtomicFunction, TypeInner};

use super::super::types::Ty;
use super::super::{Result, Writer};
use crate::reflection::Scalar;

/// An operation on an atomic, by the name that the languages have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Load,
    Store,
    Add,
    Sub,
    And,
    Or,
    Xor,
    Min,
    Max,
    Exchange,
    CompareExchange,
}

impl Atomic {
    fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Add => "add",
            Self::Sub => "sub",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Min => "min",
            Self::Max => "max",
            Self::Exchange => "exchange",
            Self::CompareExchange => "compare_exchange",
        }
    }
}

impl<'m> Writer<'m> {
    pub(crate) fn atomic_load(&mut self, kind: Scalar, space: AddressSpace) -> Result<String> {
        self.atomic_helper(Atomic::Load, kind, space)
    }

    pub(crate) fn atomic_store(&mut self, kind: Scalar, space: AddressSpace) -> Result<String> {
        self.atomic_helper(Atomic::Store, kind, space)
    }

    pub(crate) fn atomic_operation(
        &mut self,
        kind: Scalar,
        space: AddressSpace,
        function: AtomicFunction,
    ) -> Result<String> {
        let atomic = match function {
            AtomicFunction::Add => Atomic::Add,
            AtomicFunction::Subtract => Atomic::Sub,
            AtomicFunction::And => Atomic::And,
            AtomicFunction::ExclusiveOr => Atomic::Xor,
            AtomicFunction::InclusiveOr => Atomic::Or,
            AtomicFunction::Min => Atomic::Min,
            AtomicFunction::Max => Atomic::Max,
            AtomicFunction::Exchange { compare: None } => Atomic::Exchange,
            AtomicFunction::Exchange { compare: Some(_) } => return self.unsupported("this exchange"),
        };
        self.atomic_helper(atomic, kind, space)
    }

    /// The helper that gives WGSL's structure of the old value and whether it was exchanged.
    pub(crate) fn compare_exchange(&mut self, kind: Scalar, space: AddressSpace, result: Ty) -> Result<String> {
        let inner = self.atomic_helper(Atomic::CompareExchange, kind, space)?;
        let Ty::Struct(handle) = result else { return self.unsupported("this exchange") };
        let TypeInner::Struct { .. } = self.module.types[handle].inner else {
            return self.unsupported("this exchange");
        };
        let name = self.type_name(result)?;
        let members = [self.named(NameKey::StructMember(handle, 0)), self.named(NameKey::StructMember(handle, 1))];
        let pointer = self.atomic_pointer(kind, space);
        let helper = format!("{inner}_weak");
        let ty = kind.name();
        let zero = self.language.zero();
        self.helper(&helper, |_| {
            Ok(format!(
                "{name} {helper}({pointer}p, {ty} compare, {ty} v) {{ {name} r = {zero}; r.{old} = {inner}(p, compare, v); \
                 r.{exchanged} = r.{old} == compare; return r; }}",
                old = members[0],
                exchanged = members[1],
            ))
        })?;
        Ok(helper)
    }

    fn atomic_pointer(&self, kind: Scalar, space: AddressSpace) -> String {
        // Without `const`: a read-only binding holds no atomics.
        let space = match space {
            AddressSpace::Storage { .. } => {
                AddressSpace::Storage { access: naga::StorageAccess::LOAD | naga::StorageAccess::STORE }
            }
            other => other,
        };
        format!("{}{} *", self.language.space(space, self.options.uniforms_by_value), kind.name())
    }

    fn atomic_helper(&mut self, atomic: Atomic, kind: Scalar, space: AddressSpace) -> Result<String> {
        if let Some(lacking) = self.language.lacks_atomic(atomic, kind, &self.options) {
            return self.unsupported(lacking);
        }
        self.requires.extend(self.language.atomic_extensions(kind));
        let ty = self.type_name(Ty::Scalar(kind))?;
        let suffix = self.language.space_suffix(space);
        let helper = format!("cantus_atomic_{}{suffix}_{ty}", atomic.name());
        if self.defined.contains(&helper) {
            return Ok(helper);
        }
        let pointer = self.atomic_pointer(kind, space);
        let qualifier = pointer.trim_end_matches(" *").trim_end_matches(ty.as_str()).to_owned();
        // Floats are compared and exchanged by their bits.
        if kind == Scalar::F32 && !matches!(atomic, Atomic::Load | Atomic::Store | Atomic::Exchange) {
            self.bit_cast(Scalar::U32, Scalar::F32)?;
            self.bit_cast(Scalar::F32, Scalar::U32)?;
        }
        let body = self.language.atomic(atomic, kind, &qualifier);
        let (result, parameters) = match atomic {
            Atomic::Load => (ty.as_str(), format!("{pointer}p")),
            Atomic::Store => ("void", format!("{pointer}p, {ty} v")),
            Atomic::CompareExchange => (ty.as_str(), format!("{pointer}p, {ty} compare, {ty} v")),
            _ => (ty.as_str(), format!("{pointer}p, {ty} v")),
        };
        self.helper(&helper, |_| Ok(format!("{result} {helper}({parameters}) {{ {body} }}")))?;
        Ok(helper)
    }
}

/// A loop that computes the new value from the old one and exchanges them; `{compute}` sees `old` and `v`.
pub(crate) fn exchange_loop(kind: Scalar, compute: &str, exchange: &str) -> String {
    let ty = kind.name();
    format!(
        "{ty} old = *p; while (true) {{ const {ty} next = {compute}; const {ty} seen = {exchange}; \
         if (seen == old) {{ return old; }} old = seen; }}"
    )
}
