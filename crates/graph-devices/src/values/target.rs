//! A vendor's library behind a device of operations. PJRT and Ascend implement `Target`; everything else about devices of operations is shared. Values are
//! immutable: a program makes new ones, and `spare` says which input's memory it may take. Implementations need not be able to record.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use crate::graph::Graph;
use crate::tensor::DType;
use crate::wait::Awaited;
use cantus_base::listed::Listed;

/// A fault's meaning for the caller.
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

/// A library's error.
pub(crate) trait Fault: Display + Send + 'static {
    /// Returns its meaning.
    fn kind(&self) -> FaultKind;
}

/// A result on its way, and the event of its end if there is one.
pub(crate) type Ran<T> = Result<(<T as Target>::Value, Option<Arc<<T as Target>::Event>>), <T as Target>::Fault>;

/// Bytes on their way, and the event of their arrival.
pub(crate) type Fetched<T> = Result<(<T as Target>::Landing, Arc<<T as Target>::Event>), <T as Target>::Fault>;

/// The place where a run of a recording finds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// An input of the recording.
    Input(usize),
    /// The result of an earlier run.
    Result(usize),
}

/// A run of a recording.
pub(crate) struct Run<T: Target> {
    pub(crate) program: Arc<T::Program>,
    pub(crate) inputs: Vec<Place>,
    /// The last run that reads its result.
    last_read: usize,
    /// True if its result is one of the recording's.
    pub(crate) lasts: bool,
    /// The input whose memory may become the result's: see [`Target::run`].
    pub(crate) spare: Option<usize>,
}

impl<T: Target> Run<T> {
    /// One that nothing reads yet.
    pub(crate) fn new(number: usize, program: Arc<T::Program>, inputs: Vec<Place>) -> Self {
        Self { program, inputs, last_read: number, lasts: false, spare: None }
    }

    /// Notes that a later one reads its result.
    pub(crate) fn note_read(&mut self, number: usize) {
        self.last_read = number;
    }

    /// Returns whether nothing reads its result behind that run.
    pub(crate) fn ends_at(&self, number: usize) -> bool {
        !self.lasts && self.last_read == number
    }

    /// Starts runs in their order, over the values of the recording's inputs, each by `start`: the results that last. Others are released behind the
    /// last run that reads them.
    pub(crate) fn all<E>(
        runs: &[Self],
        inputs: &[T::Value],
        mut start: impl FnMut(&Self, &[T::Value]) -> Result<T::Value, E>,
    ) -> Result<Vec<T::Value>, E> {
        let mut results: Vec<Option<T::Value>> = Vec::with_capacity(runs.len());
        for (number, run) in runs.iter().enumerate() {
            // Places are of what comes before.
            let values = run.inputs.iter().filter_map(|place| match *place {
                Place::Input(input) => inputs.get(input).cloned(),
                Place::Result(run) => results.get(run).cloned().flatten(),
            });
            let values: Vec<T::Value> = values.listed();
            results.push(Some(start(run, &values)?));
            let read =
                run.inputs.iter().filter_map(|place| if let Place::Result(run) = place { Some(*run) } else { None });
            for run in read.chain([number]) {
                if let Some(result) = results.get_mut(run) {
                    result.take_if(|_| runs.get(run).is_some_and(|run| run.ends_at(number)));
                }
            }
        }
        Ok(results.into_iter().flatten().listed())
    }
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

    /// Its name in refusals: "a PJRT device".
    const TITLE: &'static str;

    /// Prepares a graph of one result.
    fn compile(&self, graph: &Arc<Graph>) -> Result<Self::Program, Self::Fault>;

    /// Starts it: the result, and the event of its end if there is one. The memory of an input that is `spare` may become the result's: it is
    /// of the result's type, and nothing reads it any more.
    fn run(&self, program: &Self::Program, inputs: &[Self::Value], spare: Option<usize>) -> Ran<Self>;

    /// Keeps runs over inputs of these types; `None` where the library cannot, and they are started one by one.
    fn record(
        &self,
        inputs: &[(DType, Vec<usize>)],
        runs: &[Run<Self>],
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

    /// Takes a value of another device here; `None` where that goes by the host alone.
    fn take(&self, _other: &Self, _value: &Self::Value) -> Option<Result<Self::Value, Self::Fault>> {
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
