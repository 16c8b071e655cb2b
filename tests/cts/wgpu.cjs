// A WebGPU device for the node runner of the WebGPU conformance suite: plain wgpu on the CPU device, by the program `conformance` of crates/wgpu/examples.
//
// Objects are numbers there. Each call is a request, but for commands, which go when the encoder is finished. What is checked before a call is content's
// own: states of mappings and ranges. Validation is wgpu's. There is no rendering: tests that draw are skipped, as are formats that the device lacks.
const { LANGUAGE, LIMITS, ask, bytesOf, close, settings, triple } = require('./shared.cjs');

const FEATURES = ['core-features-and-limits', 'shader-f16', 'subgroups', 'timestamp-query', 'float32-filterable', 'bgra8unorm-storage'];
const INFO = () => ({ vendor: 'cantus', architecture: 'wgpu', device: '', description: '', subgroupMinSize: 32, subgroupMaxSize: 32, isFallbackAdapter: false });

// Objects that nobody holds any longer are dropped there too.
let next = 1, dropped = [];
const registry = new FinalizationRegistry(id => dropped.push(id));
function request(what, head = {}, contents = []) {
  const follows = contents.reduce((sum, part) => sum + part.byteLength, 0);
  const answer = ask('"$0"', { do: what, ...head, follows, dropped: dropped.splice(0) }, contents);
  if (answer.error) throw new Error(`${what}: ${answer.error}`);
  for (const message of answer.uncaught) console.error(`no scope caught: ${message}`);
  return answer;
}
const skip = reason => { throw new settings.Skip(reason); };
const failure = (name, message) => Object.assign(new DOMException(message, name));
const plain = object => Object.fromEntries(Object.entries(object ?? {}).filter(([, value]) => value !== undefined));

class Kept {
  constructor(device, what, head, label = '') {
    Object.assign(this, { device, id: next++, label });
    registry.register(this, this.id);
    if (what) request(what, { device: device.id, id: this.id, label, ...head });
  }
}
for (const name of ['GPUSampler', 'GPUBindGroup', 'GPUBindGroupLayout', 'GPUPipelineLayout', 'GPUCommandBuffer', 'GPUTextureView']) globalThis[name] = class extends Kept {};

globalThis.GPUBuffer = class GPUBuffer extends Kept {
  constructor(device, { size, usage, label = '', mappedAtCreation = false }) {
    if (mappedAtCreation && size % 4) throw new RangeError('the size of a buffer that is mapped at creation is a multiple of 4');
    if (mappedAtCreation && size > LIMITS.maxBufferSize) throw new RangeError('there is no memory for the mapping');
    super(device, 'buffer', { size, usage, mapped: mappedAtCreation }, label);
    Object.assign(this, { size, usage, mapState: 'unmapped', ranges: [] });
    if (mappedAtCreation) this.begin(0, size, true);
  }
  begin(offset, size, writes) {
    Object.assign(this, { mapState: 'mapped', mapped: [offset, offset + size], writes, ranges: [] });
    this.device.mapped.add(this);
  }
  async mapAsync(mode, offset = 0, size = Math.max(0, this.size - offset)) {
    if (this.mapState !== 'unmapped') {
      // wgpu tells only the caller.
      this.device.invalid('the buffer is mapped, or about to be');
      throw failure('OperationError', 'the buffer is mapped, or about to be');
    }
    const { wrong } = request('map', { device: this.device.id, buffer: this.id, mode, offset, size });
    this.mapState = 'pending';
    const turn = (this.turn = {});
    await null;
    if (this.turn !== turn) throw failure('AbortError', 'the buffer was unmapped before');
    this.mapState = 'unmapped';
    if (wrong) throw failure('OperationError', wrong);
    this.begin(offset, size, mode === GPUMapMode.WRITE);
  }
  getMappedRange(offset = 0, size = Math.max(0, this.size - offset)) {
    const end = offset + size, wrong = reason => { throw failure('OperationError', reason); };
    if (this.mapState !== 'mapped') wrong('the buffer is not mapped');
    if (offset % 8 || size % 4) wrong('the range is not aligned');
    if (offset < this.mapped[0] || end > this.mapped[1]) wrong('the range is not mapped');
    if (this.ranges.some(known => offset < known.offset + known.size && known.offset < end)) wrong('the range overlaps another one');
    // A buffer that is invalid can be mapped at creation all the same.
    const { data } = size ? request('range', { buffer: this.id, offset, size }) : {};
    const piece = new ArrayBuffer(size);
    if (data) new Uint8Array(piece).set(data);
    this.ranges.push({ offset, size, piece });
    return piece;
  }
  // Takes the ranges from the program; returns those whose bytes are written back.
  detach() {
    const pieces = this.ranges.splice(0).map(range => ({ ...range, piece: structuredClone(range.piece, { transfer: [range.piece] }) }));
    Object.assign(this, { mapState: 'unmapped', turn: null });
    this.device.mapped.delete(this);
    return pieces.filter(({ size }) => size && this.writes);
  }
  unmap() {
    if (this.mapState === 'unmapped') return;
    const pieces = this.detach();
    const places = pieces.map(({ offset, size }) => ({ offset, size }));
    request('unmap', { device: this.device.id, buffer: this.id, pieces: places }, pieces.map(({ piece }) => new Uint8Array(piece)));
  }
  destroy() {
    this.detach();
    request('destroy', { id: this.id });
  }
};

