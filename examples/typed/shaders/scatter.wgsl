// Particles at random places of a box.

import cantus::random::uniform;
import package::particle::{Particle, Room};

@group(0) @binding(0) var<uniform> within: Room;
@group(0) @binding(1) var<uniform> seed: vec2u;
@group(0) @binding(2) var<storage, read_write> particles: array<Particle>;

@compute @workgroup_size(64)
fn scatter(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&particles) {
        return;
    }
    let place = vec3f(uniform(3u * id.x, seed), uniform(3u * id.x + 1u, seed), uniform(3u * id.x + 2u, seed));
    particles[id.x] = Particle(mix(within.low, within.high, place), 1.0, vec3f(), 0u);
}
