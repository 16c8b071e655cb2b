struct Body { position: vec3f, mass: f32, velocity: vec3f, @align(16) flags: array<vec3u, 2> }
struct World { count: u32, rotation: mat3x3f, bodies: array<Body> }
@group(0) @binding(0) var<storage, read_write> world: World;

@compute @workgroup_size(32)
fn move_bodies(@builtin(global_invocation_id) id: vec3u) {
    let bodies = arrayLength(&world.bodies);
    if id.x >= min(bodies, world.count) { return; }
    var body = world.bodies[id.x];
    body.position = world.rotation * body.position + body.velocity * body.mass;
    body.flags[id.x % 2u].y += 1u;
    world.bodies[id.x] = body;
    world.bodies[id.x].velocity[id.x % 3u] = 0.0;
}