globalThis.GPUTexture = class GPUTexture extends Kept {
  constructor(device, { format, size, usage, label = '', dimension = '2d', mipLevelCount = 1, sampleCount = 1, viewFormats = [] }) {
    if (/stencil|^(bc|etc2|eac|astc)|16[us]norm$/.test(format) && format !== 'depth16unorm') skip(`the device has no ${format}`);
    const [width, height, depthOrArrayLayers] = triple(size, 1);
    super(device, 'texture', { format, size: [width, height, depthOrArrayLayers], usage, dimension, levels: mipLevelCount, samples: sampleCount,
      viewFormats: [...viewFormats] }, label);
    Object.assign(this, { format, usage, dimension, mipLevelCount, sampleCount, width, height, depthOrArrayLayers });
  }
  createView({ label = '', format, dimension, aspect, swizzle, baseMipLevel = 0, mipLevelCount, baseArrayLayer = 0, arrayLayerCount } = {}) {
    if ((swizzle ?? 'rgba') !== 'rgba') skip('the device permutes no channels');
    return new GPUTextureView(this.device, 'view', { texture: this.id, format, dimension, aspect, level: baseMipLevel, levels: mipLevelCount,
      layer: baseArrayLayer, layers: arrayLayerCount }, label);
  }
  destroy() { request('destroy', { id: this.id }); }
};

globalThis.GPUQuerySet = class GPUQuerySet extends Kept {
  constructor(device, { type, count, label = '' }) {
    super(device, 'queries', { type, count }, label);
    Object.assign(this, { type, count });
  }
  destroy() { request('destroy', { id: this.id }); }
};

globalThis.GPUShaderModule = class GPUShaderModule extends Kept {
  async getCompilationInfo() { return { messages: [] }; }
};

globalThis.GPUComputePipeline = class GPUComputePipeline extends Kept {
  getBindGroupLayout(index) { return new GPUBindGroupLayout(this.device, 'group layout of a pipeline', { pipeline: this.id, index }); }
};

const texels = ({ texture, mipLevel, origin, aspect }) => ({ texture: texture.id, mipLevel, origin: triple(origin ?? [], 0), aspect });
const packed = ({ buffer, offset, bytesPerRow, rowsPerImage }) => ({ buffer: buffer?.id, offset, bytesPerRow, rowsPerImage });
const viewOf = resource => (resource instanceof GPUTexture ? resource.createView() : resource);

// Debug groups, of an encoder and of a pass.
class Recorder {
  pushDebugGroup(label) { this.push('push group', { label }); }
  popDebugGroup() { this.push('pop group'); }
  insertDebugMarker(label) { this.push('mark', { label }); }
}

globalThis.GPUComputePassEncoder = class GPUComputePassEncoder extends Recorder {
  constructor(encoder, { label = '', timestampWrites } = {}) {
    super();
    const timestamps = timestampWrites &&
      { set: timestampWrites.querySet.id, first: timestampWrites.beginningOfPassWriteIndex, last: timestampWrites.endOfPassWriteIndex };
    Object.assign(this, { encoder, label, timestamps, steps: [] });
  }
  push(what, head) { this.steps.push({ do: what, ...head }); }
  setPipeline(pipeline) { this.push('pipeline', { id: pipeline.id }); }
  setBindGroup(index, group, offsets = [], start = 0, length = offsets.length - start) {
    this.push('group', { index, id: group?.id, offsets: [...offsets].slice(start, start + length) });
  }
  dispatchWorkgroups(x, y = 1, z = 1) { this.push('dispatch', { workgroups: [x, y, z] }); }
  dispatchWorkgroupsIndirect(buffer, offset) { this.push('indirect', { buffer: buffer.id, offset }); }
  end() { this.encoder.push('compute', { label: this.label, timestamps: this.timestamps, steps: this.steps }); }
};

