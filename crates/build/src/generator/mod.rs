//! The generator of Rust: a kernel in, a module for [`cantus_spmd::ahead`] out.
//!
//! `entry` runs it: `arguments` finds the overrides that come with the launch, and the executor's lowering gives the flattened entry point.
//! `control` finds blocks and loops again, `affine` what is base + step * lane, `plan` cuts the rest into regions, `look` finds what
//! those need around them; `flow` writes blocks and jumps, `region`, `prefix`, `rows`, `store` and `special` the loops over lanes, `op`
//! the operations in them, `file` what is around it all.

mod affine;
mod analysis;
mod arguments;
mod control;
mod entry;
mod file;
mod flow;
mod look;
mod names;
mod op;
mod plan;
mod prefix;
mod region;
mod rows;
mod special;
mod store;

use rustc_hash::FxHashSet;

use cantus_base::listed::Listed;
use cantus_spmd::bytecode::{Count, Input, Instr, Op, Space, Strided};
use cantus_spmd::{Class, Flat, Register};

use affine::Affine;
use analysis::{Ty, target};
use control::Interval;
pub use entry::{rust, rust_within};
use names::{element, literal};
use op::Operands;
use plan::Item;

/// The reason why a kernel is left to the executor.
struct Refusal(String);

impl Refusal {
    fn new(reason: &str) -> Self {
        Refusal(reason.to_owned())
    }
}

/// Kernels of more operations would make too much code.
const MAX_INSTRUCTIONS: usize = 6_000;
/// The most stack that the lanes of one call may take.
const MAX_STACK: u64 = 512 << 10;

struct Writer<'a> {
    flat: &'a Flat,
    types: Vec<Ty>,
    affine: Vec<Option<Affine>>,
    intervals: Vec<Interval>,
    /// Kept in lanes between regions.
    arrays: Vec<bool>,
    /// Changed in some lanes only, in lanes of their own first.
    blended: Vec<bool>,
    /// Declared before the chunk's code, because blocks end before its last use.
    hoisted: Vec<bool>,
    /// Masks whose active lanes are counted.
    counted: Vec<bool>,
    /// Uniform values that lanes are divided by.
    divisors: FxHashSet<Register>,
    /// Loads from what no kernel writes, done once for all chunks.
    early: Vec<bool>,
    /// Read anywhere.
    used: Vec<bool>,
    names: Vec<String>,
    places: Vec<String>,
    out: String,
    depth: usize,
    streams: bool,
    /// Comparisons of the region being written that come out the same in all lanes where its guard holds.
    agreed: FxHashSet<usize>,
    /// Jumps that are not written.
    dropped: Vec<bool>,
    /// The region being written runs over the first lanes, which meet this condition.
    prefix: Option<prefix::Prefix>,
    /// Regions have a form for runs that lie within their memory. Without it they take up less code.
    guarded: bool,
}

impl<'a> Writer<'a> {
    /// Writes the body of the function that runs chunks.
    fn body(flat: &'a Flat) -> Result<String, Refusal> {
        if flat.instructions.len() > MAX_INSTRUCTIONS {
            return Err(Refusal::new("a kernel of more than 6000 operations"));
        }
        let row_inputs =
            [Op::Input(Input::SubgroupId), Op::Input(Input::SubgroupInvocation), Op::Input(Input::LocalIndex)];
        if flat.row.is_some() && flat.instructions.iter().any(|i| row_inputs.contains(&i.op)) {
            return Err(Refusal::new("subgroup ids in a kernel without subgroup operations"));
        }
        let types = analysis::types(flat);
        let names = names::register_names(flat);
        let affine = affine::find(flat, &names, &types);
        let dropped = control::dropped_jumps(flat);
        let intervals = control::intervals(flat, &dropped)?;
        let count = flat.instructions.len();
        let mut labels = vec![false; count + 1];
        for interval in &intervals {
            labels[interval.start] = true;
            labels[interval.end] = true;
        }
        let scalar: Vec<bool> =
            flat.instructions.iter().map(|i| target(flat, i).is_some_and(|d| affine[d as usize].is_some())).listed();
        let items = plan::plan(flat, &dropped, &labels, &scalar);
        let registers = flat.registers.len();
        let mut writer = Writer {
            flat,
            types,
            affine,
            intervals,
            arrays: vec![false; registers],
            blended: vec![false; registers],
            hoisted: vec![false; registers],
            counted: vec![false; registers],
            divisors: FxHashSet::default(),
            early: vec![false; count],
            used: vec![false; registers],
            places: names::place_names(flat),
            names,
            out: String::new(),
            depth: 2,
            streams: false,
            agreed: FxHashSet::default(),
            dropped,
            prefix: None,
            guarded: true,
        };
        writer.look(&items);
        let stack: u64 = writer.lane_bytes()
            + u64::from(flat.workgroup_bytes)
            + u64::from(flat.private_slots) * 4 * writer.lanes() as u64;
        if stack > MAX_STACK {
            return Err(Refusal(format!("{} KiB of variables in one workgroup", stack >> 10)));
        }
        writer.write(&items)?;
        Ok(writer.out)
    }

