//! x
/// x
pub struct WgpuBackend;
