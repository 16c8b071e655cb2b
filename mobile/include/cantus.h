/* Cantus for C. Generated from src/c.rs by `cargo run -p bindgen --bin header`. */

#ifndef CANTUS_H
#define CANTUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The status of a call. Everything but `CANTUS_STATUS_OK` leaves a sentence for a person in `cantus_error_text`.
typedef enum CantusStatus {
  // It worked.
  CANTUS_STATUS_OK = 0,
  // The WGSL text does not parse or validate.
  CANTUS_STATUS_INVALID_WGSL = 1,
  // No such entry point, or none was chosen among several.
  CANTUS_STATUS_ENTRY_POINT = 2,
  // No such override constant, or a value that it cannot take.
  CANTUS_STATUS_OVERRIDE = 3,
  // A binding is missing, unknown or does not fit.
  CANTUS_STATUS_BINDING = 4,
  // An argument, setting, file or state is not acceptable.
  CANTUS_STATUS_INVALID_INPUT = 5,
  // No device at hand has what the kernel uses.
  CANTUS_STATUS_UNSUPPORTED = 6,
  // The memory limit or the device's memory is used up.
  CANTUS_STATUS_OUT_OF_MEMORY = 7,
  // No device could be opened.
  CANTUS_STATUS_NO_DEVICE = 8,
  // A device reported an error.
  CANTUS_STATUS_DEVICE = 9,
  // A device is gone: make a new engine.
  CANTUS_STATUS_DEVICE_LOST = 10,
  // A tensor's contents were lost by an earlier failure.
  CANTUS_STATUS_TENSOR_LOST = 11,
  // The time limit passed.
  CANTUS_STATUS_TIMEOUT = 12,
  // The work was cancelled.
  CANTUS_STATUS_CANCELLED = 13,
  // Anything else; a fault of the library itself is among it.
  CANTUS_STATUS_OTHER = 14,
  // A dtype is wrong.
  CANTUS_STATUS_DTYPE = 15,
  // A shape, an axis or a number of elements is wrong.
  CANTUS_STATUS_SHAPE = 16,
  // Something is larger than what holds it.
  CANTUS_STATUS_LIMIT = 17,
  // An index, a place or a range names nothing.
  CANTUS_STATUS_INDEX = 18,
} CantusStatus;

// The texel that a sampler reads beyond the edge.
typedef enum CantusAddress {
  // The texel at the edge.
  CANTUS_ADDRESS_CLAMP_TO_EDGE = 0,
  // The image again.
  CANTUS_ADDRESS_REPEAT = 1,
  // The image again, every second time mirrored.
  CANTUS_ADDRESS_MIRROR_REPEAT = 2,
} CantusAddress;

// The element type of a tensor.
typedef enum CantusDtype {
  // IEEE half precision.
  CANTUS_DTYPE_F16 = 0,
  // IEEE single precision.
  CANTUS_DTYPE_F32 = 1,
  // IEEE double precision.
  CANTUS_DTYPE_F64 = 2,
  // 32-bit two's complement.
  CANTUS_DTYPE_I32 = 3,
  // 32-bit unsigned.
  CANTUS_DTYPE_U32 = 4,
  // 64-bit two's complement.
  CANTUS_DTYPE_I64 = 5,
  // 64-bit unsigned.
  CANTUS_DTYPE_U64 = 6,
} CantusDtype;

// The texels that a sampler takes.
typedef enum CantusFilter {
  // Texels and levels around the position, weighted.
  CANTUS_FILTER_LINEAR = 0,
  // The nearest texel of the nearest level.
  CANTUS_FILTER_NEAREST = 1,
} CantusFilter;

// The type of the numbers behind `CantusUniform.values`.
typedef enum CantusNumber {
  // `int64_t`: fits any number type that can hold it.
  CANTUS_NUMBER_INT = 0,
  // `double`: fits float types.
  CANTUS_NUMBER_FLOAT = 1,
  // Bytes of a whole uniform in WGSL's own layout; `path` is the binding's name.
  CANTUS_NUMBER_BYTES = 2,
} CantusNumber;

// The unit of a dispatch's three numbers.
typedef enum CantusUnit {
  // At least this number of invocations, rounded up to whole workgroups.
  CANTUS_UNIT_INVOCATIONS = 0,
  // The number of workgroups.
  CANTUS_UNIT_WORKGROUPS = 1,
} CantusUnit;

// An engine. Made by `cantus_engine_create`; tensors keep what they need of it.
typedef struct CantusEngine CantusEngine;

// A kernel. Made by `cantus_kernel_create`.
typedef struct CantusKernel CantusKernel;

// A tensor. Made by `cantus_tensor_create` and by operations.
typedef struct CantusTensor CantusTensor;

// An image. Made by `cantus_texture_create`.
typedef struct CantusTexture CantusTexture;

