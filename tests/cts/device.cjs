// A WebGPU device for the node runner of the WebGPU conformance suite, whose only operation is a dispatch by `cantus run --serve`.
//
// Buffers and textures are arrays of bytes here, and copies between them are done here. A dispatch is a request to one process of Cantus, which stays open.
// There is no rendering: the helper by which the suite draws texels into textures (depths, several samples) is a copy of these texels, and other pipelines
// that draw are skipped. What Cantus declines throws an error that begins with REFUSED; a process that ends throws one that begins with ENDED.
//
// WebGPU lets an implementation choose the bits of some formats. Here depths of 24 bits are depth32float, and stencils are r8uint, in a plane of their own.
const { LANGUAGE, LIMITS, ask, bytesOf, close, settings, triple } = require('./shared.cjs');

const FEATURES = ['shader-f16', 'subgroups', 'core-features-and-limits', 'float32-filterable', 'bgra8unorm-storage', 'texture-formats-tier1',
  'texture-formats-tier2', 'depth32float-stencil8', 'rg11b10ufloat-renderable'];

const refuse = reason => { throw new Error(`REFUSED ${reason}`); };

class GPUBuffer {
  constructor({ size, usage, label = '', mappedAtCreation }) {
    Object.assign(this, { size, usage, label, mapState: mappedAtCreation ? 'mapped' : 'unmapped', data: new Uint8Array(size), pieces: [] });
  }
  getMappedRange(offset = 0, size = this.size - offset) {
    if (offset === 0 && size === this.size) return this.data.buffer;
    const piece = this.data.buffer.slice(offset, offset + size);
    this.pieces.push([offset, piece]);
    return piece;
  }
  unmap() {
    for (const [offset, piece] of this.pieces.splice(0)) this.data.set(new Uint8Array(piece), offset);
    this.data = this.data.slice();
    this.mapState = 'unmapped';
  }
  async mapAsync() { this.mapState = 'mapped'; }
  destroy() {}
}

// A format's planes: [the aspect, the format in Cantus, the bytes of a texel].
function planes(format) {
  const known = {
    'stencil8': ['s'], 'depth16unorm': ['depth16unorm'], 'depth24plus': ['depth32float'], 'depth32float': ['depth32float'],
    'depth24plus-stencil8': ['depth32float', 's'], 'depth32float-stencil8': ['depth32float', 's'],
  }[format];
  if (known) return known.map(plane => (plane === 's' ? ['stencil-only', 'r8uint', 1] : ['depth-only', plane, plane === 'depth16unorm' ? 2 : 4]));
  if (/^(rgb9e5|rgb10a2|rg11b10)/.test(format)) return [['all', format, 4]];
  const [, channels, bits] = /^(rgba|bgra|rg|r)(8|16|32)(unorm|snorm|uint|sint|float)(-srgb)?$/.exec(format) ?? refuse(`format ${format}`);
  return [['all', format, channels.length * bits / 8]];
}

class GPUTexture {
  constructor({ format, size, usage, label = '', dimension = '2d', mipLevelCount = 1, sampleCount = 1 }) {
    const [width, height, depthOrArrayLayers] = triple(size, 1);
    Object.assign(this, { format, usage, label, dimension, mipLevelCount, sampleCount, width, height, depthOrArrayLayers });
    this.planes = planes(format).map(([aspect, format, bytes]) => {
      const levels = Array.from({ length: mipLevelCount }, (_, level) => new Uint8Array(this.size(level).reduce((a, b) => a * b, bytes * sampleCount)));
      return { aspect, format, bytes: bytes * sampleCount, levels };
    });
  }
  size(level) {
    const shrunk = side => Math.max(1, side >> level), depth = this.depthOrArrayLayers;
    return [shrunk(this.width), shrunk(this.height), this.dimension === '3d' ? shrunk(depth) : depth];
  }
  plane(aspect = 'all') { return this.planes.find(plane => plane.aspect === aspect) ?? this.planes[0]; }
  // The rows of a part of a level: calls f with each row's bytes in the texture, its number y, and its slice or layer z.
  rows({ mipLevel = 0, origin, aspect }, size, f) {
    const { levels, bytes } = this.plane(aspect), [x0, y0, z0] = triple(origin ?? [], 0), [width, height, depth] = triple(size, 1);
    const [across, down] = this.size(mipLevel);
    for (let z = 0; z < depth; z++) {
      for (let y = 0; y < height; y++) {
        const at = (((z0 + z) * down + y0 + y) * across + x0) * bytes;
        f(levels[mipLevel].subarray(at, at + width * bytes), y, z);
      }
    }
  }
  createView(descriptor = {}) { return new GPUTextureView(this, descriptor); }
  destroy() {}
}

