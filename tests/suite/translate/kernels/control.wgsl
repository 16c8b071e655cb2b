@group(0) @binding(0) var<storage, read_write> out: array<i32>;

fn classify(x: i32) -> i32 {
    switch x {
        case 0, 1: { return 1; }
        case -5: { }
        default: { if x > 9 { break; } return -x; }
    }
    return x * 3;
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
    var sum = 0;
    for (var k = 0; k < 10; k++) {
        if k % 3 == 1 { continue; }
        sum += classify(k - i32(i));
    }
    var n = 0;
    loop {
        n += 2;
        let square = n * n;
        if n == 6 { continue; }
        sum -= n;
        continuing {
            sum ^= n;
            break if square > 50;
        }
    }
    out[i] = sum;
}