// Only clears: what draws takes a pipeline.
globalThis.GPURenderPassEncoder = class GPURenderPassEncoder {
  constructor(encoder, head) { Object.assign(this, { encoder, head, label: head.label }); }
  setViewport() {} setScissorRect() {} setBlendConstant() {} setStencilReference() {} pushDebugGroup() {} popDebugGroup() {} insertDebugMarker() {}
  executeBundles() { skip('the device does not draw'); }
  beginOcclusionQuery() { skip('the device does not draw'); }
  end() { this.encoder.push('render', this.head); }
};

globalThis.GPUCommandEncoder = class GPUCommandEncoder extends Recorder {
  constructor(device, { label = '' } = {}) {
    super();
    Object.assign(this, { device, label, commands: [], held: [] });
  }
  push(what, head) { this.commands.push({ do: what, ...head }); }
  copyBufferToBuffer(from, at, to, into, size) {
    if (typeof at === 'object') [at, to, into, size] = [0, at, 0, to];
    this.push('copy', { from: from.id, at, to: to.id, into, size });
    this.held.push(from, to);
  }
  clearBuffer(buffer, offset = 0, size) { this.push('clear', { buffer: buffer.id, offset, size }); }
  copyBufferToTexture(from, to, size) { this.push('buffer to texture', { from: packed(from), to: texels(to), size: triple(size, 1) }); }
  copyTextureToBuffer(from, to, size) { this.push('texture to buffer', { from: texels(from), to: packed(to), size: triple(size, 1) }); }
  copyTextureToTexture(from, to, size) { this.push('texture to texture', { from: texels(from), to: texels(to), size: triple(size, 1) }); }
  resolveQuerySet(set, first, count, into, offset) { this.push('resolve', { set: set.id, first, count, into: into.id, offset }); }
  beginComputePass(descriptor) { return new GPUComputePassEncoder(this, descriptor); }
  beginRenderPass({ label = '', colorAttachments, depthStencilAttachment: depth }) {
    const colours = [...colorAttachments].map(attachment => {
      if (!attachment) return null;
      if (attachment.resolveTarget) skip('the device resolves no samples');
      const { view, loadOp, storeOp, clearValue = [0, 0, 0, 0], depthSlice } = attachment;
      const clear = Symbol.iterator in Object(clearValue) ? [...clearValue] : ['r', 'g', 'b', 'a'].map(name => clearValue[name]);
      return { view: viewOf(view).id, load: loadOp, store: storeOp, clear, slice: depthSlice };
    });
    const of = depth && { view: viewOf(depth.view).id, load: depth.depthLoadOp, store: depth.depthStoreOp, clear: depth.depthClearValue };
    return new GPURenderPassEncoder(this, { label, colours, depth: of });
  }
  finish({ label = this.label } = {}) { return new GPUCommandBuffer(this.device, 'finish', { commands: this.commands }, label); }
};

globalThis.GPUQueue = class GPUQueue {
  label = '';
  constructor(device) { this.device = device; }
  submit(buffers) { request('submit', { device: this.device.id, commands: [...buffers].map(({ id }) => id) }); }
  async onSubmittedWorkDone() { request('done', { device: this.device.id }); }
  writeBuffer(buffer, offset, data, from = 0, size) {
    const width = ArrayBuffer.isView(data) ? data.BYTES_PER_ELEMENT ?? 1 : 1, bytes = bytesOf(data);
    const part = bytes.subarray(from * width, size === undefined ? undefined : (from + size) * width);
    if (part.length % 4 || from * width > bytes.length) throw failure('OperationError', 'the range is not within the data, or no multiple of 4 bytes');
    request('write buffer', { device: this.device.id, buffer: buffer.id, offset }, [part]);
  }
  writeTexture(to, data, layout, size) {
    request('write texture', { device: this.device.id, to: texels(to), layout: packed(layout), size: triple(size, 1) }, [bytesOf(data)]);
  }
  copyExternalImageToTexture() { skip('there are no images'); }
};