    /// Lanes of a chunk.
    fn lanes(&self) -> usize {
        match self.flat.row {
            Some(lanes) => lanes as usize,
            None => self.flat.workgroup_size.iter().product::<u32>() as usize,
        }
    }

    fn lane_bytes(&self) -> u64 {
        let arrays = self.arrays.iter().zip(&self.types).filter(|(needed, _)| **needed);
        arrays.map(|(_, ty)| ty.bytes() * self.lanes() as u64).sum()
    }

    /// Kept in lanes: differs between them, and is no base and step.
    fn in_lanes(&self, register: Register) -> bool {
        self.flat.registers[register as usize].class != Class::Uniform && self.affine[register as usize].is_none()
    }

    fn access(&self, i: &Instr) -> &'a Strided {
        &self.flat.accesses[i.x as usize]
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn open(&mut self, text: &str) {
        self.line(text);
        self.depth += 1;
    }

    fn close(&mut self, text: &str) {
        self.depth -= 1;
        self.line(text);
    }

    fn write(&mut self, items: &[Item]) -> Result<(), Refusal> {
        self.prologue();
        self.open("for chunk in from..to {");
        self.line("if job.stops(&mut ticks) {");
        self.line("    return rt::STOPPED;");
        self.line("}");
        let lanes = self.lanes();
        if self.flat.row.is_some() {
            let [x, y, z] = self.flat.workgroup_size;
            self.line(&format!("let row = job.row(chunk, [{x}, {y}, {z}], {lanes});"));
            self.line("let group = row.group;");
            self.line("let n = rt::at_most::<LANES>(row.lanes);");
        } else {
            self.line("let group = job.group(chunk);");
            if self.flat.workgroup_bytes > 0 {
                self.line("core::ptr::write_bytes(shared, 0, SHARED);");
            }
        }
        for register in 0..self.flat.registers.len() {
            if self.hoisted[register] {
                let (name, ty) = (self.names[register].clone(), self.types[register]);
                self.line(&format!("let mut {name}: {} = {};", ty.name(), ty.zero()));
                if let Some(affine) = self.affine[register].clone() {
                    for (name, _) in affine.steps {
                        self.line(&format!("let mut {name}: u32 = 0;"));
                    }
                }
                if self.divisors.contains(&(register as Register)) {
                    self.line(&format!("let mut {name}_divisor = lane::Divisor::new(1);"));
                }
            }
        }
        let mut open: Vec<flow::Open> = Vec::new();
        for item in items {
            match item {
                Item::Label(position) => self.label(*position, &mut open),
                Item::Scalar(position) => self.scalar(*position)?,
                Item::Region(work, stores) => match self.prefix(work, stores) {
                    Some(prefix) => self.prefix_region(prefix, work, stores)?,
                    None => self.region(work, stores)?,
                },
                Item::Special(position) => self.special(*position)?,
                Item::Jump(position) => self.jump(*position, &mut open)?,
            }
        }
        self.close("}");
        if self.streams {
            self.line("rt::fence();");
        }
        self.line("rt::DONE");
        Ok(())
    }

