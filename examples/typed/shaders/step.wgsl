// One step of time: particles fall, and bounce from the box.

import package::particle::{Particle, Room};

override GRAVITY: f32 = -9.81;

@group(0) @binding(0) var<uniform> within: Room;
@group(0) @binding(1) var<uniform> seconds: f32;
@group(0) @binding(2) var<storage, read_write> particles: array<Particle>;

@compute @workgroup_size(64)
fn step(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&particles) {
        return;
    }
    var particle = particles[id.x];
    particle.velocity.y += GRAVITY * seconds;
    particle.position += particle.velocity * seconds;
    if particle.position.y < within.low.y {
        particle.position.y = 2.0 * within.low.y - particle.position.y;
        particle.velocity.y = -particle.velocity.y;
    }
    particle.age += 1u;
    particles[id.x] = particle;
}
