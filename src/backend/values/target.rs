//! What a vendor's library does for a device of operations.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::wait::Awaited;
use crate::graph::Graph;
use crate::tensor::DType;

/// What a fault means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The device cannot do it: another one may.
    Missing,
    /// There is no memory for it.
    Memory,
    /// The device is gone.
    #[cfg_attr(not(feature = "ascend"), allow(dead_code, reason = "PJRT has no code for it"))]
    Lost,
    /// It did not end within the time limit.
    #[cfg_attr(not(feature = "ascend"), allow(dead_code, reason = "a plugin's events alone are waited for"))]
    Late,
    /// It failed.
    Failed,
}

/// What a library reports in place of a result.
pub(crate) trait Fault: Display + Send + 'static {
    /// What it means.
    fn kind(&self) -> FaultKind;
}

/// A result on its way, and the event of its end if there is one.
pub(crate) type Ran<T> = Result<(<T as Target>::Value, Option<Arc<<T as Target>::Event>>), <T as Target>::Fault>;

/// Bytes on their way, and the event of their arrival.
pub(crate) type Fetched<T> = Result<(<T as Target>::Landing, Arc<<T as Target>::Event>), <T as Target>::Fault>;

/// Where a run of a recording finds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// An input of the recording.
    Input(usize),
    /// The result of an earlier run.
    Result(usize),
}

/// A run of a recording.
pub(crate) struct Run<'a, T: Target> {
    pub(crate) program: &'a T::Program,
    pub(crate) inputs: Vec<Place>,
    /// The last run that reads its result.
    pub(crate) last_read: usize,
    /// Whether its result is one of the recording's.
    pub(crate) lasts: bool,
}

/// Values on a device, typed and immutable, and the graphs that make them of others.
pub(crate) trait Target: Sized + Send + Sync + 'static {
    type Fault: Fault;
    /// The memory of a value; cheap to clone.
    type Value: Clone + Send + Sync + 'static;
    type Event: Awaited<Fault = Self::Fault>;
    /// A graph that is ready to run.
    type Program: Send + Sync + 'static;
    /// Runs that the library keeps, to be started as one.
    type Recording: Send + Sync + 'static;
    /// Bytes on their way to the host. They may be dropped before they are there.
    type Landing: Deref<Target = [u8]> + Send;

    /// What it calls itself in refusals: "a PJRT device".
    const TITLE: &'static str;

    /// Prepares a graph of one result.
    fn compile(&self, graph: &Arc<Graph>) -> Result<Self::Program, Self::Fault>;

    /// Starts it: the result, and the event of its end if there is one. The memory of an input that is `spare` may become the result's: it is
    /// of the result's type, and nothing reads it any more.
    fn run(&self, program: &Self::Program, inputs: &[Self::Value], spare: Option<usize>) -> Ran<Self>;

    /// Keeps runs over inputs of these types; `None` where the library cannot.
    fn record(
        &self,
        inputs: &[(DType, Vec<usize>)],
        runs: &[Run<'_, Self>],
    ) -> Result<Option<Self::Recording>, Self::Fault>;

    /// The values that a recording reads and writes at each start: its inputs, and the results that last, in the order of their runs. They are
    /// no other value's memory.
    fn places<'a>(&self, recording: &'a Self::Recording) -> (&'a [Self::Value], &'a [Self::Value]);

    /// Starts a recording over these values, of which those that are not in their places are copied there.
    fn replay(
        &self,
        recording: &Self::Recording,
        inputs: &[Self::Value],
    ) -> Result<Option<Arc<Self::Event>>, Self::Fault>;

    /// Takes bytes to the device, which are as many as the shape holds.
    fn upload(&self, bytes: &[u8], dtype: DType, shape: &[usize]) -> Result<Self::Value, Self::Fault>;

    /// Starts to fetch a value of that type.
    fn fetch(&self, value: &Self::Value, dtype: DType, shape: &[usize]) -> Fetched<Self>;

    /// What a cost model says of a run, where it is simulated.
    fn cost(&self, _graph: &Graph) -> Option<Duration> {
        None
    }

    /// Bytes that it keeps for the next work.
    fn kept(&self) -> u64 {
        0
    }

    /// Gives back memory that nothing uses.
    fn trim(&self) -> Result<(), Self::Fault> {
        Ok(())
    }
}