    /// Places, lanes, and what is loaded once.
    fn prologue(&mut self) {
        let flat = self.flat;
        let lanes = self.lanes();
        if flat.workgroup_bytes > 0 {
            self.line("let mut workgroup_memory = rt::Lanes::<u64, { SHARED.div_ceil(8) }>::default();");
            self.line("let shared = workgroup_memory.as_mut_ptr().cast::<u8>();");
        }
        if flat.private_slots > 0 {
            let words = flat.private_slots as usize * lanes;
            self.line(&format!("let mut private_memory = rt::Lanes::<u64, {}>::default();", words.div_ceil(2)));
            self.line("let private = private_memory.as_mut_ptr().cast::<u8>();");
        }
        let used: FxHashSet<u32> = flat
            .instructions
            .iter()
            .filter(|i| {
                matches!(i.op, Op::Load | Op::Store | Op::Length)
                    || matches!(i.op, Op::Atomic(..) | Op::CompareExchange(_))
            })
            .map(|i| i.x)
            .collect();
        for (index, access) in flat.accesses.iter().enumerate() {
            if !used.contains(&(index as u32)) {
                continue;
            }
            let memory = match access.space {
                Space::Binding(binding) => format!("job.memory({binding})"),
                Space::Workgroup | Space::Groups => "rt::Memory { pointer: shared, bytes: SHARED }".to_owned(),
                Space::Table => {
                    "rt::Memory { pointer: (&raw const TABLE.0).cast_mut().cast(), bytes: TABLE.0.len() }".to_owned()
                }
                Space::Private { .. } => continue,
            };
            let count = match access.count {
                Count::Fixed(count) => format!("rt::Count::Fixed({count})"),
                Count::Runtime { start, stride, scale } => {
                    format!("rt::Count::Runtime {{ start: {start}, stride: {stride}, scale: {scale} }}")
                }
            };
            let (place, stride) = (self.places[index].clone(), access.stride);
            let (offset, size) = (access.offset, access.element.bytes());
            self.line(&format!("let {place} = rt::Place::<{stride}>::new({memory}, {offset}, {size}, {count});"));
        }
        for position in 0..flat.instructions.len() {
            if self.early[position] {
                let i = flat.instructions[position];
                let (name, ty) = (self.names[i.d as usize].clone(), self.types[i.d as usize]);
                let value = self.load_scalar(&i, ty);
                self.line(&format!("let {name}: {} = {value};", ty.name()));
                self.divisor_of(i.d);
            }
        }
        for register in 0..flat.registers.len() {
            if self.arrays[register] {
                let (name, ty) = (self.names[register].clone(), self.types[register]);
                self.line(&format!("let mut {name}_lanes = rt::Lanes::<{}, LANES>::default();", ty.stored()));
                if self.blended[register] {
                    self.line(&format!("let mut {name}_next = rt::Lanes::<{}, LANES>::default();", ty.stored()));
                }
            }
            if self.counted[register] {
                let name = self.names[register].clone();
                self.line(&format!("let mut {name}_count = 0_usize;"));
            }
        }
        self.line("let mut ticks = 0_u32;");
    }

    fn divisor_of(&mut self, register: Register) {
        if self.divisors.contains(&register) {
            let name = self.names[register as usize].clone();
            let binding = if self.hoisted[register as usize] { "" } else { "let " };
            self.line(&format!("{binding}{name}_divisor = lane::Divisor::new({name});"));
        }
    }

    fn load_scalar(&self, i: &Instr, ty: Ty) -> String {
        let place = &self.places[i.x as usize];
        let (element, stored) = element(self.access(i).element);
        op::cast(format!("{place}.load::<rt::{element}>({})", self.value(i.a, Ty::U32)), stored, ty)
    }

    /// An operation that runs once for the chunk.
    fn scalar(&mut self, position: usize) -> Result<(), Refusal> {
        let flat = self.flat;
        let i = flat.instructions[position];
        let Some(d) = target(flat, &i) else { return Ok(()) };
        if self.early[position] {
            return Ok(());
        }
        let ty = self.types[d as usize];
        let binding = if self.hoisted[d as usize] { "" } else { "let " };
        let name = self.names[d as usize].clone();
        if let Some(affine) = self.affine[d as usize].clone() {
            self.line(&format!("{binding}{name} = {};", affine.base));
            for (name, value) in &affine.steps {
                self.line(&format!("{binding}{name} = {value};"));
            }
            return Ok(());
        }
        let value = match i.op {
            Op::Load => self.load_scalar(&i, ty),
            Op::Length => format!("{}.count()", self.places[i.x as usize]),
            Op::Input(input) => match input {
                Input::FirstWorkgroup(axis) => format!("group[{axis}]"),
                Input::NumWorkgroups(axis) => format!("job.workgroups[{axis}]"),
                Input::Argument(place) => format!("job.argument({place})"),
                Input::RowStart => "row.start".to_owned(),
                Input::RowLocalStart => "row.local[0]".to_owned(),
                Input::RowLocal(axis) => format!("row.local[{axis}]"),
                _ => return Err(Refusal::new("an input that is not uniform here")),
            },
            _ => op::expression(self, &i, ty).ok_or_else(|| Refusal(format!("the uniform operation {:?}", i.op)))?,
        };
        let annotated = if binding.is_empty() { name } else { format!("{name}: {}", ty.name()) };
        self.line(&format!("{binding}{annotated} = {value};"));
        self.divisor_of(d);
        Ok(())
    }
}

impl Operands for Writer<'_> {
    fn value(&self, register: Register, ty: Ty) -> String {
        if let Some((bits, _)) = self.flat.constants.get(&register) {
            return literal(*bits, ty);
        }
        op::cast(self.names[register as usize].clone(), self.types[register as usize], ty)
    }

    fn ty(&self, register: Register) -> Ty {
        self.types[register as usize]
    }

    fn divisor(&self, register: Register) -> Option<String> {
        self.divisors.contains(&register).then(|| format!("{}_divisor", self.names[register as usize]))
    }

    fn fast_trig(&self) -> bool {
        false
    }
}
