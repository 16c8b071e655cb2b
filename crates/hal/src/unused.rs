//! The objects that this device lacks. Values of these types cannot exist, so functions that take one have no code.

macro_rules! absent {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}
    )*};
}

absent! {
    /// A render pipeline: each is refused when it is created.
    RenderPipeline;
    /// A pipeline of ray tracing, whose feature is not offered.
    RayTracingPipeline;
    /// An acceleration structure, whose feature is not offered.
    AccelerationStructure;
    /// A cache of pipelines, whose feature is not offered.
    PipelineCache;
    /// A texture of a surface: no surface ever gives one.
    SurfaceTexture;
}

impl std::borrow::Borrow<crate::Texture> for SurfaceTexture {
    fn borrow(&self) -> &crate::Texture {
        match *self {}
    }
}

impl std::borrow::Borrow<dyn wgpu_hal::DynTexture> for SurfaceTexture {
    fn borrow(&self) -> &dyn wgpu_hal::DynTexture {
        match *self {}
    }
}
