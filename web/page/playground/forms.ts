/** The shown kernel as a program: for npm, for Rust, for the command line. What is written runs as it is. */
import type { Fill, Job } from "../compute/protocol.js";
import type { Binding, TextureBinding } from "../../lib/types.js";
import { GIVEN, wordsOf } from "../compute/session.js";
import { formatOf } from "../compute/textures.js";
import { isMoving, lengthOf } from "../compute/values.js";
import type { Shown } from "./sketch.js";

export type Form = "npm" | "rust" | "cli";

export interface Shape {
  job: Job;
  bindings: Binding[];
  textures: TextureBinding[];
  /** The bindings of each entry point's own. */
  shown: Shown;
  name: string;
}

const isGiven = (path: string) => (GIVEN as readonly string[]).includes(path.slice(path.lastIndexOf(".") + 1));

function uniforms({ job, bindings, textures, shown }: Shape): [string, number[]][] {
  return bindings.flatMap(({ members }) =>
    members.map(({ path, count }): [string, number[]] => {
      const name = path.slice(path.lastIndexOf(".") + 1);
      if (!isGiven(path)) return [path, job.uniforms[path] ?? []];
      const width = shown.width ?? 1;
      const output = bindings.find((binding) => binding.name === shown.name);
      const fill = output && job.fills[output.name];
      const texture = textures.some((known) => known.name === shown.name) ? job.fills[shown.name ?? ""] : undefined;
      if (texture && "width" in texture) return [path, (name === "resolution" ? [texture.width, texture.height, 1] : [0, 0, 0, 0]).slice(0, count)];
      const pixels = output && fill ? lengthOf(fill, output.scalar, wordsOf(output.type)) / (shown.kind === "rgba" && output.scalar === "f32" ? 4 : 1) : width;
      return [path, (name === "resolution" ? [width, Math.ceil(pixels / width), 1] : [0, 0, 0, 0]).slice(0, count)];
    }),
  );
}

/** The textures with their formats and sides, and whether they take your own pictures. */
function images({ job, textures }: Shape): { name: string; format: string; width: number; height: number; own: boolean; written: boolean }[] {
  return textures.map((binding) => {
    const fill = job.fills[binding.name];
    const { width, height } = fill && "width" in fill ? fill : { width: 1, height: 1 };
    return { name: binding.name, format: formatOf(binding), width, height, own: fill?.kind !== "blank", written: binding.access !== "read" };
  });
}

const storage = ({ bindings }: Shape) => bindings.filter(({ space }) => space === "storage");

/** The text of a form. */
export function written(form: Form, shape: Shape): string {
  if (form === "npm") return npm(shape);
  return form === "rust" ? rust(shape) : cli(shape);
}

