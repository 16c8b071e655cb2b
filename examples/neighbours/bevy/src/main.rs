//! A Bevy app with a picture that Cantus computes for each frame.
//!
//! ```sh
//! cargo run -p cantus-bevy -- picture.png            # one copy, through the host
//! cargo run -p cantus-bevy -- picture.png --shared   # memory in common
//! ```
//!
//! Bevy 0.19 is on wgpu 29 and Cantus on wgpu 30, whose devices are different types: they cannot share one. So the picture's bytes go to a texture of
//! Bevy's, either by a copy or by memory that both devices have (`shared.rs`). There is no window: the camera draws into an image.

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod shared;

use std::error::Error;
use std::path::PathBuf;

use bevy::camera::RenderTarget;
use bevy::prelude::*;
use bevy::render::gpu_readback::{Readback, ReadbackComplete};
use bevy::render::render_asset::RenderAssets;
use bevy::render::render_resource::{Extent3d, TexelCopyBufferLayout, TextureDimension, TextureFormat, TextureUsages};
use bevy::render::renderer::{RenderDevice, RenderQueue};
use bevy::render::texture::GpuImage;
use bevy::render::{Render, RenderApp, RenderPlugin, RenderSystems};
use cantus::{Engine, Tensor};
use scene::{HEIGHT, Picture, Scene, WIDTH};

const SIZE: [u32; 2] = [320, 256];
const FRAMES: usize = 30;
const RATE: f32 = 30.0;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Where the picture goes, in Bevy's render world.
#[derive(Resource)]
struct Bridge {
    scene: Scene,
    way: Way,
    image: Handle<Image>,
    frame: usize,
}

enum Way {
    Copy,
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    Shared(shared::Shared),
}

/// The last picture that Bevy drew.
#[derive(Resource, Default)]
struct Drawn(Vec<u8>);

fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let wants_shared = arguments.iter().any(|argument| argument == "--shared");

    let mut app = App::new();
    let window = WindowPlugin { primary_window: None, ..WindowPlugin::default() };
    let renderer = RenderPlugin { synchronous_pipeline_compilation: true, ..RenderPlugin::default() };
    app.add_plugins(DefaultPlugins.set(window).set(renderer).set(ImagePlugin::default_nearest()));
    app.init_resource::<Drawn>();
    app.add_systems(Update, turn);
    let image = stage(app.world_mut());
    while app.plugins_state() == bevy::app::PluginsState::Adding {
        bevy::tasks::tick_global_task_pools_on_main_thread();
    }
    app.finish();
    app.cleanup();

    // Bevy's device exists now.
    let (engine, way) = connect(app.world().resource::<RenderDevice>(), wants_shared)?;
    let scene = Scene::new(&engine)?;
    let pixels = scene.pixels.clone();
    let device = engine.selected().device.name.clone();
    let render = app.get_sub_app_mut(RenderApp).ok_or("there is no GPU")?;
    render.insert_resource(Bridge { scene, way, image, frame: 0 });
    render.add_systems(Render, draw.in_set(RenderSystems::PrepareResources));

    // The last pictures are the same, so that the one that is read late is the one that is compared.
    for _ in 0..FRAMES + 10 {
        app.update();
    }
    let picture = Picture { width: SIZE[0], bytes: std::mem::take(&mut app.world_mut().resource_mut::<Drawn>().0) };
    let corner = ((SIZE[0] - WIDTH) / 2, (SIZE[1] - HEIGHT) / 2);
    let difference = picture.difference(&pixels.to_vec::<u32>()?, corner);
    if let Some(path) = arguments.iter().find(|argument| *argument != "--shared").map(PathBuf::from) {
        picture.save(&path)?;
    }
    let way = if wants_shared { "memory in common" } else { "one copy" };
    println!("{FRAMES} frames of Bevy by {way}, computed on {device}: bytes differ by at most {difference}");
    std::process::exit(i32::from(difference > 1));
}

