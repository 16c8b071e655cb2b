// What both devices for the suite share: WebGPU's constants, and a process that answers requests.
const { spawn, spawnSync } = require('child_process');
const fs = require('fs'), os = require('os'), path = require('path');

const LANGUAGE = ['packed_4x8_integer_dot_product', 'pointer_composite_access', 'readonly_and_readwrite_storage_textures', 'unrestricted_pointer_parameters'];
// WebGPU's defaults.
const LIMITS = {
  maxTextureDimension1D: 8192, maxTextureDimension2D: 8192, maxTextureDimension3D: 2048, maxTextureArrayLayers: 256, maxBindGroups: 4,
  maxBindGroupsPlusVertexBuffers: 24, maxBindingsPerBindGroup: 1000, maxDynamicUniformBuffersPerPipelineLayout: 8,
  maxDynamicStorageBuffersPerPipelineLayout: 4, maxSampledTexturesPerShaderStage: 16, maxSamplersPerShaderStage: 16, maxStorageBuffersPerShaderStage: 8,
  maxStorageTexturesPerShaderStage: 4, maxUniformBuffersPerShaderStage: 12, maxUniformBufferBindingSize: 65536, maxStorageBufferBindingSize: 134217728,
  minUniformBufferOffsetAlignment: 256, minStorageBufferOffsetAlignment: 256, maxVertexBuffers: 8, maxBufferSize: 268435456, maxVertexAttributes: 16,
  maxVertexBufferArrayStride: 2048, maxInterStageShaderVariables: 16, maxColorAttachments: 8, maxColorAttachmentBytesPerSample: 32,
  maxComputeWorkgroupStorageSize: 16384, maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupSizeX: 256, maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupSizeZ: 64, maxComputeWorkgroupsPerDimension: 65535, maxStorageBuffersInFragmentStage: 8, maxStorageTexturesInFragmentStage: 4,
  maxStorageBuffersInVertexStage: 8, maxStorageTexturesInVertexStage: 4,
};
Object.assign(globalThis, {
  GPUBufferUsage: { MAP_READ: 1, MAP_WRITE: 2, COPY_SRC: 4, COPY_DST: 8, INDEX: 16, VERTEX: 32, UNIFORM: 64, STORAGE: 128, INDIRECT: 256, QUERY_RESOLVE: 512 },
  GPUMapMode: { READ: 1, WRITE: 2 }, GPUShaderStage: { VERTEX: 1, FRAGMENT: 2, COMPUTE: 4 }, GPUColorWrite: { ALL: 15 },
  GPUTextureUsage: { COPY_SRC: 1, COPY_DST: 2, TEXTURE_BINDING: 4, STORAGE_BINDING: 8, RENDER_ATTACHMENT: 16, TRANSIENT_ATTACHMENT: 32 },
  GPUError: class GPUError { constructor(message) { this.message = message; } },
  GPUPipelineError: class GPUPipelineError extends Error { constructor(message, options) { super(message); this.reason = options?.reason; } },
});
for (const name of ['GPUValidationError', 'GPUInternalError', 'GPUOutOfMemoryError']) globalThis[name] = class extends GPUError {};
for (const name of ['GPUAdapter', 'GPUQuerySet', 'GPUSampler', 'GPUBindGroup', 'GPUShaderModule', 'GPUComputePipeline', 'GPURenderPipeline',
  'GPURenderBundle', 'GPUCommandBuffer']) globalThis[name] = class {};

// What this run is: the program, the device, and the suite's error that skips a case. The runner sets it.
const settings = { binary: 'cantus', backend: 'cpu', Skip: Error };
const stats = { dispatches: 0, waited: 0, within: 0, sent: 0, received: 0 };

// A process that answers requests, started by a line of the shell: $0 is the program and $1 the backend. Requests and answers go through named pipes, because
// node's own are not to be read synchronously.
class Server {
  constructor(line) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cts-'));
    const [to, from] = ['to', 'from'].map(name => path.join(this.folder, name));
    spawnSync('mkfifo', [to, from]);
    this.child = spawn('sh', ['-c', `exec ${line} < "$2" > "$3" 2> "$4"`, settings.binary, settings.backend, to, from, path.join(this.folder, 'errors')], { stdio: 'ignore' });
    this.to = fs.openSync(to, 'w');
    this.from = fs.openSync(from, 'r');
    this.rest = Buffer.alloc(0);
  }
  more() {
    const chunk = Buffer.allocUnsafe(1 << 16), n = fs.readSync(this.from, chunk);
    if (n === 0) throw new Error('the answer ends');
    this.rest = Buffer.concat([this.rest, chunk.subarray(0, n)]);
  }
  take(n) {
    const taken = Buffer.allocUnsafe(n);
    let have = this.rest.copy(taken);
    this.rest = this.rest.subarray(have);
    while (have < n) {
      const count = fs.readSync(this.from, taken, have, n - have);
      if (count === 0) throw new Error('the answer ends');
      have += count;
    }
    return taken;
  }
  // Sends a request with the bytes of its bindings; returns the answer with the bytes that follow it.
  ask(head, contents) {
    const started = performance.now();
    try {
      const whole = Buffer.concat([Buffer.from(JSON.stringify(head) + '\n'), ...contents]);
      for (let at = 0; at < whole.length;) at += fs.writeSync(this.to, whole, at);
      let end;
      while ((end = this.rest.indexOf(10)) < 0) this.more();
      const answer = JSON.parse(this.take(end + 1).toString());
      for (const place of answer.written ?? []) place.data = this.take(place.bytes);
      if (answer.follows) answer.data = this.take(answer.follows);
      stats.dispatches++, stats.within += answer.ms ?? 0, stats.sent += whole.length;
      return answer;
    } catch (error) {
      const errors = fs.readFileSync(path.join(this.folder, 'errors'), 'utf8').slice(-2000);
      this.close();
      throw new Error(`ENDED ${error.message}: ${errors}`);
    } finally { stats.waited += performance.now() - started; }
  }
  close() {
    this.closed = true;
    for (const file of [this.to, this.from]) fs.closeSync(file);
    fs.rmSync(this.folder, { recursive: true });
  }
}
let server = null;
// Asks the process, which is started where there is none.
function ask(line, head, contents = []) {
  if (!server || server.closed) server = new Server(line);
  return server.ask(head, contents);
}
const close = () => { if (server && !server.closed) server.close(); };

const bytesOf = data => (ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data));
const triple = (value, rest) => (Symbol.iterator in Object(value) ? [...value, rest, rest, rest].slice(0, 3) :
  [value?.width ?? value?.x ?? rest, value?.height ?? value?.y ?? rest, value?.depthOrArrayLayers ?? value?.z ?? rest]);

module.exports = { LANGUAGE, LIMITS, ask, bytesOf, close, settings, stats, triple };
