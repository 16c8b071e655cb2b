//! Products of matrices by the vendor's library (cuBLASLt, hipBLASLt) in place of a kernel that states one. The library is loaded at the first
//! product that is large enough; without it, or where it has no algorithm or fails, the kernel runs.
//!
//! Both libraries have the same calls and number their attributes differently. Their matrices are stored by columns: what is computed is the
//! transpose of the product, of which ours is the memory. Sums are float32 in full: tensor cores round float32 to TF32, and are not asked for. Those of
//! signed bytes are i32; the vendors have them for a right operand that lies transposed, as the weights of a layer do.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::{Block, Driver, Stream};
use super::library::{self, Address, Code, Handle, ProductTable};
use super::platform::{Fault, FaultKind};
use super::vendor::ProductLibrary;
use crate::backend::native::{Operand, ProductShape};
use crate::tensor::DType;

/// Memory for an algorithm's own use, as the vendors recommend: taken before the first product, so that products can be captured.
const WORKSPACE_BYTES: usize = 32 << 20;
/// Plans kept, at most.
const KEPT: usize = 1024;
/// Operands begin at multiples of this many bytes, or of what their offset has.
pub(super) const ALIGNMENT: usize = 16;

// Numbers that both vendors share.
const FLOAT32: c_int = 0;
const FLOAT16: c_int = 2;
const BFLOAT16: c_int = 14;
const INT8: c_int = 3;
const INT32: c_int = 10;
const MOST_WORKSPACE: c_int = 1;
const RELU: u32 = 2;
const BIAS: u32 = 4;
const NOTHING: u32 = 1;

/// Room for the answer to a question for an algorithm, of which the algorithm is the beginning.
type Answer = [u64; 32];

/// The library, opened for a device.
pub(super) struct Products {
    table: ProductTable,
    library: &'static ProductLibrary,
    handle: Handle,
    workspace: Block,
    /// The plan found for each shape; `None` where the library has nothing for it.
    plans: Mutex<HashMap<ProductShape, Option<Arc<Plan>>>>,
    driver: Arc<Driver>,
}

// SAFETY: handles are names; the library may be called from any thread, and what must not overlap is ordered by the device's lock.
unsafe impl Send for Products {}
// SAFETY: calls for the handle are ordered by the device's lock, and the plans have a lock of their own.
unsafe impl Sync for Products {}

impl Drop for Products {
    fn drop(&mut self) {
        let plans = std::mem::take(self.plans.get_mut().unwrap_or_else(PoisonError::into_inner));
        let Ok(_current) = self.driver.enter() else { return };
        drop(plans);
        // SAFETY: made by `open`, destroyed once; the stream is past its products.
        unsafe { (self.table.destroy)(self.handle) };
    }
}

