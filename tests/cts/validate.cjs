// Compares what Cantus takes for valid WGSL with the WebGPU conformance suite's shader/validation: see README.md.
//
// node validate.cjs JUDGE SUITE FILE... [--every N[:K]] [--each N] [--log FILE]
const path = require('path'), fs = require('fs');
const device = require('./device.cjs'), { ask } = require('./shared.cjs');

const options = { '--every': '1', '--each': null, '--log': null };
const given = process.argv.slice(2);
for (const name of Object.keys(options)) {
  const at = given.indexOf(name);
  if (at >= 0) options[name] = given.splice(at, 2)[1];
}
const [binary, suite, ...named] = given;
if (!named.length) {
  console.error('usage: node validate.cjs JUDGE SUITE FILE... [--every N[:K]] [--each N] [--log FILE]\n' +
    'FILE is one of shader/validation or a folder of it, as shader/validation/parse\n' +
    '--every takes one case in N of a file, --each takes N cases of each test, evenly');
  process.exit(2);
}
const load = file => require(path.resolve(suite, 'out-node', file));
const { Logger } = load('common/internal/logging/logger.js'), { TestQuerySingleCase } = load('common/internal/query/query.js');
const { setGPUProvider } = load('common/util/navigator_gpu.js'), { SkipTestCase } = load('common/framework/fixture.js');
Object.assign(device.settings, { binary, backend: 'cpu', Skip: SkipTestCase });

// What Cantus says of a text: null if it is valid, else its error. The same text is asked for more than once in a row.
let asked = 0, last = '', known = {};
function fault(code, entry, constants = {}) {
  const key = JSON.stringify([code, entry, constants]);
  if (known.key !== key) {
    asked++;
    known = { key, error: ask('"$0"', { code, entry, constants }).error };
    last = known.error ?? last;
  }
  return known.error;
}

// A device whose modules and pipelines are as valid as the program says. A module needs an entry point there: it gets one of its own.
class Validator extends GPUDevice {
  pushErrorScope() { this.scopes.push(null); }
  error(message) {
    const top = this.scopes.length - 1;
    if (message && top >= 0) this.scopes[top] ??= Object.assign(new GPUValidationError(message), { message });
  }
  createShaderModule({ code }) {
    const message = fault(`${code}\n@compute @workgroup_size(1) fn entry_of_the_device() {}\n`, 'entry_of_the_device');
    this.error(message);
    const messages = message === null ? [] : [{ type: 'error', message, lineNum: 0, linePos: 0 }];
    return { code, getCompilationInfo: async () => ({ messages }) };
  }
  createComputePipeline({ compute: { module, entryPoint = 'main', constants } }) {
    this.error(fault(module.code, entryPoint, constants));
    return { getBindGroupLayout: index => ({ index }) };
  }
}
// What the front end takes of the language's extensions (`front/features.rs` of the kernel's crate).
const LANGUAGE = ['readonly_and_readwrite_storage_textures', 'packed_4x8_integer_dot_product', 'unrestricted_pointer_parameters', 'pointer_composite_access',
  'uniform_buffer_standard_layout', 'subgroup_id', 'texture_and_sampler_let', 'subgroup_uniformity', 'texture_formats_tier1', 'linear_indexing',
  'immediate_address_space', 'swizzle_assignment'];
globalThis.GPUError ??= class GPUError {};
globalThis.GPUValidationError ??= class GPUValidationError extends GPUError {};
globalThis.GPUPipelineError ??= class GPUPipelineError extends Error {};
setGPUProvider(() => {
  const gpu = device.create();
  return { ...gpu, wgslLanguageFeatures: new Set(LANGUAGE), requestAdapter: async () => {
    const adapter = await gpu.requestAdapter();
    return { ...adapter, requestDevice: async descriptor => new Validator(new Set(descriptor?.requiredFeatures ?? [])) };
  } };
});

function specs(name) {
  const at = path.resolve(suite, 'out-node/webgpu', name);
  if (fs.existsSync(`${at}.spec.js`)) return [name];
  return fs.readdirSync(at, { recursive: true }).filter(file => file.endsWith('.spec.js')).sort().map(file => `${name}/${file.slice(0, -8)}`);
}

// What became of a case: whether the program took what is invalid, or refused what is valid.
function outcome({ status, logs = [] }) {
  if (status !== 'fail') return status === 'warn' ? 'pass' : status;
  const failed = logs.filter(log => !/(INFO|SKIP|WARN|DEBUG)$/.test(log.name)).map(log => log.message ?? '');
  if (failed.some(message => /ENDED/.test(message))) return 'ended';
  // Warnings are the log's here, not the module's.
  if (failed.length && failed.every(message => /Missing expected 'warning'/.test(message))) return 'pass';
  // An error that a case does not expect ends it when its device is given back.
  return failed.some(message => /Missing expected|Expected validation error/.test(message)) ? 'accepted' : 'refused';
}

(async () => {
  const log = options['--log'] ? fs.openSync(options['--log'], 'w') : null, [every, first = 0] = options['--every'].split(':').map(Number);
  const groups = new Map();
  for (const spec of named.flatMap(specs)) {
    // A folder of shader/validation.
    const group = spec.split('/').slice(0, 3).join('/');
    if (!groups.has(group)) groups.set(group, { pass: 0, accepted: 0, refused: 0, ended: 0, skip: 0 });
    const counts = groups.get(group);
    let number = 0;
    for (const test of load(`webgpu/${spec}.spec.js`).g.iterate()) {
      const runs = [...test.iterate(null)], each = Number(options['--each'] ?? runs.length);
      for (const [at, run] of runs.entries()) {
        // One in `runs.length / each`.
        if (number++ % every !== first || Math.floor((at * each) / runs.length) === Math.floor(((at - 1) * each) / runs.length)) continue;
        const query = new TestQuerySingleCase('webgpu', spec.split('/'), run.id.test, run.id.params), name = query.toString();
        const [recorder, result] = new Logger().record(name);
        await run.run(recorder, query, []);
        const what = outcome(result);
        counts[what]++;
        if (log && what !== 'pass' && what !== 'skip') {
          fs.writeSync(log, `[${what}] ${name}\n${what === 'refused' ? `${last}\n` : ''}`);
          for (const entry of result.logs ?? []) if (!/INFO$|DEBUG$/.test(entry.name)) fs.writeSync(log, `${entry.toJSON()}\n`);
        }
      }
    }
  }
  let bad = 0;
  console.log('| folder | cases | invalid, accepted | valid, refused | ended | skipped |\n| --- | --- | --- | --- | --- | --- |');
  for (const [group, { pass, accepted, refused, ended, skip }] of groups) {
    const cases = pass + accepted + refused + ended, part = count => `${count} (${(100 * count / Math.max(1, cases)).toFixed(2)} %)`;
    console.log(`| ${group} | ${cases} | ${part(accepted)} | ${part(refused)} | ${ended} | ${skip} |`);
    bad += accepted + refused + ended;
  }
  console.error(`${asked} texts were judged`);
  device.close();
  process.exit(bad ? 1 : 0);
})();
