// What the kernels of this app share.

struct Particle {
    position: vec3f,
    mass: f32,
    velocity: vec3f,
    // Which generation: the last 4 bytes.
    age: u32,
}

struct Room {
    low: vec3f,
    high: vec3f,
}
