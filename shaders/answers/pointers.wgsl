// Functions change what their pointers name, also when two are handed over.
struct Pair { a: u32, b: array<u32, 3> }
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<private> kept: u32;

fn swap(x: ptr<function, u32>, y: ptr<function, u32>) { let t = *x; *x = *y; *y = t; }
fn note(pair: ptr<function, Pair>, k: ptr<private, u32>) { (*pair).b[1] += (*pair).a; *k = (*pair).b[1]; }

@compute @workgroup_size(16)
fn pointers(@builtin(local_invocation_index) place: u32) {
    var x = place;
    var y = place * 100u;
    swap(&x, &y);
    var pair = Pair(x, array<u32, 3>(1u, 2u, 3u));
    var copy = pair;
    note(&pair, &kept);
    copy.b[2] += y;
    answer[place] = x + y + kept + 7u * copy.b[2] + copy.b[1];
}
