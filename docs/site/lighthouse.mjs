// Lighthouse on the built site: `node docs/site/lighthouse.mjs FOLDER [--desktop] [PAGE]…`, after docs/site/build.sh. FOLDER is where npm has put lighthouse; the
// pages are the site's own four where none is named. Five rounds as a phone, or a desktop, page after page; prints the median of each score, and fails
// if one is below 95. Scores of performance are of a machine with nothing else to do.
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { answer } from "../../web/serve.mjs";

const ROUNDS = 5;
const LEAST = 95;
const CATEGORIES = ["performance", "accessibility", "best-practices", "seo"];

const isDesktop = process.argv.includes("--desktop");
const [folder, ...named] = process.argv.slice(2).filter((word) => word !== "--desktop");
const site = fileURLToPath(new URL("../../target/site", import.meta.url));
if (!folder || !existsSync(join(folder, "node_modules/lighthouse")) || !existsSync(join(site, "index.html"))) {
  console.error("needs the site (docs/site/build.sh) and lighthouse (npm install --prefix FOLDER lighthouse)");
  process.exit(1);
}
const require = createRequire(join(resolve(folder), "package.json"));
const { default: lighthouse } = await import(pathToFileURL(require.resolve("lighthouse")).href);
const { default: desktop } = await import(pathToFileURL(require.resolve("lighthouse/core/config/desktop-config.js")).href);
const { launch } = await import(pathToFileURL(createRequire(require.resolve("lighthouse")).resolve("chrome-launcher")).href);

const server = createServer((request, response) => answer(site, request, response));
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const pages = named.length > 0 ? named : ["index.html", "gallery.html", "benchmarks.html", "beside.html"];
const scores = new Map(pages.map((page) => [page, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const page of pages) {
    // A browser of its own for each visit: nothing is in its cache.
    const chrome = await launch({ chromePath: process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim(), chromeFlags: ["--headless=new", "--no-sandbox", "--disable-quic", "--disable-background-networking"] });
    try {
      const { lhr } = await lighthouse(`http://127.0.0.1:${server.address().port}/${page}`, { port: chrome.port, onlyCategories: CATEGORIES, logLevel: "error" }, isDesktop ? desktop : undefined);
      scores.get(page).push(CATEGORIES.map((name) => Math.round(100 * (lhr.categories[name].score ?? 0))));
      for (const audit of Object.values(lhr.audits)) if (round === 0 && audit.score !== null && audit.score < 0.9) console.log(`  ${page}: ${audit.id} ${audit.score}: ${audit.displayValue ?? audit.title}`);
    } finally {
      chrome.kill();
    }
  }
}
server.close();
let isGood = true;
for (const [page, rounds] of scores) {
  const medians = CATEGORIES.map((_, at) => rounds.map((round) => round[at]).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]);
  isGood &&= medians.every((score) => score >= LEAST);
  console.log(`${page}: ${CATEGORIES.map((name, at) => `${name} ${medians[at]}`).join(", ")} (median of ${ROUNDS}; performance ${rounds.map(([first]) => first).join(", ")})`);
}
process.exit(isGood ? 0 : 1);
