//! The libraries: every function is looked up before the first call. Those of operators may be missing; graphs that need them are refused. Functions are
//! declared by hand after public headers, so a wrong signature is memory corruption. A missing function of AscendCL is a reason for no device; a missing
//! operator only refuses the graphs that need it.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;

use super::abi::{self, Fault};
use crate::library;
use cantus_base::listed::Listed;

pub(super) type Pointer = *mut c_void;

macro_rules! functions {
    ($(#[$what:meta])* $table:ident; $($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        $(#[$what])*
        pub(super) struct $table {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $table {
            fn found(find: &dyn Fn(&str) -> Option<Pointer>) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let address = find($symbol).ok_or_else(|| format!("it lacks the function {}", $symbol))?;
                        // SAFETY: the symbol's type is the header's.
                        unsafe { std::mem::transmute::<Pointer, unsafe extern "C" fn($($argument),*) -> $result>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// Functions of AscendCL and of aclnn's own objects.
    Functions;
    init = "aclInit": fn(*const c_char) -> i32;
    version_numbers = "aclrtGetVersion": fn(*mut i32, *mut i32, *mut i32) -> i32;
    device_count = "aclrtGetDeviceCount": fn(*mut u32) -> i32;
    soc_name = "aclrtGetSocName": fn() -> *const c_char;
    recent_message = "aclGetRecentErrMsg": fn() -> *const c_char;
    create_context = "aclrtCreateContext": fn(*mut Pointer, i32) -> i32;
    destroy_context = "aclrtDestroyContext": fn(Pointer) -> i32;
    set_context = "aclrtSetCurrentContext": fn(Pointer) -> i32;
    memory_info = "aclrtGetMemInfo": fn(i32, *mut usize, *mut usize) -> i32;
    malloc = "aclrtMalloc": fn(*mut Pointer, usize, i32) -> i32;
    free = "aclrtFree": fn(Pointer) -> i32;
    malloc_host = "aclrtMallocHost": fn(*mut Pointer, usize) -> i32;
    free_host = "aclrtFreeHost": fn(Pointer) -> i32;
    copy_async = "aclrtMemcpyAsync": fn(Pointer, usize, *const c_void, usize, i32, Pointer) -> i32;
    create_stream = "aclrtCreateStream": fn(*mut Pointer) -> i32;
    destroy_stream = "aclrtDestroyStream": fn(Pointer) -> i32;
    synchronize_stream = "aclrtSynchronizeStream": fn(Pointer) -> i32;
    create_event = "aclrtCreateEvent": fn(*mut Pointer) -> i32;
    destroy_event = "aclrtDestroyEvent": fn(Pointer) -> i32;
    record_event = "aclrtRecordEvent": fn(Pointer, Pointer) -> i32;
    query_event = "aclrtQueryEventStatus": fn(Pointer, *mut i32) -> i32;
    synchronize_event = "aclrtSynchronizeEvent": fn(Pointer) -> i32;
    create_tensor = "aclCreateTensor": fn(*const i64, u64, i32, *const i64, i64, i32, *const i64, u64, Pointer) -> Pointer;
    destroy_tensor = "aclDestroyTensor": fn(Pointer) -> i32;
    create_scalar = "aclCreateScalar": fn(*const c_void, i32) -> Pointer;
    destroy_scalar = "aclDestroyScalar": fn(Pointer) -> i32;
    create_ints = "aclCreateIntArray": fn(*const i64, u64) -> Pointer;
    destroy_ints = "aclDestroyIntArray": fn(Pointer) -> i32;
    set_repeatable = "aclSetAclOpExecutorRepeatable": fn(Pointer) -> i32;
    destroy_executor = "aclDestroyAclOpExecutor": fn(Pointer) -> i32;
}

functions! {
    /// New places for the tensors of an executor that is kept.
    Addresses;
    input = "aclSetInputTensorAddr": fn(Pointer, usize, Pointer, Pointer) -> i32;
    output = "aclSetOutputTensorAddr": fn(Pointer, usize, Pointer, Pointer) -> i32;
}

functions! {
    /// Recordings: what is put into a stream becomes a model, which is run as one.
    Captures;
    begin = "aclmdlRICaptureBegin": fn(Pointer, i32) -> i32;
    end = "aclmdlRICaptureEnd": fn(Pointer, *mut Pointer) -> i32;
    execute = "aclmdlRIExecuteAsync": fn(Pointer, Pointer) -> i32;
    destroy = "aclmdlRIDestroy": fn(Pointer) -> i32;
}

/// The functions that were found.
pub(super) struct Library {
    functions: Functions,
    /// Older libraries lack them, and then executors are made anew.
    pub(super) addresses: Option<Addresses>,
    /// Older libraries lack them, and then commands are kept.
    pub(super) captures: Option<Captures>,
    operators: Vec<Option<(Pointer, Pointer)>>,
    version: String,
}

// SAFETY: functions may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: the addresses do not change after they were looked up.
unsafe impl Sync for Library {}

impl std::ops::Deref for Library {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

macro_rules! operators {
    ($($name:ident)*) => {
        /// Operators of aclnn, by their names there.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Operator { $($name),* }

        const OPERATORS: &[&str] = &[$(stringify!($name)),*];
    };
}

operators! {
    Add Sub Mul Div DivMod FmodTensor Maximum Minimum PowTensorTensor Atan2
    BitwiseAndTensor BitwiseOrTensor BitwiseXorTensor BitwiseNot LogicalAnd LogicalOr LogicalNot
    Exp Log Sqrt Rsqrt Tanh Abs Neg Floor Ceil Round Sin Cos
    EqTensor NeTensor LtTensor LeTensor GtTensor GeTensor SWhere Cast
    Expand Permute SliceV2 ConstantPadNd IndexSelect Arange InplaceFillScalar
    ReduceSum Amax Amin ProdDim Matmul BatchMatMul Convolution
}

/// Names of libraries; of the last ones some may be missing, but not all.
const RUNTIME: &[&str] = &["libascendcl.so", "libnnopbase.so"];
const OPERATOR_LIBRARIES: &[&str] =
    &["libopapi.so", "libopapi_math.so", "libopapi_nn.so", "libopapi_cv.so", "libopapi_transformer.so"];

const REMEDY: &str = "install CANN and set ASCEND_TOOLKIT_HOME, or name a library in CANTUS_ASCEND_LIBRARY";

impl Library {
    /// Loads one library that has everything, or those of the toolkit.
    pub(super) fn load(named: Option<&str>) -> Result<Self, String> {
        let toolkit = std::env::var_os("ASCEND_TOOLKIT_HOME").map(|home| PathBuf::from(home).join("lib64"));
        let open = |name: &str| {
            let places = toolkit.iter().map(|folder| folder.join(name)).filter(|path| path.is_file());
            let mut failed = String::new();
            for path in places.chain([PathBuf::from(name)]) {
                // SAFETY: the user names the library or it is Ascend's.
                match unsafe { library::load(&path) } {
                    Ok(library) => return Ok(library),
                    Err(reason) => failed = format!("{} cannot be loaded: {reason} ({REMEDY})", path.display()),
                }
            }
            Err(failed)
        };
        let mut libraries = Vec::new();
        match named {
            Some(name) => libraries.push(open(name)?),
            None => {
                for name in RUNTIME {
                    libraries.push(open(name)?);
                }
                let operators: Vec<_> = OPERATOR_LIBRARIES.iter().filter_map(|name| open(name).ok()).listed();
                if operators.is_empty() {
                    return Err(format!("none of {} can be loaded ({REMEDY})", OPERATOR_LIBRARIES.join(", ")));
                }
                libraries.extend(operators);
            }
        }
        let find = |name: &str| libraries.iter().find_map(|opened| library::address(opened, name));
        let pair = |name: &&str| Some((find(&format!("aclnn{name}GetWorkspaceSize"))?, find(&format!("aclnn{name}"))?));
        let mut library = Self {
            functions: Functions::found(&find)?,
            addresses: Addresses::found(&find).ok(),
            captures: Captures::found(&find).ok(),
            operators: OPERATORS.iter().map(pair).listed(),
            version: String::new(),
        };
        // Code that has run may have started threads.
        libraries.into_iter().for_each(std::mem::forget);
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: three places for numbers.
        let code = unsafe { (library.version_numbers)(&raw mut major, &raw mut minor, &raw mut patch) };
        library.check("aclrtGetVersion", code).map_err(|fault| fault.to_string())?;
        if major != abi::MAJOR {
            return Err(format!("it is of AscendCL {major}.{minor}, Cantus speaks AscendCL {}", abi::MAJOR));
        }
        library.version = format!("AscendCL {major}.{minor}.{patch}");
        Ok(library)
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The two functions of an operator.
    pub(super) fn operator(&self, operator: Operator) -> Result<(Pointer, Pointer), Fault> {
        let found = self.operators.get(operator as usize).copied().flatten();
        found.ok_or_else(|| Fault::refused(format!("its libraries lack aclnn{operator:?}")))
    }

    /// Turns a call's code into a result.
    pub(super) fn check(&self, call: &str, code: i32) -> Result<(), Fault> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a text of the library's, or null.
        let said = text(unsafe { (self.recent_message)() });
        let message = match said.lines().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("{call} failed: {}", line.trim()),
            None => format!("{call} failed"),
        };
        Err(Fault { code, message })
    }

    /// Initialises AscendCL; that somebody did so before is no error.
    pub(super) fn initialise(&self) -> Result<(), Fault> {
        // SAFETY: without a file of settings.
        match unsafe { (self.init)(std::ptr::null()) } {
            abi::ALREADY_INITIALISED => Ok(()),
            code => self.check("aclInit", code),
        }
    }

    pub(super) fn devices(&self) -> Result<u32, Fault> {
        let mut count = 0;
        // SAFETY: a place for a number.
        self.check("aclrtGetDeviceCount", unsafe { (self.device_count)(&raw mut count) })?;
        Ok(count.min(1024))
    }

    /// The name of the chip.
    pub(super) fn chip(&self) -> String {
        // SAFETY: a text of the library's, or null.
        text(unsafe { (self.soc_name)() })
    }
}

fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the library's texts end in 0 and live until the next call of this thread.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}