const quoted = (name: string) => (/^[a-zA-Z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
const listed = (numbers: readonly number[]) => (numbers.length === 1 ? String(numbers[0]) : `[${numbers.join(", ")}]`);

const ARRAYS: Record<string, string> = { f32: "Float32Array", f64: "Float64Array", i32: "Int32Array", u32: "Uint32Array", i64: "BigInt64Array", u64: "BigUint64Array", f16: "Uint16Array" };

function npm(shape: Shape): string {
  const { job, shown } = shape;
  const made = storage(shape).map(({ name, scalar, type }) => {
    const fill = job.fills[name] as Fill;
    const array = ARRAYS[scalar] ?? "Float32Array";
    const length = lengthOf(fill, scalar, wordsOf(type));
    const from: Partial<Record<Fill["kind"], string>> = {
      ones: `new ${array}(${length}).fill(1)`,
      range: `${array}.from({ length: ${length} }, (_, i) => i)`,
      random: `${array}.from({ length: ${length} }, () => ${scalar.startsWith("f") ? "Math.random()" : "Math.round(Math.random())"})`,
      numbers: fill.kind === "numbers" ? `${array}.of(${fill.numbers.join(", ")})` : "",
    };
    const values = from[fill.kind];
    const note = fill.kind === "file" || fill.kind === "image" || isMoving(fill) ? " // put your own values here" : "";
    return `  ${quoted(name)}: ${values ? `await engine.tensor(${values})` : `await engine.zeros([${length}], "${scalar}")`},${note}`;
  });
  for (const { name, format, width, height, own } of images(shape)) {
    made.push(`  ${quoted(name)}: await engine.texture({ format: "${format}", size: [${width}, ${height}] }),${own ? " // or a picture: await engine.textureFrom(file)" : ""}`);
  }
  const all = uniforms(shape);
  const overrides = Object.entries(job.overrides);
  const lines = job.steps.flatMap(({ run, times = 1, once, count = job.count, unit = job.unit }) => {
    const calls = run.map((entry) => `run("${entry}", "${unit}", [${count.join(", ")}])`).map((call) => `await ${call};`);
    const repeated = times > 1 ? [`for (let i = 0; i < ${times}; i++) {`, ...calls.map((call) => `  ${call}`), "}"] : calls;
    return once ? ["// Only before the first frame.", ...repeated] : repeated;
  });
  return `// npm install cantus
import { Engine } from "cantus";

const wgsl = ${JSON.stringify(job.wgsl).replaceAll("\\n", "\\n\\\n")};

const engine = await Engine.create();
const bound = {
${made.join("\n")}
};
const uniforms = {${all.map(([path, values]) => ` ${JSON.stringify(path)}: ${listed(values)}`).join(",")} };
const kernel = engine.kernel(wgsl);

/** Each entry point gets the bindings and uniforms that it has. */
async function run(entryPoint, unit, count) {
  const chosen = kernel.entryPoint(entryPoint);
  const { bindings, textures } = chosen.reflection();
  const own = (all, names) => Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)));
  await engine.dispatch(chosen, {
    bindings: own(bound, [...bindings, ...textures].map(({ name }) => name)),
    uniforms: own(uniforms, bindings.flatMap(({ members }) => members.map(({ path }) => path))),${overrides.length > 0 ? `\n    overrides: ${JSON.stringify(job.overrides)},` : ""}
    [unit]: count,
  });
}

${lines.join("\n")}
console.log(await bound${/^[a-zA-Z_$][\w$]*$/.test(shown.name ?? "") ? `.${shown.name}` : `[${JSON.stringify(shown.name)}]`}.read());
`;
}

const RUST: Record<string, string> = { f32: "f32", f64: "f64", i32: "i32", u32: "u32", i64: "i64", u64: "u64" };

/** Words of Rust that WGSL lets a binding be called. */
const KEYWORDS = new Set("abstract as async await become box break const continue crate do dyn else enum extern final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait try type typeof unsafe unsized use virtual where while yield".split(" "));

const variable = (name: string) => (KEYWORDS.has(name) ? `${name}_` : name);

function rust(shape: Shape): string {
  const { job, shown, bindings } = shape;
  const literal = (value: number, integer: boolean, type: string) => (integer ? `${value}_${type.startsWith("i") || /<i32>|i$/.test(type) ? "i32" : "u32"}` : `${Number.isInteger(value) ? `${value}.0` : value}_f32`);
  const made = storage(shape).map(({ name, scalar, type }) => {
    const fill = job.fills[name] as Fill;
    const length = lengthOf(fill, scalar, wordsOf(type));
    const word = RUST[scalar] ?? "f32";
    const values: Partial<Record<Fill["kind"], string>> = {
      ones: `vec![${word.startsWith("f") ? "1.0" : "1"}_${word}; ${length}]`,
      range: `(0..${length}_u32).map(|i| i as ${word}).collect::<Vec<_>>()`,
      // A hash replaces the page's random numbers.
      random: `(0..${length}_u32).map(|i| (i.wrapping_mul(2_654_435_769) >> ${word.startsWith("f") ? "8" : "31"}) as ${word}${word.startsWith("f") ? " / 16_777_216.0" : ""}).collect::<Vec<_>>()`,
      numbers: fill.kind === "numbers" ? `[${fill.numbers.map((value, at) => `${word.startsWith("f") && Number.isInteger(value) ? `${value}.0` : value}${at === 0 ? `_${word}` : ""}`).join(", ")}]` : "",
    };
    const given = values[fill.kind];
    return `    let ${variable(name)} = ${given ? `engine.tensor(&${given})?` : `engine.zeros_of(cantus::DType::${(RUST[scalar] ?? "f32").toUpperCase()}, &[${length}])?`};`;
  });
  const pictures = images(shape);
  for (const { name, format, width, height, own } of pictures) {
    const note = own ? " // or a picture's bytes: engine.texture_from_bytes" : "";
    made.push(`    let ${variable(name)} = engine.texture(&TextureDescriptor::new_2d(TextureFormat::${variant(format)}, ${width}, ${height}))?;${note}`);
  }
  const shownTexture = pictures.some(({ name }) => name === shown.name);
  const hasTextures = pictures.length > 0;
  const calls = job.steps.flatMap(({ run, times = 1, count = job.count, unit = job.unit }) => {
    const each = run.map((entry) => `        run("${entry}", [${count.join(", ")}], ${unit === "workgroups"})?;`);
    return [`    for _ in 0..${times} {`, ...each, "    }"];
  });
  const tensors = storage(shape).map(({ name }) => `("${name}", &${variable(name)})`).join(", ");
  const sets = uniforms(shape).map(([path, values]) => {
    const member = bindings.flatMap(({ members }) => members).find((known) => known.path === path);
    const text = values.map((value) => literal(value, member?.integer ?? false, member?.type ?? "f32"));
    return `            if has("${path}") { dispatch = dispatch.set("${path}", ${text.length === 1 ? text[0] : `[${text.join(", ")}]`}); }`;
  });
  const overrides = Object.entries(job.overrides).map(([name, value]) => `.with_override("${name}", ${Number.isInteger(value) ? `${value}.0` : value})?`).join("");
  const shownType = RUST[bindings.find(({ name }) => name === shown.name)?.scalar ?? "f32"] ?? "f32";
  return `// cargo add cantus; the kernel's text as src/kernel.wgsl
use cantus::{Engine, Kernel${hasTextures ? ", Sampler, TextureDescriptor, TextureFormat" : ""}};

fn main() -> cantus::Result<()> {
    let engine = Engine::new()?;
${made.join("\n")}
    let tensors: [(&str, &cantus::Tensor); ${storage(shape).length}] = [${tensors}];${hasTextures ? `
    let textures = [${pictures.map(({ name }) => `("${name}", &${variable(name)})`).join(", ")}];` : ""}
    let run = |entry: &str, count: [u64; 3], workgroups: bool| -> cantus::Result<()> {
            let kernel = Kernel::from_wgsl(include_str!("kernel.wgsl"))?.with_entry_point(entry)?${overrides};
            let reflection = kernel.reflection()?;
            // The bindings and uniforms that this entry point has.
            let has = |path: &str| reflection.binding(path.split('.').next().unwrap_or(path)).is_some();
            let mut dispatch = engine.dispatch(&kernel);
            for (name, tensor) in tensors {
                if has(name) { dispatch = dispatch.bind(name, tensor); }
            }
${hasTextures ? TEXTURED : ""}${sets.join("\n")}
            if workgroups { dispatch.workgroups(count).run() } else { dispatch.invocations(count).run() }
    };
${calls.join("\n")}
    let values = ${variable(shown.name ?? "result")}${shownTexture ? ".to_bytes()?" : `.to_vec::<${shownType}>()?`};
    println!("{:?}", &values[..values.len().min(8)]);
    Ok(())
}
`;
}

/** How textures are bound, and samplers as the page has them. */
const TEXTURED = `            for (name, texture) in textures {
                if reflection.textures.iter().any(|known| known.name == name) { dispatch = dispatch.bind(name, texture); }
            }
            for sampler in &reflection.samplers { dispatch = dispatch.bind(&sampler.name, Sampler::linear()); }
`;

/** A format as Rust names it. */
const variant = (format: string) => format.replace(/^([a-z]+)(\d+)([a-z]+)(?:-(srgb))?$/, (_, channels: string, bits: string, kind: string, srgb = "") => [channels, bits, kind, srgb].map((part: string) => part.charAt(0).toUpperCase() + part.slice(1)).join(""));

/** A job file: several kernels over the same buffers, or one. The last frame is written to a file. */
function cli(shape: Shape): string {
  const { job, shown, bindings } = shape;
  const listing: string[] = [];
  const text = job.wgsl.endsWith("\n") ? job.wgsl : `${job.wgsl}\n`;
  const buffers = storage(shape).map(({ name, scalar, type }) => {
    const fill = job.fills[name] as Fill;
    const length = lengthOf(fill, scalar, wordsOf(type));
    const width = shown.width ?? 1;
    const sides = name === shown.name && shown.kind === "picture" && length % width === 0 ? [length / width, width] : [length];
    if (fill.kind === "ones" || fill.kind === "numbers") {
      listing.push(fill.kind === "numbers" ? `printf '%s\\n' ${fill.numbers.join(" ")} > ${name}.csv` : `yes 1 | head -n ${length} > ${name}.csv`);
      return `${name} = "${name}.csv"`;
    }
    const start: Partial<Record<Fill["kind"], string>> = { range: "iota", random: "random:1" };
    const own = fill.kind === "file" || fill.kind === "image" || isMoving(fill) ? "  # or a file of your own" : "";
    return `${name} = "${start[fill.kind] ?? "zeros"}[${sides.join(",")}]"${own}`;
  });
  for (const { name, format, width, height, own } of images(shape)) {
    buffers.push(`${name} = "${format}[${height},${width}]"${own ? "  # or a picture of your own: photo.png" : ""}`);
  }
  const all = uniforms(shape);
  const value = (numbers: readonly number[]) => (numbers.length === 1 ? String(numbers[0]) : `[${numbers.join(", ")}]`);
  const moving = (path: string) => /(^|\.)(time|frame)$/.test(path);
  const sets = [...all.filter(([path]) => !moving(path)).map(([path, numbers]) => `${path} = ${value(numbers)}`), ...Object.entries(job.overrides).map(([name, number]) => `${name} = ${number}`)];
  const advance = all.filter(([path]) => moving(path)).map(([path]) => `"${path}" = [0, ${path.endsWith("frame") ? 1 : 0.02}]`);
  const moves = advance.length > 0 || job.steps.length > 1;
  const uses = (entry: string, name: string) => entryUses(text, entry, name);
  const steps = job.steps.flatMap(({ run, times = 1, once, count = job.count, unit = job.unit }) => {
    const single = run.length === 1;
    const rounds = single ? 1 : times;
    return Array.from({ length: rounds }, () => run).flat().map((entry) => {
      const own = (list: string[]) => list.filter((item) => uses(entry, (item.replaceAll('"', "").split(/[.\s=]/)[0] ?? "")));
      const [set, moved] = [own(sets), own(advance)];
      return [
        "[[step]]",
        'kernel = "kernel.wgsl"',
        `entry = "${entry}"`,
        `${unit} = [${count.join(", ")}]`,
        ...(set.length > 0 ? [`set = { ${set.join(", ")} }`] : []),
        ...(moved.length > 0 ? [`advance = { ${moved.join(", ")} }`] : []),
        ...(single && times > 1 ? [`repeat = ${times}`] : []),
        ...(once ? ["once = true"] : []),
      ].join("\n");
    });
  });
  const known = bindings.find(({ name }) => name === shown.name);
  const picture = shown.kind === "picture" && known?.scalar === "f32";
  const texture = images(shape).find(({ name }) => name === shown.name);
  const output = [`[[output]]`, `buffer = "${shown.name}"`, `file = "${shown.name}.${picture || (texture && /^(rgba|bgra|r)(8|16|32)/.test(texture.format)) ? "png" : "npy"}"`, ...(picture && shown.range ? [`range = [${shown.range.join(", ")}]`] : []), ...(picture ? [`colormap = "${shown.map ?? "viridis"}"`] : [])];
  const toml = [`repeat = ${moves ? 60 : 1}`, "", "[buffers]", ...buffers, "", steps.join("\n\n"), "", ...output].join("\n");
  return `cat > kernel.wgsl <<'WGSL'\n${text}WGSL\n${listing.map((line) => `${line}\n`).join("")}cat > kernel.toml <<'TOML'\n${toml}\nTOML\ncantus job kernel.toml\n`;
}

/** True if an entry point, or a function that it calls, names a variable. */
function entryUses(text: string, entry: string, name: string): boolean {
  const bodies = new Map<string, string>();
  const plain = text.replaceAll(/\/\/[^\n]*/g, "");
  for (const part of plain.split(/(?=\bfn\s+\w+\s*\()/)) {
    const found = /^fn\s+(\w+)/.exec(part)?.[1];
    if (found !== undefined) bodies.set(found, part);
  }
  const seen = new Set<string>();
  const reaches = (from: string): boolean => {
    if (seen.has(from)) return false;
    seen.add(from);
    const body = bodies.get(from) ?? "";
    if (new RegExp(`\\b${name}\\b`).test(body)) return true;
    return [...bodies.keys()].some((other) => new RegExp(`\\b${other}\\s*\\(`).test(body) && reaches(other));
  };
  return reaches(entry);
}