// Choices for `cantus_engine_create`. All zero means: what the configuration says, and else the defaults.
typedef struct CantusOptions {
  // Only this backend (`vulkan`, `wgpu`, `cpu`), or null.
  const char *backend;
  // Only the device of this index in its backend, counted from 1; 0 for any.
  uint32_t device_number;
  // Prefer the device that draws less power.
  bool low_power;
  // Turn a device's failure into an error instead of going on with the next device.
  bool no_fallback;
  // Where to keep compiled pipelines and measurements, or null for the user's cache folder.
  const char *cache_folder;
  // Where `config.toml` is, if there is one, or null for the user's configuration folder.
  const char *config_folder;
  // Limit in bytes on what the engine holds on each device; 0 for none.
  uint64_t memory_limit;
  // Time limit in milliseconds on a batch or a transfer; 0 for none.
  uint64_t timeout_ms;
} CantusOptions;

// A sampler. All zero: linear, clamped to the edge, as a kernel's sampler is that nothing is bound to.
typedef struct CantusSampler {
  // One of `CantusFilter`.
  uint32_t filter;
  // One of `CantusAddress`, along all axes.
  uint32_t address;
} CantusSampler;

// A tensor, a texture or a sampler bound by name; the other two are null.
typedef struct CantusBinding {
  // The binding's name in the kernel.
  const char *name;
  // The tensor.
  const struct CantusTensor *tensor;
  // The texture.
  const struct CantusTexture *texture;
  // The sampler.
  const struct CantusSampler *sampler;
} CantusBinding;

// A uniform's value, or a member's.
typedef struct CantusUniform {
  // The binding (`n`) or the member (`params.a`).
  const char *path;
  // The type of the numbers behind `values`, one of `CantusNumber`.
  uint32_t kind;
  // The numbers: one, or several for a vector, matrix (by columns) or array.
  const void *values;
  // How many.
  size_t count;
} CantusUniform;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The library's version, as in `0.1.0`.
const char *cantus_version(void);

// Returns the text of this thread's last failure. Valid until the next one that fails.
const char *cantus_error_text(void);

// Opens the best device, or the one that was asked for. `options` may be null.
//
// # Safety
// `options` is null or points to options whose text ends in zero bytes; `engine` can be written.
enum CantusStatus cantus_engine_create(const struct CantusOptions *options, struct CantusEngine **engine);

// Releases an engine; null is allowed. Its tensors stay valid.
//
// # Safety
// `engine` is null or an engine that is used no more.
void cantus_engine_destroy(struct CantusEngine *engine);

// Writes which device was chosen, and why, as text that ends in a zero byte: at most `capacity` bytes of it. Returns the size of the
// whole text with its zero byte, or 0 on failure.
//
// # Safety
// `engine` is an engine; `to` is null with a capacity of 0, or has room for `capacity` bytes.
size_t cantus_engine_explain(const struct CantusEngine *engine,
                             char *to,
                             size_t capacity);

// Waits until all work recorded so far has finished.
//
// # Safety
// `engine` is an engine.
enum CantusStatus cantus_engine_finish(const struct CantusEngine *engine);

// A tensor of `axes` sides, row-major, from `bytes` bytes of elements in the machine's order; of zeros when `data` is null.
//
// # Safety
// `engine` is an engine; `shape` points to `axes` sides; `data` is null or points to `bytes` bytes; `tensor` can be written.
enum CantusStatus cantus_tensor_create(const struct CantusEngine *engine,
                                       uint32_t dtype,
                                       const size_t *shape,
                                       size_t axes,
                                       const void *data,
                                       size_t bytes,
                                       struct CantusTensor **tensor);

// Releases a tensor; null is allowed.
//
// # Safety
// `tensor` is null or a tensor that is used no more.
void cantus_tensor_destroy(struct CantusTensor *tensor);

// Writes the sides of a tensor, at most `capacity` of them, and returns how many there are; 0 for null.
//
// # Safety
// `tensor` is null or a tensor; `shape` has room for `capacity` sides.
size_t cantus_tensor_shape(const struct CantusTensor *tensor, size_t *shape, size_t capacity);

// The element type of a tensor, as one of `CantusDtype`; -1 for null.
//
// # Safety
// `tensor` is null or a tensor.
int32_t cantus_tensor_dtype(const struct CantusTensor *tensor);

// Size of a tensor's contents in bytes; 0 for null.
//
// # Safety
// `tensor` is null or a tensor.
uint64_t cantus_tensor_bytes(const struct CantusTensor *tensor);

// Copies a tensor's contents to `to`, after all work recorded so far. `bytes` is the size of the whole tensor.
//
// # Safety
// `tensor` is a tensor; `to` has room for `bytes` bytes.
enum CantusStatus cantus_tensor_read(const struct CantusTensor *tensor, void *to, size_t bytes);

