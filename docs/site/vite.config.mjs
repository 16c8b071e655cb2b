// The site's pages, which build.mjs wrote to the folder that CANTUS_SITE names, and what the front page runs.
import { fileURLToPath } from "node:url";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const root = process.env.CANTUS_SITE_WORK;
const here = fileURLToPath(new URL(".", import.meta.url));
export default {
  root,
  base: "./",
  logLevel: "warn",
  resolve: { alias: { "@site": here } },
  worker: { format: "es" },
  server: { fs: { strict: false } },
  build: {
    target: "es2022",
    outDir: process.env.CANTUS_SITE,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    rollupOptions: { input: readdirSync(root).filter((file) => file.endsWith(".html")).map((file) => join(root, file)) },
  },
};
