// The site's pages from what the project has anyway (`node docs/site/build.mjs pages FOLDER`), and the check of its links (`node docs/site/build.mjs check FOLDER`).
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const text = (file) => readFileSync(join(root, file), "utf8");
const escaped = (value) => String(value).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
/** An address of [workspace.package]. */
const address = (key) => new RegExp(`^${key} = "(.*)"`, "m").exec(text("Cargo.toml"))?.[1] ?? "";
const version = address("version");
const hasApi = !process.env.CANTUS_SITE_QUICK;

const pages = [
  ["index", "Cantus: portable compute on every device", "One WGSL kernel or one expression, on GPUs, in browsers, on phones, and on any processor without a driver."],
  ["gallery", "Gallery", "Simulations, pictures, sound and networks, computed in the page."],
  ["benchmarks", "Benchmarks", "Measurements beside other libraries, each with its machine, date and command."],
  ["beside", "Cantus beside …", "What other libraries do better, and what Cantus does better."],
];

function page(name, title, about, body, head = "") {
  const links = [["guide/index.html", "Guide"], ["play/index.html#playground", "Playground"], ["gallery.html", "Gallery"], ["benchmarks.html", "Benchmarks"], ["beside.html", "Beside …"], ...(hasApi ? [["api/index.html", "API"]] : []), [address("repository"), "Source"]];
  const nav = links.map(([to, label]) => `<a href="${escaped(to)}"${to === `${name}.html` ? ' aria-current="page"' : ""}>${label}</a>`).join("\n        ");
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="description" content="${escaped(about)}">
    <meta name="color-scheme" content="light dark">
    <title>${escaped(name === "index" ? title : `${title} · Cantus`)}</title>
    <link rel="icon" href="./icon.svg">
    <link rel="stylesheet" href="./style.css">${head}
  </head>
  <body>
    <a class="skip" href="#content">Skip to content</a>
    <header><nav class="bar" aria-label="Site">
        <a class="mark" href="index.html">Cantus</a>
        ${nav}
    </nav></header>
    <main id="content">
${body}
    </main>
    <footer>Cantus ${version}, under MIT or Apache-2.0, at your choice. This site sets no cookies and loads nothing from elsewhere.</footer>
  </body>
</html>
`;
}

function front() {
  const code = (title, file, how) => `<section><h3>${title}</h3><pre tabindex="0" aria-label="${title}"><code>${escaped(text(file).replace(/^\/\/!.*\n+/gm, "").replace("pub fn main", "fn main").trim())}</code></pre><p>${how}</p></section>`;
  return `<div class="hero">
  <div>
    <h1>Write a kernel once. Run it on every device.</h1>
    <p class="lead">Cantus runs WGSL kernels and tensor expressions on GPUs, in browsers, on phones, and on any processor without a driver. It picks the fastest device, falls back when one fails, and gives the right numbers or an error.</p>
    <ul class="actions">
      <li><a class="first" href="guide/ten-minutes.html">Your first session</a></li>
      <li><a href="play/index.html#playground">Playground</a></li>
      <li><a href="gallery.html">Gallery</a></li>
    </ul>
  </div>
  <figure class="stage">
    <div class="picture" id="stage"><img src="./field.png" width="768" height="768" alt="A damped spiral wave" fetchpriority="high"></div>
    <figcaption><span id="device" role="status">A damped spiral wave, computed by Cantus.</span><button id="play" type="button" hidden>Pause</button></figcaption>
  </figure>
</div>
<h2>In three languages</h2>
<div class="codes">
${code("Rust", "examples/first.rs", '<code>cargo add cantus</code>, then the <a href="guide/first-kernel.html">first kernel</a>')}
${code("Python", "docs/site/snippets/first.py", '<code>pip install cantus-compute</code>, then the <a href="guide/python.html">chapter on Python</a>')}
${code("JavaScript", "docs/site/snippets/first.js", '<code>npm install cantus</code>, then the <a href="guide/web.html">chapter on the web</a>')}
</div>
<p>Nothing is published yet: until then each is built from a checkout, as the guide says.</p>
<h2>What it does</h2>
<ul class="facts">
  <li><strong>One source, eight backends</strong> Vulkan, Metal and DX12 through wgpu, Vulkan directly, CUDA, HIP, OpenCL, operation graphs for TPUs and their like, and the processor.</li>
  <li><strong>Right, or an error</strong> A thousand kernels with known answers tell whether a driver computes what it should. One that does not is left.</li>
  <li><strong>No driver needed</strong> Kernels run on the processor's vector units by an executor of their own. A test needs no GPU.</li>
  <li><strong>Expressions that fuse</strong> Operations are recorded and planned together, so that <code>gelu(x w + b)</code> is one kernel.</li>
  <li><strong>Larger than memory</strong> Files stream through kernels in chunks, and several devices share one array.</li>
  <li><strong>Also a program</strong> <code>cantus run kernel.wgsl --in image=photo.jpg</code>, simulations from a TOML file, a service, a monitor.</li>
</ul>`;
}

function gallery() {
  const source = text("web/page/playground/gallery.ts");
  const found = [...source.matchAll(/piece\(\s*"([a-z0-9]+)",\s*"([^"]+)",\s*\["([^"]+)"/g)].map(([, id, title, line]) => ({ id, title, line }));
  if (found.length < 12) throw new Error(`the gallery of web/ has only ${found.length} pieces that are understood here (mend docs/site/build.mjs)`);
  const item = ({ id, title, line }) => `<li><a href="play/index.html#playground/${id}"><img src="./thumbs/${id}.webp" alt="" width="320" height="240" loading="lazy"><span><strong>${escaped(title)}</strong>${escaped(line)}</span></a></li>`;
  // A row of examples/README.md: a picture or nothing, the example, what it shows, how to run it.
  const rows = text("examples/README.md").split("\n").map((line) => line.split("|").slice(1, -1).map((cell) => /^!?\[(.*)\]\((.*)\)$/.exec(cell.trim())?.slice(1) ?? cell.trim().replaceAll("`", "")));
  const there = (file) => `${escaped(address("repository"))}/blob/main/${relative(root, join(root, "examples", file))}`;
  const programs = rows.filter(([picture]) => picture?.[1]?.startsWith("pictures/"));
  const further = rows.filter(([example, shows]) => Array.isArray(example) && typeof shows === "string");
  if (programs.length < 11 || further.length < 5) throw new Error("the tables of examples/README.md are not understood here (mend docs/site/build.mjs)");
  const program = ([[about, picture], [name, file], shows]) => `<li><a href="${there(file)}"><img src="./${picture}" alt="${escaped(about)}" width="320" height="240" loading="lazy"><span><strong>${escaped(name)}</strong>${escaped(shows)}</span></a></li>`;
  return `<h1>Gallery</h1>
<p class="lead">${found.length} kernels that run in this page, on WebGPU or on the processor. Each opens in the playground, where its text can be changed while it runs, and taken along for npm, Rust or the program.</p>
<ul class="pieces">
${found.map(item).join("\n")}
</ul>
<h2>In Rust and Python</h2>
<p>Whole programs, one file each; <code>examples/README.md</code> has the command of each.</p>
<ul class="pieces">
${programs.map(program).join("\n")}
</ul>
<p>Further: ${further.map(([[name, file], shows]) => `<a href="${there(file)}">${escaped(name)}</a> (${escaped(shows)})`).join(", ")}. The guide explains <a href="guide/embedding.html">an app that owns wgpu</a>, <a href="guide/several-devices.html">several devices as one</a>, <a href="guide/larger-than-memory.html">files larger than memory</a>, <a href="guide/images.html">filters of images</a>, <a href="guide/zero-knowledge.html">a proof</a>, <a href="guide/python.html">NumPy's programs on a GPU</a>, <a href="guide/jobs.html">simulations without a program</a>.</p>`;
}