/// One of the library's descriptions, destroyed with this.
struct Described {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Code,
    /// The function that sets an attribute, and its name.
    set: (Set, &'static str),
}

type Set = unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> Code;

impl Described {
    fn set(&self, attribute: c_int, value: &[u8]) -> Result<(), String> {
        let (set, name) = self.set;
        // SAFETY: the library copies as many bytes as it is told.
        let code = unsafe { set(self.handle, attribute, value.as_ptr().cast(), value.len()) };
        check(code, name).map_err(|fault| fault.message)
    }
}

// SAFETY: a handle is a name for plain memory of the library's.
unsafe impl Send for Described {}
// SAFETY: it is changed under the device's lock alone.
unsafe impl Sync for Described {}

impl Drop for Described {
    fn drop(&mut self) {
        // SAFETY: made by the library, destroyed once. Descriptions are read when a product is started, and not after.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// The plan of a product of some shape.
pub(super) struct Plan {
    product: Described,
    /// Layouts of the right operand, the left one, and the result.
    layouts: [Described; 3],
    /// Bytes from where each of them is bound to its first element, and to that of the bias.
    pub(super) offsets: [u64; 3],
    pub(super) bias: Option<u64>,
    /// The bits of 1 in the sums' type.
    one: u32,
    algorithm: Answer,
}

/// A product to be started.
pub(super) struct LibraryCall {
    pub(super) products: Arc<Products>,
    pub(super) plan: Arc<Plan>,
    /// Addresses of the right operand, the left one, the result, and the bias.
    pub(super) addresses: [Address; 3],
    pub(super) bias: Option<Address>,
}

/// A row-major operand as the library's matrix by columns.
struct Matrix {
    rows: u64,
    columns: u64,
    /// Distance from one column to the next.
    lead: i64,
    transposed: bool,
    first: usize,
    batch_stride: i64,
}

impl Matrix {
    /// The transpose of an operand of `rows` by `columns`; `None` where its elements lie in another way than such matrices have.
    fn transpose_of(operand: &Operand, rows: usize, columns: usize) -> Option<Self> {
        let (&first, rest) = operand.offsets.split_first()?;
        let batch_stride = rest.first().map_or(Some(0), |second| second.checked_sub(first))?;
        let regular = |(number, offset): (usize, &usize)| {
            (number + 1).checked_mul(batch_stride).and_then(|far| far.checked_add(first)) == Some(*offset)
        };
        if !rest.iter().enumerate().all(regular) {
            return None;
        }
        let (transposed, [rows, columns], lead) = if operand.column == 1 || columns == 1 {
            (false, [columns, rows], if rows == 1 { columns } else { operand.row })
        } else if operand.row == 1 || rows == 1 {
            (true, [rows, columns], operand.column)
        } else {
            return None;
        };
        let matrix = Self {
            rows: rows as u64,
            columns: columns as u64,
            lead: i64::try_from(lead).ok()?,
            transposed,
            first,
            batch_stride: i64::try_from(batch_stride).ok()?,
        };
        (lead >= rows).then_some(matrix)
    }
}

/// The library's number for a dtype, and the bytes of an element.
fn element(dtype: DType) -> Result<(c_int, usize), String> {
    match dtype {
        DType::F32 => Ok((FLOAT32, 4)),
        DType::F16 => Ok((FLOAT16, 2)),
        DType::BF16 => Ok((BFLOAT16, 2)),
        DType::I8 => Ok((INT8, 1)),
        DType::I32 => Ok((INT32, 4)),
        dtype => Err(format!("the library is not asked for products of {dtype}")),
    }
}

impl Products {
    /// Loads the library for a device, or says why it is missing.
    pub(super) fn open(driver: &Arc<Driver>) -> Result<Self, String> {
        let Some(library) = driver.platform.vendor.products else {
            return Err("this vendor has no such library".to_owned());
        };
        let version = driver.platform.version;
        let loaded = library::open(library.variable, (library.libraries)(version), library.remedy)?;
        let table = ProductTable::of(loaded, &library.functions)
            .map_err(|name| format!("the library has no {name}: another version is needed"))?;
        if let Some(made_for) = library.made_for {
            // SAFETY: the type is the function's, as the vendor's header has it; the library stays loaded.
            let ask = unsafe { crate::library::symbol::<unsafe extern "C" fn() -> usize>(loaded, made_for) };
            let ask = ask.ok_or_else(|| format!("the library has no {made_for}: another version is needed"))?;
            // SAFETY: it takes no arguments.
            let made_for = unsafe { ask() } / 1000;
            if i32::try_from(made_for).is_ok_and(|major| major > version / 1000) {
                return Err(format!("the library is of CUDA {made_for}, and the driver of {}", version / 1000));
            }
        }
        let mut handle: Handle = std::ptr::null_mut();
        let workspace = driver.allocate(WORKSPACE_BYTES as u64).map_err(|fault| fault.message)?;
        let _current = driver.enter().map_err(|fault| fault.message)?;
        // SAFETY: the pointer is valid, and a context current.
        check(unsafe { (table.create)(&raw mut handle) }, library.functions.create).map_err(|fault| fault.message)?;
        Ok(Self { table, library, handle, workspace, plans: Mutex::default(), driver: driver.clone() })
    }

    pub(super) fn name(&self) -> &'static str {
        self.library.name
    }

    /// Returns the plan of a product, which is asked for once.
    pub(super) fn plan(&self, shape: &ProductShape) -> Option<Arc<Plan>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(shape) {
            return known.clone();
        }
        let plan = self.driver.enter().map_err(|fault| fault.message).and_then(|_current| self.find(shape));
        if let Err(reason) = &plan {
            tracing::debug!("{} does not serve a product, whose kernel runs: {reason}", self.name());
        }
        let plan = plan.ok().map(Arc::new);
        if plans.len() >= KEPT {
            plans.clear();
        }
        plans.insert(shape.clone(), plan.clone());
        plan
    }