/// An engine, and how its pictures reach Bevy.
fn connect(device: &RenderDevice, wants_shared: bool) -> Outcome<(Engine, Way)> {
    if !wants_shared {
        return Ok((Engine::new()?, Way::Copy));
    }
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    return shared::connect(device.wgpu_device()).map(|(engine, shared)| (engine, Way::Shared(shared)));
    #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
    {
        let _ = device;
        Err("memory in common is written for Linux, macOS and Windows: run it without --shared".into())
    }
}

/// Bevy's scene: a camera that draws into an image, a sprite with the picture, and squares around it that are Bevy's own. Returns the picture.
fn stage(world: &mut World) -> Handle<Image> {
    let format = TextureFormat::Rgba8UnormSrgb;
    let size = Extent3d { width: WIDTH, height: HEIGHT, depth_or_array_layers: 1 };
    let mut target = Image::new_target_texture(SIZE[0], SIZE[1], format, None);
    target.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    let mut images = world.resource_mut::<Assets<Image>>();
    let usage = bevy::asset::RenderAssetUsages::default();
    let image = images.add(Image::new_fill(size, TextureDimension::D2, &[0; 4], format, usage));
    let target = images.add(target);

    world.spawn((Camera2d, Msaa::Off, RenderTarget::from(target.clone())));
    world.spawn(Sprite::from_image(image.clone()));
    for place in [vec2(-144.0, -112.0), vec2(144.0, -112.0), vec2(-144.0, 112.0), vec2(144.0, 112.0)] {
        let square = Sprite::from_color(Color::srgb(1.0, 0.6, 0.1), Vec2::splat(16.0));
        world.spawn((square, Transform::from_translation(place.extend(0.0)), Turning));
    }
    world.spawn(Readback::texture(target)).observe(|read: On<ReadbackComplete>, mut drawn: ResMut<Drawn>| {
        drawn.0.clone_from(&read.data);
    });
    image
}

#[derive(Component)]
struct Turning;

fn turn(mut squares: Query<&mut Transform, With<Turning>>) {
    for mut square in &mut squares {
        square.rotate_z(1.0 / RATE);
    }
}

/// Computes a frame's picture and brings it to Bevy's texture.
fn draw(
    mut bridge: ResMut<Bridge>,
    images: Res<RenderAssets<GpuImage>>,
    device: Res<RenderDevice>,
    queue: Res<RenderQueue>,
) -> bevy::ecs::error::Result {
    let Bridge { scene, way, image, frame } = &mut *bridge;
    let Some(shown) = images.get(&*image).filter(|_| *frame < FRAMES) else { return Ok(()) };
    let seconds = *frame as f32 / RATE;
    *frame += 1;
    match way {
        Way::Copy => {
            scene.draw(seconds)?;
            copied(&scene.pixels, shown, &queue)?;
        }
        #[cfg(any(target_os = "linux", target_os = "macos", windows))]
        Way::Shared(shared) => shared.draw(scene, seconds, shown, device.wgpu_device(), &queue)?,
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
    let _ = device;
    Ok(())
}

/// From the tensor's memory to the texture if it is the host's; a tensor on a GPU is read first.
fn copied(pixels: &Tensor, shown: &GpuImage, queue: &RenderQueue) -> cantus::Result<()> {
    let layout = TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * WIDTH), rows_per_image: None };
    let (texture, size) = (shown.texture.as_image_copy(), shown.texture_descriptor.size);
    match pixels.host_view()? {
        Some(view) => {
            // SAFETY: the view keeps the memory, and no work that writes to it is recorded before this returns.
            let bytes = unsafe { std::slice::from_raw_parts(view.as_ptr(), view.bytes()) };
            queue.write_texture(texture, bytes, layout, size);
        }
        None => queue.write_texture(texture, &pixels.to_bytes()?, layout, size),
    }
    Ok(())
}