/** Microseconds as people write them. */
const time = (us) => (us == null ? "–" : us < 1000 ? `${Number(us.toPrecision(3))} µs` : us < 1e6 ? `${Number((us / 1000).toPrecision(3))} ms` : `${Number((us / 1e6).toPrecision(3))} s`);

function benchmarks() {
  const folder = join(root, "benches/measured");
  // One table for each pair of columns that is compared.
  const pairs = (file) => {
    const { columns, compared, rows, ...rest } = { file, ...JSON.parse(readFileSync(join(folder, file), "utf8")) };
    if (!columns) return [{ ...rest, rows, ours: "Cantus" }];
    return compared.map(([ours, peer]) => {
      const [at, beside] = [columns.indexOf(ours), columns.indexOf(peer)];
      const times = rows.map(({ us, ...row }) => ({ ...row, ours_us: us[at], peer_us: us[beside] })).filter(({ ours_us }) => ours_us != null);
      return { ...rest, title: `${rest.title}: ${ours === "Cantus" ? "" : `${ours} `}beside ${peer}`, ours, peer, rows: times };
    });
  };
  const sets = readdirSync(folder).filter((file) => file.endsWith(".json")).sort().flatMap(pairs);
  const set = (one) => {
    for (const key of ["title", "machine", "date", "command", "rows"]) if (!one[key]) throw new Error(`benches/measured/${one.file} has no ${key}`);
    const compared = one.rows.filter(({ peer_us }) => peer_us != null);
    const mean = Math.exp(compared.reduce((sum, { ours_us, peer_us }) => sum + Math.log(ours_us / peer_us), 0) / compared.length);
    const row = ({ op, size, ours_us, peer_us }) => `<tr><td>${escaped(op)}</td><td class="number">${size ?? ""}</td><td class="number">${time(ours_us)}</td><td class="number">${time(peer_us)}</td><td class="number">${peer_us == null ? "–" : (ours_us / peer_us).toFixed(2)}</td></tr>`;
    return `<h2>${escaped(one.title)}</h2>
<p>${escaped(one.machine)}, ${escaped(one.date)}. ${escaped(one.note ?? "")} In the geometric mean of ${compared.length} rows ${escaped(one.ours)} takes ${mean.toFixed(2)} times as long, and it is no slower in ${compared.filter(({ ours_us, peer_us }) => ours_us <= peer_us).length}.</p>
<p><code>${escaped(one.command)}</code></p>
<div class="scroll" tabindex="0" role="region" aria-label="${escaped(one.title)}"><table><thead><tr><th scope="col">operation</th><th scope="col" class="number">side</th><th scope="col" class="number">${escaped(one.ours)}</th><th scope="col" class="number">${escaped(one.peer)}</th><th scope="col" class="number">ratio</th></tr></thead><tbody>
${[...compared, ...one.rows.filter(({ peer_us }) => peer_us == null)].map(row).join("\n")}
</tbody></table></div>`;
  };
  return `<h1>Benchmarks</h1>
<p class="lead">Both sides in the same run on the same machine. A ratio above 1 says that Cantus takes longer; those rows stay in.</p>
<p>These are the recorded files of the benches, one table each. To measure your own machine: <code>cantus bench --html bench.html --json bench.json</code>; the <a href="guide/bench.html">guide</a> explains what it prints. In this browser: <a href="play/index.html#bench">the page's bench</a>.</p>
${sets.map(set).join("\n")}`;
}

