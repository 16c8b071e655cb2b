// What runs by default, and what only CANTUS_TESTS=all runs: the rest takes turns, so that in a few turns all of it has run.

/** True if every piece runs. */
export const everything = process.env.CANTUS_TESTS === "all";

/** Which turn it is. */
const turn = Number(process.env.CANTUS_TURN) || 0;

/** True if the piece with this number has its turn, where each turn takes one of `shares`. */
export const hasTurn = (number, shares) => everything || (number + turn) % shares === 0;
