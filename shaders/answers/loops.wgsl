// Continue, break, a return in the middle, a continuing block, and variables that swap from round to round.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

fn found(wanted: u32) -> u32 {
    for (var i = 0u; i < given[0]; i++) {
        for (var j = 0u; j < given[0]; j++) {
            if i * 10u + j == wanted { return 1000u + i * j; }
            if j > i { break; }
        }
    }
    return 7u;
}

@compute @workgroup_size(16)
fn loops(@builtin(local_invocation_index) place: u32) {
    var a = 0u;
    var b = 1u;
    var rounds = 0u;
    loop {
        if rounds % 3u == 1u { a += 100u; continue; }
        let swap = a;
        a = b;
        b = swap + b;
        continuing {
            rounds++;
            break if rounds >= place + given[0];
        }
    }
    answer[2u * place] = a ^ (b << 8u);
    answer[2u * place + 1u] = found(place * 3u);
}
