//! The instruction sets that loops over lanes are compiled for, and the one that this process uses.

use std::sync::OnceLock;

/// An instruction set, from the least to the widest. A wider one has all instructions of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// The instructions that every processor of the target has: SSE2, NEON, or WebAssembly's SIMD.
    Baseline,
    /// AVX2 with FMA, F16C, BMI1, BMI2, POPCNT and LZCNT.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl InstructionSet {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Avx2, Self::Avx512];

    /// Returns its name, as the variable `CANTUS_INSTRUCTION_SET` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns the widest set that this processor has, chosen once. `CANTUS_INSTRUCTION_SET` asks for a lesser one, to test it.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| Self::chosen(std::env::var("CANTUS_INSTRUCTION_SET").ok().as_deref()))
    }

    fn chosen(wanted: Option<&str>) -> Self {
        let most = Self::ALL.into_iter().find(|set| wanted == Some(set.name())).unwrap_or(Self::Avx512);
        Self::ALL.into_iter().rfind(|&set| set <= most && set.is_there()).unwrap_or(Self::Baseline)
    }

    /// Returns whether this processor has the set.
    #[must_use]
    pub fn is_there(self) -> bool {
        match self {
            Self::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("lzcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_there()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::InstructionSet;

    #[test]
    fn a_lesser_set_can_be_asked_for_and_a_missing_one_is_not_used() {
        for set in InstructionSet::ALL {
            assert!(InstructionSet::chosen(Some(set.name())) <= set);
            assert_eq!(InstructionSet::chosen(Some(set.name())) == set, set.is_there());
        }
        assert_eq!(InstructionSet::chosen(None), InstructionSet::chosen(Some("of another machine")));
    }
}