    fn find(&self, shape: &ProductShape) -> Result<Plan, String> {
        let (m, n, k) = (shape.matmul.m, shape.matmul.n, shape.matmul.k);
        let lies = "its operands have a layout that the library does not take";
        let (a, b) = (&shape.matmul.a, &shape.matmul.b);
        let batches = i32::try_from(a.offsets.len()).map_err(|_| lies)?;
        let matrices =
            [(b, k, n), (a, m, k)].map(|(operand, rows, columns)| Matrix::transpose_of(operand, rows, columns));
        let [Some(right), Some(left)] = matrices else { return Err(lies.to_owned()) };
        let length = i64::try_from(m.checked_mul(n).ok_or(lies)?).map_err(|_| lies)?;
        let lead = i64::try_from(n).map_err(|_| lies)?;
        let result =
            Matrix { rows: n as u64, columns: m as u64, lead, transposed: false, first: 0, batch_stride: length };
        let (operand, into) = (element(shape.matmul.dtype)?, element(shape.result)?);
        let (sums, scale, one) = match (shape.matmul.dtype, shape.result) {
            (DType::I8, DType::I32) => (self.library.numbers.whole_sums, INT32, 1),
            (DType::I8 | DType::I32, _) | (_, DType::I8 | DType::I32) => {
                return Err(format!("the library has no {} from {}", shape.result, shape.matmul.dtype));
            }
            _ => (self.library.numbers.sums, FLOAT32, 1.0_f32.to_bits()),
        };
        let product = self.product(shape, (sums, scale), [right.transposed, left.transposed])?;
        let layout = |matrix: &Matrix, (kind, _): (c_int, usize)| self.layout(matrix, kind, batches);
        let layouts = [layout(&right, operand)?, layout(&left, operand)?, layout(&result, into)?];
        let offsets = [right.first * operand.1, left.first * operand.1, 0];
        let algorithm = self.algorithm(&product, &layouts, offsets)?;
        let bias = shape.bias.map(|first| (first * into.1) as u64);
        Ok(Plan { product, layouts, offsets: offsets.map(|offset| offset as u64), bias, one, algorithm })
    }

    /// Describes a product: its sums and the type of its factors, operands that are transposed, and what follows it.
    fn product(
        &self,
        shape: &ProductShape,
        (sums, scale): (c_int, c_int),
        transposed: [bool; 2],
    ) -> Result<Described, String> {
        let (table, names, numbers) = (&self.table, &self.library.functions, &self.library.numbers);
        let set = (table.product_set, names.product_set);
        let product = self.described(names.product_create, table.product_destroy, set, |handle| {
            // SAFETY: the pointer is valid.
            unsafe { (table.product_create)(handle, sums, scale) }
        })?;
        for (attribute, transposed) in numbers.transpose.into_iter().zip(transposed) {
            let way = if transposed { numbers.transposed } else { numbers.as_it_is };
            product.set(attribute, &way.to_ne_bytes())?;
        }
        let epilogue = (if shape.relu { RELU } else { 0 }) | (if shape.bias.is_some() { BIAS } else { 0 });
        let epilogue = if epilogue != 0 { epilogue } else { NOTHING };
        product.set(numbers.epilogue, &epilogue.to_ne_bytes())?;
        if shape.bias.is_some() {
            // Algorithms are chosen by whether there is one; its place is set when a product is started.
            product.set(numbers.bias, &self.workspace.address.to_ne_bytes())?;
        }
        Ok(product)
    }

    /// Describes where the numbers of that kind lie in a matrix, or in each of several.
    fn layout(&self, matrix: &Matrix, kind: c_int, batches: c_int) -> Result<Described, String> {
        let (table, names, numbers) = (&self.table, &self.library.functions, &self.library.numbers);
        let set = (table.layout_set, names.layout_set);
        let layout = self.described(names.layout_create, table.layout_destroy, set, |handle| {
            // SAFETY: the pointer is valid.
            unsafe { (table.layout_create)(handle, kind, matrix.rows, matrix.columns, matrix.lead) }
        })?;
        if batches > 1 {
            layout.set(numbers.batches, &batches.to_ne_bytes())?;
            layout.set(numbers.batch_stride, &matrix.batch_stride.to_ne_bytes())?;
        }
        Ok(layout)
    }

