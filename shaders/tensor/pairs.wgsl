// Pair `number` of a round in which each of `count` players, an even number, meets another one: in count - 1 rounds each meets all.
fn pair(round: u32, number: u32, count: u32) -> vec2u {
    let others = count - 1u;
    if number == 0u { return vec2u(round, others); }
    let one = (round + number) % others;
    let two = (round + others - number) % others;
    return vec2u(min(one, two), max(one, two));
}