function beside() {
  const { lead, rows } = JSON.parse(text("docs/site/beside.json"));
  const row = ([name, theirs, ours, take]) => `<tr><th scope="row">${escaped(name)}</th><td data-label="Does better">${escaped(theirs)}</td><td data-label="Cantus does better">${escaped(ours)}</td><td data-label="Take it for">${escaped(take)}</td></tr>`;
  return `<h1>Cantus beside …</h1>
<p class="lead">${escaped(lead)}</p>
<div class="scroll beside" tabindex="0" role="region" aria-label="Comparison"><table><thead><tr><th scope="col">project</th><th scope="col">does better</th><th scope="col">Cantus does better</th><th scope="col">take it for</th></tr></thead><tbody>
${rows.map(row).join("\n")}
</tbody></table></div>
<p>Measurements are under <a href="benchmarks.html">Benchmarks</a>. Something here is unfair or out of date? Please open an issue.</p>`;
}

function write(folder) {
  const bodies = { index: front, gallery, benchmarks, beside };
  for (const [name, title, about] of pages) {
    const head = name === "index" ? '\n    <script type="module" src="./front.ts"></script>' : "";
    writeFileSync(join(folder, `${name}.html`), page(name, title, about, bodies[name](), head));
  }
  writeFileSync(join(folder, "front.ts"), 'import "@site/front.ts";\n');
  copyFileSync(join(root, "docs/site/style.css"), join(folder, "style.css"));
  copyFileSync(join(root, "docs/field.png"), join(folder, "field.png"));
  copyFileSync(join(root, "web/public/icon.svg"), join(folder, "icon.svg"));
  for (const [from, to] of [["web/page/playground/thumbs", "thumbs"], ["examples/pictures", "pictures"]]) {
    mkdirSync(join(folder, to));
    for (const file of readdirSync(join(root, from))) copyFileSync(join(root, from, file), join(folder, to, file));
  }
}