// Overwrites a tensor from `data`, after all work recorded so far. `bytes` is the size of the whole tensor.
//
// # Safety
// `tensor` is a tensor; `data` points to `bytes` bytes.
enum CantusStatus cantus_tensor_write(const struct CantusTensor *tensor, const void *data, size_t bytes);

// An image of a format by WebGPU's name (`rgba8unorm`), from `bytes` bytes row after row from the top; of zeros when `data` is null.
// `row_pitch` is the distance in bytes from one row's first byte to the next one's, as a camera's buffer has it; 0 where rows have no
// padding. The last row's padding may be left out.
//
// # Safety
// `engine` is an engine; `format` ends in a zero byte; `data` is null or points to `bytes` bytes; `texture` can be written.
enum CantusStatus cantus_texture_create(const struct CantusEngine *engine,
                                        const char *format,
                                        uint32_t width,
                                        uint32_t height,
                                        const void *data,
                                        size_t bytes,
                                        size_t row_pitch,
                                        struct CantusTexture **texture);

// The same image with all levels of detail, for samplers.
//
// # Safety
// `texture` is a texture; `levels` can be written.
enum CantusStatus cantus_texture_with_levels(const struct CantusTexture *texture, struct CantusTexture **levels);

// Releases a texture; null is allowed.
//
// # Safety
// `texture` is null or a texture that is used no more.
void cantus_texture_destroy(struct CantusTexture *texture);

// Size in bytes of a texture's largest level, without padding; 0 for null.
//
// # Safety
// `texture` is null or a texture.
uint64_t cantus_texture_bytes(const struct CantusTexture *texture);

// Copies the largest level of a texture to `to`, row after row without padding, after all work recorded so far. `bytes` is what
// `cantus_texture_bytes` says.
//
// # Safety
// `texture` is a texture; `to` has room for `bytes` bytes.
enum CantusStatus cantus_texture_read(const struct CantusTexture *texture,
                                      void *to,
                                      size_t bytes);

// Overwrites the largest level of a texture, after all work recorded so far: the next picture of a camera. `data`, `bytes` and
// `row_pitch` are as for `cantus_texture_create`.
//
// # Safety
// `texture` is a texture; `data` points to `bytes` bytes.
enum CantusStatus cantus_texture_write(const struct CantusTexture *texture,
                                       const void *data,
                                       size_t bytes,
                                       size_t row_pitch);

// A kernel from WGSL text. `entry_point` may be null when there is one.
//
// # Safety
// Both texts end in zero bytes; `kernel` can be written.
enum CantusStatus cantus_kernel_create(const char *wgsl, const char *entry_point, struct CantusKernel **kernel);

// Sets an override constant by name; booleans are 0 and 1.
//
// # Safety
// `kernel` is a kernel that no other thread uses; `name` ends in a zero byte.
enum CantusStatus cantus_kernel_set_override(struct CantusKernel *kernel, const char *name, double value);

// Releases a kernel; null is allowed.
//
// # Safety
// `kernel` is null or a kernel that is used no more.
void cantus_kernel_destroy(struct CantusKernel *kernel);

// Checks a dispatch, compiles where needed, and records it. It is submitted when its results are read, when the batch is full, or by
// `cantus_engine_finish`. `unit` is one of `CantusUnit`, and says what `x`, `y` and `z` count.
//
// # Safety
// `engine` and `kernel` are such; `bindings` and `uniforms` point to as many as their counts say, whose text ends in zero bytes. What is
// bound is null or such; a uniform has `count` values of its kind.
enum CantusStatus cantus_dispatch(const struct CantusEngine *engine,
                                  const struct CantusKernel *kernel,
                                  const struct CantusBinding *bindings,
                                  size_t binding_count,
                                  const struct CantusUniform *uniforms,
                                  size_t uniform_count,
                                  uint32_t unit,
                                  uint64_t x,
                                  uint64_t y,
                                  uint64_t z);

// The damped spiral wave: an f32 tensor of `height` rows and `width` columns.
//
// # Safety
// `engine` is an engine; `field` can be written.
enum CantusStatus cantus_field(const struct CantusEngine *engine,
                               size_t width,
                               size_t height,
                               double hertz,
                               double time,
                               struct CantusTensor **field);

// The golden-ratio spiral: an f32 tensor of `height` rows and `width` columns.
//
// # Safety
// `engine` is an engine; `pattern` can be written.
enum CantusStatus cantus_phi_pattern(const struct CantusEngine *engine,
                                     size_t width,
                                     size_t height,
                                     struct CantusTensor **pattern);

// How strongly the values of a field agree with their upper and left neighbours, from 0 to 1.
//
// # Safety
// `engine` is an engine, `field` a tensor; `coherence` can be written.
enum CantusStatus cantus_coherence(const struct CantusEngine *engine,
                                   const struct CantusTensor *field,
                                   float *coherence);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CANTUS_H */
