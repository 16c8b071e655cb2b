// Twenty chains of ten elementwise operations, written by `benches/chains.rs`.

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;

@compute @workgroup_size(256)
fn chain0(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v + y;
        v = min(v, y);
        v = v * 0.75;
        v = exp(min(v, 4.0));
        v = v * y;
        v = -v;
        v = v * v;
        v = max(v, -1.0);
        v = v * v;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain1(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v + y;
        v = max(v, -1.0);
        v = v + y;
        v = v + 0.5;
        v = v * v;
        v = v * v;
        v = abs(v);
        v = exp(min(v, 4.0));
        v = v - y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain2(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = sqrt(abs(v));
        v = v * v;
        v = max(v, -1.0);
        v = v - y;
        v = max(v, -1.0);
        v = sqrt(abs(v));
        v = v + 0.5;
        v = v * y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain3(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = sqrt(abs(v));
        v = v - y;
        v = min(v, y);
        v = abs(v);
        v = v * y;
        v = min(v, y);
        v = v * 0.75;
        v = v + 0.5;
        v = v + y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain4(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = exp(min(v, 4.0));
        v = min(v, y);
        v = exp(min(v, 4.0));
        v = max(v, y);
        v = v * v;
        v = v + 0.5;
        v = v * y;
        v = v * v;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain5(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v * v;
        v = max(v, -1.0);
        v = v * 0.75;
        v = exp(min(v, 4.0));
        v = max(v, -1.0);
        v = -v;
        v = v - y;
        v = v - y;
        v = v + y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain6(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v * v;
        v = exp(min(v, 4.0));
        v = v * y;
        v = v + 0.5;
        v = v * y;
        v = v * v;
        v = v - y;
        v = v * 0.75;
        v = v * 0.75;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain7(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = abs(v);
        v = v - y;
        v = abs(v);
        v = v - y;
        v = abs(v);
        v = v * y;
        v = v * v;
        v = abs(v);
        v = abs(v);
        v = max(v, y);
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain8(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = abs(v);
        v = v * y;
        v = max(v, y);
        v = abs(v);
        v = max(v, -1.0);
        v = min(v, y);
        v = abs(v);
        v = max(v, y);
        v = max(v, y);
        v = -v;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain9(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = -v;
        v = v * 0.75;
        v = v + y;
        v = v - y;
        v = v - y;
        v = v + 0.5;
        v = v + 0.5;
        v = max(v, -1.0);
        v = -v;
        v = max(v, y);
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain10(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = max(v, -1.0);
        v = -v;
        v = max(v, -1.0);
        v = abs(v);
        v = abs(v);
        v = -v;
        v = v * 0.75;
        v = exp(min(v, 4.0));
        v = v * y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain11(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = max(v, -1.0);
        v = sqrt(abs(v));
        v = v - y;
        v = min(v, y);
        v = v + 0.5;
        v = v + y;
        v = v * y;
        v = v * y;
        v = v + 0.5;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain12(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v + 0.5;
        v = v * y;
        v = -v;
        v = sqrt(abs(v));
        v = v - y;
        v = v * y;
        v = v - y;
        v = v + 0.5;
        v = v + y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain13(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v + 0.5;
        v = v * 0.75;
        v = v * 0.75;
        v = max(v, -1.0);
        v = -v;
        v = min(v, y);
        v = v - y;
        v = v * v;
        v = min(v, y);
        v = -v;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain14(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v * 0.75;
        v = abs(v);
        v = sqrt(abs(v));
        v = v - y;
        v = v + 0.5;
        v = v + 0.5;
        v = v * v;
        v = v - y;
        v = max(v, y);
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain15(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = min(v, y);
        v = sqrt(abs(v));
        v = v + 0.5;
        v = abs(v);
        v = v + y;
        v = exp(min(v, 4.0));
        v = v * v;
        v = v * 0.75;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain16(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = min(v, y);
        v = v * y;
        v = max(v, y);
        v = min(v, y);
        v = -v;
        v = v + y;
        v = v + 0.5;
        v = abs(v);
        v = v * v;
        v = v + 0.5;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain17(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = max(v, y);
        v = v + 0.5;
        v = v * v;
        v = sqrt(abs(v));
        v = v * 0.75;
        v = v * y;
        v = v * 0.75;
        v = v + y;
        v = v - y;
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain18(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = max(v, y);
        v = abs(v);
        v = min(v, y);
        v = max(v, -1.0);
        v = v + y;
        v = min(v, y);
        v = v * y;
        v = min(v, y);
        v = -v;
        v = abs(v);
        z[id.x] = v;
    }
}

@compute @workgroup_size(256)
fn chain19(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&z) {
        let y = b[id.x];
        var v = a[id.x];
        v = v * y;
        v = v * v;
        v = v - y;
        v = v * y;
        v = -v;
        v = abs(v);
        v = v - y;
        v = -v;
        v = sqrt(abs(v));
        z[id.x] = v;
    }
}
