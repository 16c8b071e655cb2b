// Runs tests of the WebGPU conformance suite on a device of Cantus: see README.md.
//
// node run.cjs CANTUS SUITE BACKEND FILE[:TEST]... [--stages a,b,...] [--every N[:K]] [--log FILE] [--device wgpu]
const path = require('path'), fs = require('fs');
const { settings, stats } = require('./shared.cjs');

const options = { '--stages': 'c,compute', '--every': '1', '--log': null, '--device': 'device' };
const given = process.argv.slice(2);
for (const name of Object.keys(options)) {
  const at = given.indexOf(name);
  if (at >= 0) options[name] = given.splice(at, 2)[1];
}
const [binary, suite, backend, ...files] = given;
if (!files.length) {
  console.error('usage: node run.cjs CANTUS SUITE BACKEND FILE[:TEST]... [--stages a,b,...] [--every N[:K]] [--log FILE] [--device wgpu]');
  process.exit(2);
}
const device = require(`./${path.basename(options['--device'])}.cjs`);
const load = file => require(path.resolve(suite, 'out-node', file));
const { Logger } = load('common/internal/logging/logger.js'), { TestQuerySingleCase } = load('common/internal/query/query.js');
const { setGPUProvider } = load('common/util/navigator_gpu.js'), { dataCache } = load('common/framework/data_cache.js');
const { SkipTestCase } = load('common/framework/fixture.js');

Object.assign(settings, { binary, backend, Skip: SkipTestCase });
setGPUProvider(() => device.create());
dataCache.setStore({ load: file => fs.promises.readFile(path.join(suite, 'src/resources/cache', file)) });

// The cases of a specification file, without those of other stages, and of them every Nth from the Kth.
function* cases(file, only) {
  const stages = options['--stages'].split(','), [every, first = 0] = options['--every'].split(':').map(Number);
  let number = 0;
  for (const test of load(`webgpu/${file}.spec.js`).g.iterate()) {
    if (only && test.testPath.join(',') !== only) continue;
    for (const run of test.iterate(null)) {
      const { stage } = run.id.params;
      if (typeof stage === 'string' && !stages.includes(stage) || number++ % every !== first) continue;
      yield [run, new TestQuerySingleCase('webgpu', file.split('/'), run.id.test, run.id.params)];
    }
  }
}

// What became of a case: wrong if anything is that is not a refusal.
function outcome({ status, logs = [] }) {
  if (status !== 'fail') return [status === 'warn' ? 'pass' : status];
  const failures = logs.filter(log => !/(INFO|SKIP|WARN|DEBUG)$/.test(log.name));
  const reasons = failures.map(log => /^REFUSED (.*)/.exec(log.message)?.[1]);
  return reasons.length && reasons.every(Boolean) ? ['refused', reasons[0]] : ['wrong'];
}

(async () => {
  const log = options['--log'] ? fs.openSync(options['--log'], 'w') : null;
  let bad = 0;
  for (const file of files) {
    const started = performance.now(), counts = { pass: 0, wrong: 0, refused: 0, skip: 0 }, reasons = new Map(), before = { ...stats };
    for (const [run, query] of cases(...file.split(':'))) {
      const name = query.toString(), [recorder, result] = new Logger().record(name);
      await run.run(recorder, query, []);
      const [what, reason] = outcome(result);
      counts[what]++;
      if (reason) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      if (log) {
        fs.writeSync(log, `[${what}] ${name} ${result.timems.toFixed(0)} ms\n`);
        if (what !== 'pass') for (const entry of result.logs ?? []) if (!/INFO$/.test(entry.name)) fs.writeSync(log, `${entry.toJSON()}\n`);
      }
    }
    const { dispatches, waited, within } = Object.fromEntries(Object.entries(stats).map(([name, value]) => [name, value - before[name]]));
    const seconds = (performance.now() - started) / 1000;
    console.log(`${backend} ${file}: ${counts.pass} passed, ${counts.wrong} wrong, ${counts.refused} refused, ${counts.skip} skipped, ` +
      `${seconds.toFixed(0)} s (${dispatches} dispatches, waited ${(waited / 1000).toFixed(0)} s, Cantus ${(within / 1000).toFixed(0)} s)`);
    for (const [reason, count] of reasons) console.log(`    ${count} refused: ${reason}`);
    bad += counts.wrong;
  }
  device.close();
  process.exit(bad ? 1 : 0);
})();