    /// Asks for the algorithm that the library thinks best.
    fn algorithm(&self, product: &Described, layouts: &[Described; 3], offsets: [usize; 3]) -> Result<Answer, String> {
        let (table, names) = (&self.table, &self.library.functions);
        let set = (table.preference_set, names.preference_set);
        let preference = self.described(names.preference_create, table.preference_destroy, set, |handle| {
            // SAFETY: the pointer is valid.
            unsafe { (table.preference_create)(handle) }
        })?;
        preference.set(MOST_WORKSPACE, &(WORKSPACE_BYTES as u64).to_ne_bytes())?;
        if let Some([parts, first]) = self.library.numbers.preferences {
            // In float32, whatever the result is.
            preference.set(parts, &2_u32.to_ne_bytes())?;
            let [right, left, into] = offsets.map(|offset| 1_u32 << (offset | ALIGNMENT).trailing_zeros());
            for (place, alignment) in (first..).zip([right, left, into, into]) {
                preference.set(place, &alignment.to_ne_bytes())?;
            }
        }
        let [right, left, into] = layouts.each_ref().map(|layout| layout.handle);
        let (mut answer, mut found): (Answer, c_int) = ([0; 32], 0);
        // SAFETY: the descriptions live, and the answer has room for one.
        let code = unsafe {
            let to = answer.as_mut_ptr().cast();
            let (wanted, found) = (1, &raw mut found);
            (table.heuristic)(
                self.handle,
                product.handle,
                right,
                left,
                into,
                into,
                preference.handle,
                wanted,
                to,
                found,
            )
        };
        check(code, names.heuristic).map_err(|fault| fault.message)?;
        if found < 1 {
            return Err("it has no algorithm for this shape".to_owned());
        }
        Ok(answer)
    }

    fn described(
        &self,
        name: &'static str,
        destroy: unsafe extern "C" fn(Handle) -> Code,
        set: (Set, &'static str),
        create: impl FnOnce(*mut Handle) -> Code,
    ) -> Result<Described, String> {
        let mut handle: Handle = std::ptr::null_mut();
        check(create(&raw mut handle), name).map_err(|fault| fault.message)?;
        Ok(Described { handle, destroy, set })
    }
}

impl LibraryCall {
    pub(super) fn name(&self) -> &'static str {
        self.products.name()
    }

    pub(super) fn rank(&self) -> i32 {
        self.products.library.rank
    }

    /// Puts the product into a stream of the device.
    ///
    /// # Safety
    /// The device is current and its lock is held; the buffers that were bound live until the stream has passed.
    pub(super) unsafe fn start(&self, stream: Stream) -> Result<(), Fault> {
        let (products, plan) = (&*self.products, &*self.plan);
        let (table, names) = (&products.table, &products.library.functions);
        if let Some(bias) = &self.bias {
            let (attribute, value) = (products.library.numbers.bias, std::ptr::from_ref(bias).cast());
            // SAFETY: the library copies the address; whoever starts a product holds the device's lock.
            let code = unsafe { (table.product_set)(plan.product.handle, attribute, value, size_of::<Address>()) };
            check(code, names.product_set)?;
        }
        // 0 has the same bits in both types of sums.
        let (one, zero) = (plan.one, 0_u32);
        let [right, left, into] = self.addresses.map(|address| address as *mut c_void);
        let [of_right, of_left, of_into] = plan.layouts.each_ref().map(|layout| layout.handle);
        // SAFETY: the descriptions and the algorithm are of one plan, and every element that they reach was checked to be bound; the library
        // reads the factors during the call. The workspace is used by one product after the other, in the stream's order.
        let code = unsafe {
            (table.matmul)(
                products.handle,
                plan.product.handle,
                (&raw const one).cast(),
                right,
                of_right,
                left,
                of_left,
                (&raw const zero).cast(),
                into,
                of_into,
                into,
                of_into,
                plan.algorithm.as_ptr().cast(),
                products.workspace.address as *mut c_void,
                WORKSPACE_BYTES,
                stream.0,
            )
        };
        check(code, names.matmul)
    }
}

/// The vendors' codes for libraries mean one thing in both.
fn check(code: Code, call: &str) -> Result<(), Fault> {
    let meaning = match code {
        0 => return Ok(()),
        1 => "not initialised",
        2 | 3 => "no memory, or an invalid value",
        7 => "an invalid value, or not supported",
        8 => "not for this architecture",
        13 => "the execution failed",
        14 => "an internal error",
        15 => "not supported",
        _ => "see the vendor's list",
    };
    Err(Fault { kind: FaultKind::Call, message: format!("{call}: {meaning} (status {code})") })
}