/** The book as a site wants it: a highlighter that knows WGSL, the reader's own fonts, scripts that wait for the text, names that a screen reader takes. */
function polish(folder) {
  const guide = join(folder, "guide");
  const change = (name, work) => writeFileSync(join(guide, name), work(readFileSync(join(guide, name), "utf8")));
  for (const name of existsSync(guide) ? readdirSync(guide) : []) {
    if (/^highlight.*\.js$/.test(name)) change(name, (script) => `${script}\n;${text("docs/site/wgsl.js")}`);
    if (/^book.*\.js$/.test(name)) change(name, (script) => script.replace(/^window\.onunload = .*$/m, ""));
    if (name.endsWith(".html")) {
      change(name, (html) =>
        html
          .replace(/<script src=/g, "<script defer src=")
          .replace(/^.*<link rel="stylesheet" href="[^"]*fonts\/fonts[^"]*">\n/m, "")
          .replace('<label id="mdbook-sidebar-toggle" ', '<label id="mdbook-sidebar-toggle" role="button" '),
      );
    }
  }
  rmSync(join(guide, "fonts"), { recursive: true, force: true });
}

/** Links of the guide to files beside it lead to the repository. */
function lead(folder) {
  const guide = join(folder, "guide");
  for (const name of existsSync(guide) ? readdirSync(guide) : []) {
    if (!name.endsWith(".html")) continue;
    const file = join(guide, name);
    const html = readFileSync(file, "utf8");
    const fresh = html.replace(/(\s(?:href|src)=")((?:\.\.\/)+[^"#]*)/g, (all, before, link) => {
      const from = join(root, "docs/guide/src", link);
      // A picture comes along.
      if (/\.(png|jpg|svg|webp)$/.test(link) && existsSync(from)) {
        const name = relative(join(root, "docs"), from).replaceAll("/", "-");
        copyFileSync(from, join(guide, name));
        return `${before}${name}`;
      }
      // mdBook calls every page .html.
      const source = existsSync(from) ? from : from.replace(/\.html$/, ".md");
      return existsSync(source) && !relative(root, source).startsWith("..") ? `${before}${address("repository")}/blob/main/${relative(root, source)}` : all;
    });
    if (fresh !== html) writeFileSync(file, fresh);
  }
}

/** Every link within the site leads to a file, and every part of a page that is named is there. */
function check(folder) {
  const files = [];
  const walk = (path) => {
    for (const name of readdirSync(path)) {
      const inner = join(path, name);
      if (statSync(inner).isDirectory()) walk(inner);
      else if (name.endsWith(".html")) files.push(inner);
    }
  };
  walk(folder);
  const ids = new Map();
  const has = (file, id) => {
    if (!ids.has(file)) ids.set(file, new Set([...readFileSync(file, "utf8").matchAll(/\s(?:id|name)="([^"]*)"/g)].map(([, id]) => id)));
    return ids.get(file).has(id);
  };
  const wrong = [];
  let links = 0;
  for (const file of files) {
    // rustdoc checks its own.
    const inner = relative(folder, file);
    if (inner.startsWith("api/") && inner !== "api/index.html") continue;
    const html = readFileSync(file, "utf8").replace(/<(script|style)\b[^>]*>[\s\S]*?<\/\1>/g, (all, tag) => (tag === "script" ? all.slice(0, all.indexOf(">") + 1) : "")).replace(/<!--[\s\S]*?-->/g, "");
    for (const [, raw] of html.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
      const link = raw.replaceAll("&amp;", "&");
      if (/^(https?:|mailto:|data:|javascript:)/.test(link)) continue;
      links += 1;
      if (link.startsWith("/")) {
        // A page that is sent for what is not there knows no folder of its own.
        if (inner !== "guide/404.html") wrong.push(`${inner}: ${link} (the site may lie in any folder)`);
        continue;
      }
      const [path, id] = link.split("#");
      const to = path === "" ? file : resolve(dirname(file), decodeURIComponent(path.split("?")[0]));
      // Without mdBook there is no guide, which build.sh has said.
      if (relative(folder, to).startsWith("guide/") && !existsSync(join(folder, "guide"))) continue;
      if (relative(folder, to).startsWith("..")) wrong.push(`${inner}: ${link} (it leaves the site)`);
      else if (!existsSync(to)) wrong.push(`${inner}: ${link}`);
      else if (id && to.endsWith(".html") && !relative(folder, to).startsWith("play/") && !has(to, decodeURIComponent(id))) wrong.push(`${inner}: ${link} (there is no such part)`);
    }
  }
  if (wrong.length > 0) {
    console.error(`links that lead nowhere:\n  ${wrong.join("\n  ")}`);
    process.exit(1);
  }
  console.log(`${files.length} pages, ${links} links within the site`);
}

const [what, folder] = process.argv.slice(2);
if (what === "pages") write(folder);
else {
  polish(resolve(folder));
  lead(resolve(folder));
  check(resolve(folder));
}