class GPUTextureView {
  constructor(texture, { format, dimension, aspect, swizzle, baseMipLevel = 0, mipLevelCount, baseArrayLayer = 0, arrayLayerCount }) {
    if ((swizzle ?? 'rgba') !== 'rgba') refuse('a view that permutes channels');
    dimension ??= texture.dimension === '2d' && texture.depthOrArrayLayers > 1 ? '2d-array' : texture.dimension;
    const rest = { '2d': 1, 'cube': 6, '2d-array': texture.depthOrArrayLayers - baseArrayLayer, 'cube-array': texture.depthOrArrayLayers - baseArrayLayer };
    this.plane = texture.plane(aspect);
    this.format = texture.planes[0].aspect === 'all' && format ? format : this.plane.format;
    Object.assign(this, { texture, baseMipLevel, baseArrayLayer, layers: arrayLayerCount ?? rest[dimension] ?? 1 });
    this.levels = mipLevelCount ?? texture.mipLevelCount - baseMipLevel;
  }
  // The bytes of its levels, one array for each: its layers follow each other within a level.
  contents() {
    return this.plane.levels.slice(this.baseMipLevel, this.baseMipLevel + this.levels).map((level, i) => {
      if (this.texture.dimension === '3d') return level;
      const [width, height] = this.texture.size(this.baseMipLevel + i), layer = width * height * this.plane.bytes;
      return level.subarray(this.baseArrayLayer * layer, (this.baseArrayLayer + this.layers) * layer);
    });
  }
  // Its description in a request.
  description() {
    const { dimension, sampleCount: samples } = this.texture, [x, y, z] = this.texture.size(this.baseMipLevel);
    return { dimension, format: this.format, size: [x, y, dimension === '3d' ? z : this.layers], levels: this.levels, samples };
  }
}

// What the suite needs of a page to make frames: a canvas to which pixels are copied, and a frame of it. Both are premultiplied where a device takes them.
globalThis.ImageData = class {
  constructor(width, height) { Object.assign(this, { width, height, data: new Uint8ClampedArray(width * height * 4) }); }
};
globalThis.OffscreenCanvas = class {
  constructor(width, height) { this.image = new ImageData(width, height); }
  getContext() { return { putImageData: image => this.image.data.set(image.data) }; }
};
globalThis.VideoFrame = class {
  constructor({ image }) { this.image = image; }
  close() {}
};
const premultiplied = ({ data }) => data.map((value, i) => (i % 4 === 3 ? value : value * (data[i | 3] / 255)));
class GPUExternalTexture {
  constructor({ source: { image } }) {
    this.texture = new GPUTexture({ format: 'rgba8unorm', size: [image.width, image.height] });
    this.texture.planes[0].levels[0].set(premultiplied(image));
  }
}

function sampler({ addressModeU: u = 'clamp-to-edge', addressModeV: v = 'clamp-to-edge', addressModeW: w = 'clamp-to-edge', magFilter = 'nearest',
  minFilter = 'nearest', mipmapFilter = 'nearest', lodMinClamp = 0, lodMaxClamp = 32, compare = null, maxAnisotropy = 1 } = {}) {
  if (maxAnisotropy > 1) refuse('an anisotropic sampler');
  return { sampler: { address_mode: [u, v, w], mag_filter: magFilter, min_filter: minFilter, mipmap_filter: mipmapFilter, lod_min_clamp: lodMinClamp,
    lod_max_clamp: lodMaxClamp, compare } };
}