globalThis.GPUDevice = class GPUDevice extends EventTarget {
  limits = LIMITS; adapterInfo = INFO(); id = next++; mapped = new Set(); scopes = [];
  lost = new Promise(resolve => { this.lose = resolve; });
  constructor(features, label) {
    super();
    Object.assign(this, { features, label });
    request('device', { id: this.id });
    this.queue = new GPUQueue(this);
  }
  pushErrorScope(filter) { this.scopes.push({ filter }), request('push', { device: this.id, filter }); }
  // An error of validation that wgpu does not know.
  invalid(message) { Object.assign(this.scopes.findLast(scope => scope.filter === 'validation') ?? {}, { kind: 'validation', message }); }
  async popErrorScope() {
    if (!this.scopes.length) throw failure('OperationError', 'no scope is open');
    const { kind, message } = { ...this.scopes.pop(), ...request('pop', { device: this.id }) };
    const Kind = { 'validation': GPUValidationError, 'out-of-memory': GPUOutOfMemoryError, 'internal': GPUInternalError }[kind];
    return Kind ? new Kind(message) : null;
  }
  createBuffer(descriptor) { return new GPUBuffer(this, descriptor); }
  createTexture(descriptor) { return new GPUTexture(this, descriptor); }
  importExternalTexture() { skip('there are no images'); }
  createSampler({ label = '', ...descriptor } = {}) { return new GPUSampler(this, 'sampler', plain(descriptor), label); }
  createShaderModule({ code, label = '' }) { return new GPUShaderModule(this, 'module', { code }, label); }
  createComputePipeline({ label = '', layout, compute: { module, entryPoint, constants } }) {
    const head = { layout: layout === 'auto' ? undefined : layout.id, module: module.id, entry: entryPoint, constants };
    return new GPUComputePipeline(this, 'pipeline', head, label);
  }
  async createComputePipelineAsync(descriptor) {
    for (const filter of ['internal', 'validation']) this.pushErrorScope(filter);
    const pipeline = this.createComputePipeline(descriptor);
    const errors = await Promise.all([this.popErrorScope(), this.popErrorScope()]), error = errors.find(Boolean);
    if (error) throw new GPUPipelineError(error.message, { reason: error instanceof GPUInternalError ? 'internal' : 'validation' });
    return pipeline;
  }
  createRenderPipeline() { skip('the device does not draw'); }
  async createRenderPipelineAsync() { skip('the device does not draw'); }
  createRenderBundleEncoder() { skip('the device does not draw'); }
  createBindGroupLayout({ label = '', entries }) {
    const all = [...entries].map(({ externalTexture, ...entry }) => (externalTexture ? skip('there are no images') : entry));
    return new GPUBindGroupLayout(this, 'group layout', { entries: all }, label);
  }
  createPipelineLayout({ label = '', bindGroupLayouts }) {
    return new GPUPipelineLayout(this, 'layout', { groups: [...bindGroupLayouts].map(layout => layout?.id ?? null) }, label);
  }
  createBindGroup({ label = '', layout, entries }) {
    const all = [...entries].map(({ binding, resource }) => {
      if (resource instanceof GPUSampler) return { binding, sampler: resource.id };
      if (resource instanceof GPUTexture || resource instanceof GPUTextureView) return { binding, view: viewOf(resource).id };
      const { buffer, offset = 0, size } = resource.buffer ? resource : { buffer: resource };
      return { binding, buffer: buffer.id, offset, size };
    });
    return new GPUBindGroup(this, 'group', { layout: layout.id, entries: all }, label);
  }
  createCommandEncoder(descriptor) { return new GPUCommandEncoder(this, descriptor); }
  createQuerySet(descriptor) { return new GPUQuerySet(this, descriptor); }
  destroy() {
    for (const buffer of [...this.mapped]) buffer.detach();
    request('destroy device', { device: this.id });
    this.lose({ reason: 'destroyed', message: '' });
  }
};

module.exports = {
  close,
  create: () => ({
    wgslLanguageFeatures: new Set(LANGUAGE), getPreferredCanvasFormat: () => 'rgba8unorm',
    requestAdapter: async () => ({
      features: new Set(FEATURES), limits: LIMITS, info: INFO(), isFallbackAdapter: false,
      requestDevice: async descriptor => new GPUDevice(new Set([...descriptor?.requiredFeatures ?? [], 'core-features-and-limits']), descriptor?.label ?? ''),
    }),
  }),
};
