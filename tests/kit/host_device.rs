//! A device that runs kernels as C: translated, compiled by gcc with all liberties for floats, loaded, and called for one workgroup after the
//! other. Its memory is the CPU backend's.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command as Process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{
    Backend, Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, Dispatch, MemoryFigures, OpenOptions,
    Probe, Program, Refusal,
};
use cantus::translate::{Argument, Dialect, Options};
use cantus::{Error, Kernel, Result};
use pollster::block_on;

const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-ffast-math",
    "-fno-finite-math-only",
    "-ffp-contract=fast",
    "-w",
    "-shared",
    "-fPIC",
];

/// Runs one workgroup: buffers, their sizes, the workgroup, the number of workgroups.
type Run = unsafe extern "C" fn(*const *mut u8, *const u32, *const u32, *const u32);

type Built = (Arc<dyn Program>, Arc<libloading::Library>);

/// The one device.
pub struct HostBackend;

struct HostDevice {
    info: DeviceInfo,
    inner: Arc<dyn Device>,
    folder: tempfile::TempDir,
    programs: AtomicUsize,
    /// Programs of the CPU backend, which check what is bound, with the code that takes their place.
    built: Mutex<Vec<Built>>,
}

impl Backend for HostBackend {
    fn name(&self) -> &str {
        "host-c"
    }
    fn priority(&self) -> i32 {
        90
    }
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(async {
            let mut probe = CpuBackend::new().probe().await;
            for device in &mut probe.devices {
                (device.name, device.backend, device.priority) = ("gcc".into(), "host-c".into(), 90);
            }
            probe
        })
    }
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        Box::pin(async move {
            let inner = CpuBackend::new().open(index, options).await?;
            let found = self.probe().await.devices.into_iter().nth(index);
            let info = found.ok_or(Error::NoDevice { wanted: "host-c".into(), reasons: Vec::new() })?;
            let folder = tempfile::tempdir().expect("a folder");
            let device = HostDevice { info, inner, folder, programs: AtomicUsize::new(0), built: Mutex::default() };
            Ok(Arc::new(device) as Arc<dyn Device>)
        })
    }
}

impl HostDevice {
    fn build(&self, kernel: &Kernel) -> Result<libloading::Library> {
        let translation = kernel.translate(Dialect::Host, &Options::new().bound_loops(true))?;
        let mut arguments = "workgroup, workgroups".to_owned();
        for argument in &translation.arguments {
            let _ = match argument {
                Argument::Sizes { indices } => {
                    let sizes: Vec<String> = indices.iter().map(|index| format!("sizes[{index}]")).collect();
                    write!(arguments, ", (cantus_sizes){{ {} }}", sizes.join(", "))
                }
                Argument::Pointer { index } | Argument::Value { index, .. } => write!(arguments, ", buffers[{index}]"),
            };
        }
        let source = format!(
            "{}\nvoid run(void **buffers, const u32 *sizes, const u32 *workgroup, const u32 *workgroups) {{ {}({arguments}); }}\n",
            translation.source, translation.entry
        );
        let name = format!("{}", self.programs.fetch_add(1, Ordering::Relaxed));
        let (file, library): (PathBuf, PathBuf) =
            (self.folder.path().join(format!("{name}.c")), self.folder.path().join(format!("{name}.so")));
        std::fs::write(&file, source).expect("writes");
        let built = Process::new("gcc").args(FLAGS).arg(&file).arg("-o").arg(&library).arg("-lm").output();
        let built = built.expect("gcc");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // SAFETY: the library was compiled just now, and has no initialisers.
        Ok(unsafe { libloading::Library::new(library) }.expect("loads"))
    }

    fn run(inner: &Arc<dyn Device>, library: &libloading::Library, dispatch: &Dispatch) -> Result<()> {
        // Words of 16 bytes, so that every type is aligned.
        let mut memory: Vec<Vec<u128>> = Vec::new();
        for bound in &dispatch.bindings {
            let bytes = size(bound) as usize;
            let mut words = vec![0_u128; bytes.div_ceil(16)];
            let target = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..bytes];
            match bound {
                Bound::Uniform(data) => target.copy_from_slice(data),
                Bound::Buffer { buffer, offset, .. } => block_on(inner.read(buffer, *offset, target))?,
            }
            memory.push(words);
        }
        let sizes: Vec<u32> = dispatch.bindings.iter().map(|bound| size(bound) as u32).collect();
        let pointers: Vec<*mut u8> = memory.iter_mut().map(|words| words.as_mut_ptr().cast()).collect();
        let [x, y, z] = dispatch.workgroups;
        for place in 0..u64::from(x) * u64::from(y) * u64::from(z) {
            let (x, y) = (u64::from(x), u64::from(y));
            let workgroup = [place % x, place / x % y, place / x / y].map(|at| at as u32);
            // SAFETY: the function was made for these bindings, whose sizes the device checked.
            unsafe {
                let run: libloading::Symbol<'_, Run> = library.get(b"run").expect("is there");
                run(pointers.as_ptr(), sizes.as_ptr(), workgroup.as_ptr(), dispatch.workgroups.as_ptr());
            }
        }
        for (bound, words) in dispatch.bindings.iter().zip(&memory) {
            if let Bound::Buffer { buffer, offset, bytes } = bound {
                block_on(inner.write(buffer, *offset, &bytemuck::cast_slice::<u128, u8>(words)[..*bytes as usize]))?;
            }
        }
        Ok(())
    }
}

fn size(bound: &Bound) -> u64 {
    match bound {
        Bound::Buffer { bytes, .. } => *bytes,
        Bound::Uniform(data) => data.len() as u64,
    }
}

impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        Box::pin(async move {
            let library = Arc::new(self.build(kernel)?);
            let program = self.inner.compile(kernel).await?;
            self.built.lock().expect("locks").push((program.clone(), library));
            Ok(program)
        })
    }
    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        self.inner.check_workgroups(program, label, workgroups)
    }
    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        self.inner.check_bindings(program, label, bindings)
    }
    fn allocate<'a>(&'a self, bytes: u64, held: Contents, label: &'a str) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        self.inner.allocate(bytes, held, label)
    }
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        self.inner.write(buffer, offset, data)
    }
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        self.inner.read(buffer, offset, into)
    }
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        let mut outcome = Ok(());
        for command in batch {
            let done = match &command {
                Command::Dispatch(dispatch) => {
                    let built = self.built.lock().expect("locks");
                    let library = built.iter().find(|(program, _)| Arc::ptr_eq(program, &dispatch.program));
                    let library = library.map(|(_, library)| library.clone()).expect("was compiled");
                    drop(built);
                    Self::run(&self.inner, &library, dispatch).map_err(Refusal::from)
                }
                _ => block_on(self.inner.submit(vec![command])),
            };
            if outcome.is_ok() {
                outcome = done;
            }
        }
        Box::pin(async { outcome })
    }
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.finish()
    }
    fn memory(&self) -> MemoryFigures {
        self.inner.memory()
    }
    fn trim(&self) {
        self.inner.trim();
    }
}
