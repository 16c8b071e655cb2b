// Compares what Cantus takes for valid WGSL with the WebGPU conformance suite's shader/validation: see README.md.
//
// node validate.cjs CANTUS SUITE FILE... [--every N[:K]] [--log FILE]
const path = require('path'), fs = require('fs'), os = require('os'), { spawnSync } = require('child_process');
const device = require('./device.cjs');

const options = { '--every': '1', '--log': null };
const given = process.argv.slice(2);
for (const name of Object.keys(options)) {
  const at = given.indexOf(name);
  if (at >= 0) options[name] = given.splice(at, 2)[1];
}
const [binary, suite, ...named] = given;
if (!named.length) {
  console.error('usage: node validate.cjs CANTUS SUITE FILE... [--every N[:K]] [--log FILE]\n' +
    'FILE is one of shader/validation or a folder of it, as shader/validation/parse');
  process.exit(2);
}
const load = file => require(path.resolve(suite, 'out-node', file));
const { Logger } = load('common/internal/logging/logger.js'), { TestQuerySingleCase } = load('common/internal/query/query.js');
const { setGPUProvider } = load('common/util/navigator_gpu.js'), { SkipTestCase } = load('common/framework/fixture.js');
Object.assign(device.settings, { binary, backend: 'cpu', Skip: SkipTestCase });

// What the program says of a text: null if it is valid, else its error.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cantus-validate-')), file = path.join(folder, 'k.wgsl'), known = new Map();
let asked = 0, last = '';
function fault(code, entry, constants = {}) {
  const key = JSON.stringify([code, entry, constants]);
  if (!known.has(key)) {
    fs.writeFileSync(file, code);
    const sets = Object.entries(constants).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const { status, stderr, signal } = spawnSync(binary, ['compile', file, '--types', 'ts', '--entry', entry, ...sets, '-o', path.join(folder, 'out')],
      { encoding: 'utf8', timeout: 60000 });
    asked++;
    // A program that ends by a signal or a panic has judged nothing.
    if (signal || status === 101) throw new Error(`ENDED by ${signal ?? 'a panic'}: ${stderr.slice(0, 300)}`);
    if (status !== 0) last = stderr.trim();
    known.clear();
    known.set(key, status === 0 ? null : stderr.trim());
  }
  return known.get(key);
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
globalThis.GPUError ??= class GPUError {};
globalThis.GPUValidationError ??= class GPUValidationError extends GPUError {};
globalThis.GPUPipelineError ??= class GPUPipelineError extends Error {};
setGPUProvider(() => {
  const gpu = device.create();
  return { ...gpu, requestAdapter: async () => {
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
      for (const run of test.iterate(null)) {
        if (number++ % every !== first) continue;
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
  fs.rmSync(folder, { recursive: true });
  device.close();
  process.exit(bad ? 1 : 0);
})();
