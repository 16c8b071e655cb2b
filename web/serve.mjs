#!/usr/bin/env node
// `web/serve [PORT] [FOLDER]`: serves the built page (dist/) with its .br and .gz files, under any path. Nothing but Node is needed.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json", ".webmanifest": "application/manifest+json", ".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp" };
const CODINGS = [["br", ".br"], ["gzip", ".gz"]];

/** Answers a request for a file of the folder. */
export function answer(folder, request, response) {
  const root = resolve(folder);
  let path;
  try {
    path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
  } catch {
    return response.writeHead(400).end();
  }
  const file = join(root, path.endsWith("/") ? `${path}index.html` : path);
  if (!file.startsWith(root + sep) || !existsSync(file) || !statSync(file).isFile()) return response.writeHead(404, { "content-type": "text/plain" }).end("There is no such file.\n");
  const accepted = String(request.headers["accept-encoding"] ?? "");
  const coding = CODINGS.find(([name, suffix]) => new RegExp(`\\b${name}\\b`).test(accepted) && existsSync(file + suffix));
  const headers = {
    "content-type": TYPES[extname(file)] ?? "application/octet-stream",
    // Names with a hash never change what they hold.
    "cache-control": /\/assets\//.test(path) ? "public, max-age=31536000, immutable" : "no-cache",
    // The page is isolated: it shares no memory with others, and may share its own with its workers.
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "x-content-type-options": "nosniff",
    vary: "accept-encoding",
    ...(coding && { "content-encoding": coding[0] }),
  };
  const sent = coding ? file + coding[1] : file;
  response.writeHead(200, { ...headers, "content-length": statSync(sent).size });
  if (request.method === "HEAD") return response.end();
  return createReadStream(sent).pipe(response);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folder = process.argv[3] ?? fileURLToPath(new URL("dist", import.meta.url));
  if (!existsSync(join(folder, "index.html"))) {
    console.error(`${folder} has no page yet: web/build.sh builds it`);
    process.exit(1);
  }
  const server = createServer((request, response) => answer(folder, request, response));
  server.on("error", (error) => {
    console.error(error.code === "EADDRINUSE" ? `port ${process.argv[2] ?? 8080} is taken: web/serve 8081` : error.message);
    process.exit(1);
  });
  server.listen(Number(process.argv[2] ?? 8080), () => console.log(`http://localhost:${server.address().port}/`));
}
