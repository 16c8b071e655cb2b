//! AscendCL's numbers, by its public headers, and what its calls report.

use crate::tensor::DType;
use crate::values::{self, FaultKind};

/// The version of AscendCL whose calls these are.
pub(super) const MAJOR: i32 = 1;
/// `aclInit` was called before, by whomever.
pub(super) const ALREADY_INITIALISED: i32 = 100_002;
pub(super) const HUGE_PAGES_FIRST: i32 = 0;
pub(super) const NORMAL_PAGES: i32 = 2;
pub(super) const TO_DEVICE: i32 = 1;
pub(super) const TO_HOST: i32 = 2;
pub(super) const WITHIN: i32 = 3;
/// The mode in which other threads' calls do not end a capture.
pub(super) const CAPTURE_THREAD_LOCAL: i32 = 1;
pub(super) const EVENT_COMPLETE: i32 = 1;
/// Kinds of memory: on the package, and beside it.
pub(super) const MEMORIES: [i32; 2] = [1, 0];
pub(super) const FORMAT_NCHW: i32 = 0;
pub(super) const FORMAT_PLAIN: i32 = 2;
/// Products in the dtype of their operands: never HF32.
pub(super) const KEEP_DTYPE: i8 = 0;
/// Integer division towards 0.
pub(super) const TRUNCATE: i32 = 1;

/// The time limit passed: none of AscendCL's codes, which are positive.
pub(super) const LATE: i32 = -2;

/// A call's failure.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// AscendCL's, 0 for what is refused here, [`LATE`] for what did not end.
    pub(super) code: i32,
    pub(super) message: String,
}

impl Fault {
    /// Returns the fault of an operation that the device cannot run.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self { code: 0, message: message.into() }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            0 | LATE => f.write_str(&self.message),
            code => write!(f, "{} (code {code})", self.message),
        }
    }
}

impl values::Fault for Fault {
    fn kind(&self) -> FaultKind {
        match self.code {
            LATE => FaultKind::Late,
            // Parameters that an operator does not take.
            0 | 161_000..=161_999 => FaultKind::Missing,
            200_000 | 207_001 | 207_018 => FaultKind::Memory,
            // A lost heartbeat, exceptions of the cores, damaged memory, the driver: the context does not recover.
            507_010 | 507_015 | 507_018 | 507_053 | 507_899 => FaultKind::Lost,
            _ => FaultKind::Failed,
        }
    }
}

/// The number of a dtype.
pub(super) fn kind(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::I8 => 2,
        DType::I32 => 3,
        DType::U8 => 4,
        DType::I16 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::I64 => 9,
        DType::U64 => 10,
        DType::F64 => 11,
        DType::Bool => 12,
        DType::Complex64 => 16,
        DType::Complex128 => 17,
        DType::BF16 => 27,
    }
}
