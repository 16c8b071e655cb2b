//! Textures and samplers of kernels.

use cantus::kernel::{SampleType, ViewDimension};
use cantus::{AddressMode, CompareFunction, FilterMode, Sampler, TextureDescriptor, TextureFormat};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::engine::{Engine, dtype};
use crate::wait::wait;

/// An image on a device.
#[pyclass(frozen, module = "cantus._core")]
pub(crate) struct Texture {
    pub(crate) texture: cantus::Texture,
}

fn format_of(name: &str) -> PyResult<TextureFormat> {
    TextureFormat::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = TextureFormat::ALL.iter().map(|format| format.name()).collect();
        PyValueError::new_err(format!("{name:?} is not a texture format: {}", known.join(", ")))
    })
}

/// The dimension of WebGPU's name: "2d-array".
fn view_of(name: &str) -> PyResult<ViewDimension> {
    const ALL: [ViewDimension; 6] = [
        ViewDimension::D1,
        ViewDimension::D2,
        ViewDimension::D2Array,
        ViewDimension::Cube,
        ViewDimension::CubeArray,
        ViewDimension::D3,
    ];
    ALL.into_iter().find(|view| view.name().replace('_', "-") == name).ok_or_else(|| {
        let known = ALL.map(|view| view.name().replace('_', "-")).join(", ");
        PyValueError::new_err(format!("{name:?} is not the dimension of a texture: {known}"))
    })
}

/// The sides of an array for a texture of that dimension, and its channels: 1 where it has no axis of them.
#[pyfunction]
pub(crate) fn texture_sides(dimension: &str, shape: Vec<usize>) -> PyResult<(Vec<usize>, usize)> {
    let view = view_of(dimension)?;
    view.sides_and_channels(&shape).map(|(sides, channels)| (sides.to_vec(), channels)).ok_or_else(|| {
        PyValueError::new_err(format!(
            "a texture of dimension {dimension} is {}, and the shape is {shape:?}",
            view.axes()
        ))
    })
}

/// The format in which a kernel reads such numbers (f32, u32, i32 or depth) from arrays of that dtype and that many channels.
#[pyfunction]
pub(crate) fn format_for(reads: &str, dtype_name: &str, channels: usize) -> PyResult<Option<&'static str>> {
    let kinds = [SampleType::Float, SampleType::Uint, SampleType::Sint, SampleType::Depth];
    let Some(kind) = kinds.into_iter().find(|kind| kind.to_string() == reads) else {
        return Err(PyValueError::new_err(format!("no texture is read as {reads}")));
    };
    Ok(TextureFormat::of_array(kind, dtype(dtype_name)?, channels).map(TextureFormat::name))
}

#[pymethods]
impl Texture {
    /// Pixels of a texture of that dimension, row-major, with channels last.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "Python's side has them by name")]
    fn of(
        py: Python<'_>,
        engine: &Engine,
        dtype_name: &str,
        shape: Vec<usize>,
        pixels: &[u8],
        format: &str,
        levels: bool,
        dimension: &str,
    ) -> PyResult<Self> {
        let engine = engine.checked()?;
        let (dtype, format, view) = (dtype(dtype_name)?, format_of(format)?, view_of(dimension)?);
        let work = async {
            let texture = engine.texture_from_pixels_as_async(view, dtype, &shape, pixels, format).await?;
            if levels { texture.with_all_levels_async().await } else { Ok(texture) }
        };
        Ok(Self { texture: wait(py, engine, work)? })
    }

    #[staticmethod]
    fn zeros(py: Python<'_>, engine: &Engine, format: &str, sides: Vec<usize>, dimension: &str) -> PyResult<Self> {
        let engine = engine.checked()?;
        let (format, view) = (format_of(format)?, view_of(dimension)?);
        let descriptor = TextureDescriptor::for_view(view, format, &sides).ok_or_else(|| {
            let axes = view.axes().trim_end_matches(" x channels");
            PyValueError::new_err(format!("a texture of dimension {dimension} is {axes}, and the shape is {sides:?}"))
        })?;
        Ok(Self { texture: wait(py, engine, engine.texture_async(&descriptor))? })
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.texture.format().name()
    }

    /// Depth or layers, height, and width.
    #[getter]
    fn size(&self) -> (u32, u32, u32) {
        let [width, height, depth] = self.texture.size();
        (depth, height, width)
    }

    #[getter]
    fn channels(&self) -> u32 {
        self.texture.format().channels()
    }

    #[getter]
    fn levels(&self) -> u32 {
        self.texture.descriptor().levels
    }

    /// The dtype of the channels; none where several share bytes.
    #[getter]
    fn dtype(&self) -> Option<&'static str> {
        self.texture.channels().map(cantus::DType::name)
    }

    /// The bytes of the largest level, row after row, red first.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let engine = self.texture.engine();
        let mut bytes = wait(py, &engine, self.texture.to_bytes_async())?;
        if self.texture.format().is_bgra() {
            bytes.chunks_exact_mut(4).for_each(|pixel| pixel.swap(0, 2));
        }
        Ok(PyBytes::new(py, &bytes))
    }
}

/// A sampler as Python gives it: filter, address modes, comparison, and the least and the greatest level of detail.
pub(crate) type Sampling = (String, [String; 3], Option<String>, (f32, f32));

fn choice<T: Copy>(name: &str, kind: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(own, _)| *own == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(own, _)| *own).collect();
        PyValueError::new_err(format!("{name:?} is no {kind}: {}", names.join(", ")))
    })
}

pub(crate) fn sampler((filter, address, compare, (least, most)): &Sampling) -> PyResult<Sampler> {
    let base = match choice(filter, "filter", FilterMode::ALL)? {
        FilterMode::Linear => Sampler::linear(),
        FilterMode::Nearest => Sampler::nearest(),
    };
    let mut address_mode = base.address_mode;
    for (mode, name) in address_mode.iter_mut().zip(address) {
        *mode = choice(name, "address mode", AddressMode::ALL)?;
    }
    let compare = compare.as_ref().map(|name| choice(name, "comparison", CompareFunction::ALL)).transpose()?;
    Ok(Sampler { address_mode, compare, lod_min_clamp: *least, lod_max_clamp: *most, ..base })
}
