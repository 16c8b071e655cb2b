// What only the modules of a release can be held to.
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { WEB } from "./browser.mjs";

/** True if the modules were built by `build.sh --quick`. */
export const isQuick = () => readFileSync(join(WEB, "pkg", "profile"), "utf8").trim() === "quick";

/** Lists a test as not run. */
export function left(test) {
  const reason = "the modules are a quick build's: web/build.sh makes a release's";
  test.skip(reason);
  if (process.env.CANTUS_SKIPS) appendFileSync(process.env.CANTUS_SKIPS, `${test.name}\t${reason}\n`);
}