// A dispatch by Cantus; what it wrote goes back to the buffers and textures.
function dispatch({ module, entryPoint, constants = {} }, groups, workgroups) {
  const entry = entryPoint ?? module.entries[0], bindings = [], contents = [], targets = new Map();
  groups.forEach((bound, group) => bound?.entries.forEach(({ binding, resource }) => {
    let parts, described = {};
    if (resource instanceof GPUExternalTexture) resource = resource.texture;
    if (resource instanceof GPUTexture) resource = resource.createView();
    if (resource instanceof GPUTextureView) [parts, described] = [resource.contents(), { texture: resource.description() }];
    else if (resource.sampler) [parts, described] = [[], resource];
    else {
      const { buffer = resource, offset = 0, size = buffer.size - offset } = resource.buffer ? resource : { buffer: resource };
      parts = [buffer.data.subarray(offset, offset + size)];
    }
    bindings.push({ group, binding, bytes: parts.reduce((sum, part) => sum + part.length, 0), ...described });
    contents.push(...parts);
    targets.set(`${group}.${binding}`, parts);
  }));
  const set = Object.fromEntries(Object.entries(constants).map(([name, value]) => [module.ids[name] ?? name, value]));
  const answer = ask('"$0" run --serve --backend "$1" --no-fallback --timeout 5m', { wgsl: module.code, entry, set, workgroups, bindings }, contents);
  if (answer.error) refuse(answer.error);
  for (const { group, binding, data } of answer.written) targets.get(`${group}.${binding}`)[0].set(data);
}

// The suite's helper that draws texels into a layer of a level: copies them. Its uniforms are (rows, bytes of a row, of a sample, samples, offset).
function drawTexels(attachment, group) {
  const view = attachment.view, find = number => group.entries.find(entry => entry.binding === number).resource;
  const [, bytesPerRow, bytesPerSample, samples, offset] = new Uint32Array(find(0).buffer.data.buffer);
  const source = find(1).plane.levels[0], plane = attachment.depthReadOnly ? view.texture.plane('stencil-only') : view.plane;
  if (bytesPerSample * samples !== plane.bytes) refuse(`drawing texels of ${bytesPerSample * samples} bytes into ones of ${plane.bytes}`);
  const where = { mipLevel: view.baseMipLevel, origin: [0, 0, view.baseArrayLayer], aspect: plane.aspect };
  view.texture.rows(where, view.texture.size(view.baseMipLevel).with(2, 1), (row, y) => {
    const at = offset + y * bytesPerRow;
    row.set(source.subarray(at, at + row.length));
  });
}

// Calls f with each row of a part of a texture, and with where the row is in a buffer.
function linear({ offset = 0, bytesPerRow = 0, rowsPerImage }, where, size, f) {
  const height = rowsPerImage ?? triple(size, 1)[1];
  where.texture.rows(where, size, (row, y, z) => f(row, offset + (z * height + y) * bytesPerRow));
}

class Encoder {
  commands = [];
  push(command) { this.commands.push(command); }
  copyBufferToBuffer(from, at, to, toAt, size) {
    if (typeof at === 'object') [at, to, toAt, size] = [0, at, 0, to];
    this.push(() => to.data.set(from.data.subarray(at, at + (size ?? from.size - at)), toAt));
  }
  clearBuffer(buffer, at = 0, size = buffer.size - at) { this.push(() => buffer.data.fill(0, at, at + size)); }
  copyBufferToTexture(from, to, size) {
    this.push(() => linear(from, to, size, (row, at) => row.set(from.buffer.data.subarray(at, at + row.length))));
  }
  copyTextureToBuffer(from, to, size) { this.push(() => linear(to, from, size, (row, at) => to.buffer.data.set(row, at))); }
  copyTextureToTexture(from, to, size) {
    this.push(() => {
      const rows = [];
      from.texture.rows(from, size, row => rows.push(row.slice()));
      to.texture.rows(to, size, row => row.set(rows.shift()));
    });
  }
  pass(methods) {
    const nothing = () => {}, bound = [];
    return {
      setPipeline(pipeline) { this.pipeline = pipeline; },
      setBindGroup(index, group, offsets = []) {
        const dynamic = (group?.layout?.entries ?? []).filter(entry => entry.buffer?.hasDynamicOffset).map(entry => entry.binding).sort((a, b) => a - b);
        bound[index] = group && { ...group, entries: group.entries.map(entry => {
          const place = dynamic.indexOf(entry.binding), { buffer = entry.resource, offset = 0, size } = entry.resource;
          return place < 0 || !offsets.length ? entry : { ...entry, resource: { buffer, size, offset: offset + offsets[place] } };
        }) };
      },
      end: nothing, pushDebugGroup: nothing, popDebugGroup: nothing, insertDebugMarker: nothing, ...methods(bound),
    };
  }
  beginComputePass() {
    const push = command => this.push(command);
    return this.pass(bound => ({
      dispatchWorkgroups(x, y = 1, z = 1) {
        const { compute } = this.pipeline, groups = [...bound];
        push(() => dispatch(compute, groups, [x, y, z]));
      },
      dispatchWorkgroupsIndirect(buffer, at) {
        const { compute } = this.pipeline, groups = [...bound];
        push(() => dispatch(compute, groups, [...new Uint32Array(buffer.data.buffer, at, 3)]));
      },
    }));
  }
  beginRenderPass({ colorAttachments, depthStencilAttachment }) {
    const attachment = depthStencilAttachment ?? colorAttachments[0];
    return this.pass(bound => ({
      setViewport() {}, setStencilReference() {},
      draw: () => { const group = bound[0]; this.push(() => drawTexels(attachment, group)); },
    }));
  }
  pushDebugGroup() {} popDebugGroup() {} insertDebugMarker() {}
  finish() { return this; }
}

class GPUDevice extends EventTarget {
  scopes = []; limits = LIMITS; adapterInfo = INFO();
  lost = new Promise(resolve => { this.lose = resolve; });
  constructor(features) { super(); this.features = features; }
  queue = {
    label: '', onSubmittedWorkDone: async () => {},
    submit: buffers => buffers.forEach(buffer => buffer.commands.forEach(command => command())),
    writeBuffer(buffer, at, data, from = 0, size) {
      const width = data.BYTES_PER_ELEMENT ?? 1;
      buffer.data.set(bytesOf(data).subarray(from * width, size === undefined ? undefined : (from + size) * width), at);
    },
    writeTexture(to, data, layout, size) {
      const bytes = bytesOf(data);
      linear(layout, to, size, (row, at) => row.set(bytes.subarray(at, at + row.length)));
    },
    copyExternalImageToTexture({ source: { image } }, to, size) {
      const bytes = to.premultipliedAlpha ? premultiplied(image) : image.data;
      linear({ bytesPerRow: image.width * 4 }, to, size, (row, at) => row.set(bytes.subarray(at, at + row.length)));
    },
  };
  pushErrorScope() { this.scopes.push(null); }
  async popErrorScope() {
    if (this.scopes.length) return this.scopes.pop();
    throw Object.assign(new Error('no scope'), { name: 'OperationError' });
  }
  createBuffer(descriptor) { return new GPUBuffer(descriptor); }
  createTexture(descriptor) { return new GPUTexture(descriptor); }
  importExternalTexture(descriptor) { return new GPUExternalTexture(descriptor); }
  createSampler(descriptor) { return sampler(descriptor); }
  createShaderModule({ code }) {
    const plain = code.replace(/\/\/[^\n]*|\/\*[^]*?\*\//g, '');
    const entries = [...plain.matchAll(/@compute\b[^{};]*?\bfn\s+(\w+)/g)].map(found => found[1]);
    const ids = Object.fromEntries([...plain.matchAll(/@id\s*\(\s*(\d+)\s*\)\s*override\s+(\w+)/g)].map(found => found.slice(1)));
    return { code, entries, ids, getCompilationInfo: async () => ({ messages: [] }) };
  }
  createComputePipeline({ compute, layout }) { return { compute, getBindGroupLayout: index => layout?.bindGroupLayouts?.[index] ?? { index } }; }
  async createComputePipelineAsync(descriptor) { return this.createComputePipeline(descriptor); }
  createRenderPipeline({ label }) {
    if (!label?.startsWith('blitCopyFor-')) throw new settings.Skip('the device does not draw');
    return { getBindGroupLayout: index => ({ index }) };
  }
  createBindGroupLayout(descriptor) { return descriptor; }
  createPipelineLayout(descriptor) { return descriptor; }
  createBindGroup(descriptor) { return descriptor; }
  createCommandEncoder() { return new Encoder(); }
  createQuerySet() { throw new settings.Skip('the device has no queries'); }
  destroy() { this.lose({ reason: 'destroyed', message: '' }); }
}
const INFO = () => ({ vendor: 'cantus', architecture: settings.backend, device: '', description: '', subgroupMinSize: 4, subgroupMaxSize: 128,
  isFallbackAdapter: false });
Object.assign(globalThis, { GPUBuffer, GPUTexture, GPUTextureView, GPUExternalTexture, GPUDevice });

module.exports = {
  close, settings,
  create: () => ({
    wgslLanguageFeatures: new Set(LANGUAGE), getPreferredCanvasFormat: () => 'rgba8unorm',
    requestAdapter: async () => ({
      features: new Set(FEATURES), limits: LIMITS, info: INFO(), isFallbackAdapter: false,
      requestDevice: async descriptor => new GPUDevice(new Set(descriptor?.requiredFeatures ?? [])),
    }),
  }),
};
