/* Cantus from C: tensors, kernels, the field, and errors. `results BACKEND FOLDER` prints what examples/reference.rs prints; FOLDER has the
 * kernels. */

#include "cantus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Ends the program with what went wrong. */
static void need(CantusStatus status) {
    if (status != CANTUS_STATUS_OK) {
        fprintf(stderr, "status %d: %s\n", status, cantus_error_text());
        exit(1);
    }
}

static void fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static char *file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *from = fopen(path, "rb");
    if (from == NULL) fail(path);
    char *text = calloc(1, 65536);
    if (text == NULL || fread(text, 1, 65535, from) == 0) fail(path);
    fclose(from);
    return text;
}

/* Every bit counts: the first bytes, and FNV-1a of all. */
static void print_bytes(const char *name, const void *from, size_t size) {
    const unsigned char *bytes = from;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    printf("%s %zu ", name, size);
    for (size_t i = 0; i < size && i < 8; i++) printf("%02x", bytes[i]);
    printf(" %016" PRIx64 "\n", hash);
}

static void print_tensor(const char *name, const CantusTensor *tensor) {
    size_t size = (size_t)cantus_tensor_bytes(tensor);
    void *bytes = malloc(size);
    if (bytes == NULL) fail("no memory");
    need(cantus_tensor_read(tensor, bytes, size));
    print_bytes(name, bytes, size);
    free(bytes);
}

static void print_error(const char *name, CantusStatus status, CantusStatus expected) {
    if (status != expected) {
        fprintf(stderr, "%s: status %d, not %d\n", name, status, expected);
        exit(1);
    }
    printf("error %s: %s\n", name, cantus_error_text());
}

int main(int count, char **arguments) {
    if (count != 3) fail("results BACKEND FOLDER");
    CantusEngine *engine = NULL;
    /* An empty folder of configuration: nothing of this machine counts. */
    CantusOptions options = {.backend = arguments[1], .config_folder = arguments[2]};
    need(cantus_engine_create(&options, &engine));
    char explained[1024];
    size_t size = cantus_engine_explain(engine, explained, sizeof explained);
    if (size != strlen(explained) + 1) fail("the explanation's size is wrong");
    char cut[5];
    if (cantus_engine_explain(engine, cut, sizeof cut) != size || strlen(cut) != 4) fail("the cut explanation is wrong");
    printf("device %s\n", explained);

    CantusKernel *saxpy = NULL;
    char *saxpy_text = file(arguments[2], "saxpy.wgsl");
    need(cantus_kernel_create(saxpy_text, NULL, &saxpy));
    float values[1000], squares[1000];
    for (int i = 0; i < 1000; i++) {
        values[i] = (float)i * 0.37f - 91.0f;
        squares[i] = values[i] * values[i];
    }
    const size_t shape[2] = {10, 100};
    CantusTensor *x = NULL, *y = NULL;
    need(cantus_tensor_create(engine, CANTUS_DTYPE_F32, shape, 2, values, sizeof values, &x));
    need(cantus_tensor_create(engine, CANTUS_DTYPE_F32, shape, 2, NULL, 0, &y));
    need(cantus_tensor_write(y, squares, sizeof squares));
    size_t sides[3] = {0, 0, 99};
    if (cantus_tensor_shape(y, sides, 3) != 2 || sides[0] != 10 || sides[1] != 100 || sides[2] != 99) fail("wrong shape");
    if (cantus_tensor_dtype(y) != CANTUS_DTYPE_F32) fail("wrong dtype");
    const double a = 1.7, one = 1.0;
    const CantusBinding both[2] = {{.name = "x", .tensor = x}, {.name = "y", .tensor = y}};
    CantusUniform factor = {"params.a", CANTUS_NUMBER_FLOAT, &a, 1};
    need(cantus_dispatch(engine, saxpy, both, 2, &factor, 1, CANTUS_UNIT_INVOCATIONS, 1000, 1, 1));
    print_tensor("saxpy", y);

    CantusKernel *steps = NULL, *other = NULL;
    char *steps_text = file(arguments[2], "steps.wgsl");
    need(cantus_kernel_create(steps_text, "steps", &steps));
    need(cantus_kernel_set_override(steps, "factor", 3.0));
    const size_t grid[2] = {6, 8};
    CantusTensor *counts = NULL;
    need(cantus_tensor_create(engine, CANTUS_DTYPE_U32, grid, 2, NULL, 0, &counts));
    const CantusBinding only = {.name = "counts", .tensor = counts};
    const int64_t weights[2] = {5, 7};
    const CantusUniform members = {"grid.weights", CANTUS_NUMBER_INT, weights, 2};
    need(cantus_dispatch(engine, steps, &only, 1, &members, 1, CANTUS_UNIT_WORKGROUPS, 2, 3, 1));
    print_tensor("steps", counts);
    const unsigned char whole[8] = {9, 0, 0, 0, 2, 0, 0, 0};
    const CantusUniform bytes = {"grid", CANTUS_NUMBER_BYTES, whole, sizeof whole};
    need(cantus_dispatch(engine, steps, &only, 1, &bytes, 1, CANTUS_UNIT_WORKGROUPS, 2, 3, 1));
    need(cantus_engine_finish(engine));
    print_tensor("steps again", counts);

    unsigned char halves[14];
    for (int i = 0; i < 14; i++) halves[i] = (unsigned char)(i * 17);
    const size_t seven = 7;
    CantusTensor *packed = NULL;
    need(cantus_tensor_create(engine, CANTUS_DTYPE_F16, &seven, 1, halves, sizeof halves, &packed));
    print_tensor("halves", packed);

    CantusTensor *field = NULL, *phi = NULL;
    float coherence = 0;
    need(cantus_field(engine, 97, 61, 432.0, 1.25, &field));
    print_tensor("field", field);
    const size_t sheet[2] = {25, 40};
    for (int i = 0; i < 1000; i++) values[i] = (float)(i % 97 / 90);
    CantusTensor *noise = NULL;
    need(cantus_tensor_create(engine, CANTUS_DTYPE_F32, sheet, 2, values, sizeof values, &noise));
    need(cantus_coherence(engine, noise, &coherence));
    print_bytes("coherence", &coherence, sizeof coherence);
    need(cantus_phi_pattern(engine, 40, 33, &phi));
    print_tensor("phi", phi);

    /* An image as a camera gives it: 13 texels of four bytes in rows of 64. The last row has no padding. */
    CantusKernel *shrink = NULL;
    char *shrink_text = file(arguments[2], "shrink.wgsl");
    need(cantus_kernel_create(shrink_text, NULL, &shrink));
    unsigned char padded[64 * 7];
    for (int i = 0; i < 64 * 7; i++) padded[i] = (unsigned char)(i * 37 % 251);
    CantusTexture *photo = NULL, *small = NULL, *levels = NULL, *nothing = NULL;
    need(cantus_texture_create(engine, "rgba8unorm", 13, 7, padded, sizeof padded - 12, 64, &photo));
    need(cantus_texture_create(engine, "rgba8unorm", 6, 3, NULL, 0, 0, &small));
    if (cantus_texture_bytes(small) != 72) fail("wrong size of a texture");
    const CantusSampler nearest = {.filter = CANTUS_FILTER_NEAREST, .address = CANTUS_ADDRESS_MIRROR_REPEAT};
    CantusBinding images[3] = {{.name = "image", .texture = photo}, {.name = "small", .texture = small}, {.name = "smp", .sampler = &nearest}};
    unsigned char shrunk[72];
    /* A sampler that nothing is bound to is linear. */
    need(cantus_dispatch(engine, shrink, images, 2, NULL, 0, CANTUS_UNIT_INVOCATIONS, 6, 3, 1));
    need(cantus_texture_read(small, shrunk, sizeof shrunk));
    print_bytes("shrunk", shrunk, sizeof shrunk);
    need(cantus_dispatch(engine, shrink, images, 3, NULL, 0, CANTUS_UNIT_INVOCATIONS, 6, 3, 1));
    need(cantus_texture_read(small, shrunk, sizeof shrunk));
    print_bytes("nearest", shrunk, sizeof shrunk);
    for (int i = 0; i < 64 * 7; i++) padded[i] = (unsigned char)(255 - padded[i]);
    need(cantus_texture_write(photo, padded, sizeof padded, 64));
    need(cantus_dispatch(engine, shrink, images, 2, NULL, 0, CANTUS_UNIT_INVOCATIONS, 6, 3, 1));
    need(cantus_texture_read(small, shrunk, sizeof shrunk));
    print_bytes("negative", shrunk, sizeof shrunk);
    need(cantus_texture_with_levels(photo, &levels));
    if (cantus_texture_bytes(levels) != 13 * 7 * 4) fail("wrong size of a texture with levels");

    print_error("wgsl", cantus_kernel_create("fn main( {", NULL, &other), CANTUS_STATUS_INVALID_WGSL);
    print_error("entry", cantus_kernel_create(steps_text, "stairs", &other), CANTUS_STATUS_ENTRY_POINT);
    need(cantus_kernel_create(steps_text, "steps", &other));
    print_error("override", cantus_kernel_set_override(other, "divisor", 1.0), CANTUS_STATUS_OVERRIDE);
    cantus_kernel_destroy(other);
    factor.values = &one;
    print_error("binding", cantus_dispatch(engine, saxpy, both, 1, &factor, 1, CANTUS_UNIT_INVOCATIONS, 1000, 1, 1),
                CANTUS_STATUS_BINDING);
    print_error("empty", cantus_dispatch(engine, saxpy, both, 2, &factor, 1, CANTUS_UNIT_INVOCATIONS, 0, 1, 1),
                CANTUS_STATUS_INVALID_INPUT);
    const size_t three = 3;
    CantusTensor *none = x;
    print_error("shape", cantus_tensor_create(engine, CANTUS_DTYPE_F32, &three, 1, halves, 8, &none), CANTUS_STATUS_SHAPE);
    if (none != NULL) fail("a tensor was made of nothing");
    print_error("picture", cantus_texture_create(engine, "r8unorm", 0, 5, NULL, 0, 0, &nothing), CANTUS_STATUS_SHAPE);
    images[1].texture = photo;
    print_error("texture", cantus_dispatch(engine, shrink, images, 2, NULL, 0, CANTUS_UNIT_INVOCATIONS, 6, 3, 1),
                CANTUS_STATUS_BINDING);
    print_error("frequency", cantus_field(engine, 4, 4, -1.0, 0.0, &none), CANTUS_STATUS_INVALID_INPUT);
    CantusEngine *abacus = NULL;
    options.backend = "abacus";
    print_error("backend", cantus_engine_create(&options, &abacus), CANTUS_STATUS_NO_DEVICE);

    /* Null and nonsense are errors, not crashes. */
    if (cantus_tensor_read(NULL, halves, 14) != CANTUS_STATUS_INVALID_INPUT) fail("null was read");
    if (cantus_tensor_read(packed, halves, 13) != CANTUS_STATUS_INVALID_INPUT) fail("a part was read");
    if (cantus_tensor_create(engine, 7, &three, 1, NULL, 0, &none) != CANTUS_STATUS_INVALID_INPUT) fail("dtype 7");
    if (cantus_kernel_create(NULL, NULL, &other) != CANTUS_STATUS_INVALID_INPUT || other != NULL) fail("a kernel from null");
    if (cantus_dispatch(engine, saxpy, both, 2, &factor, 1, 2, 1, 1, 1) != CANTUS_STATUS_INVALID_INPUT) fail("unit 2");

    if (cantus_texture_create(engine, "rgba9", 2, 2, NULL, 0, 0, &nothing) != CANTUS_STATUS_INVALID_INPUT) fail("a format of nothing");
    if (cantus_texture_create(engine, "r8unorm", 9, 9, padded, 80, 9, &nothing) != CANTUS_STATUS_SHAPE) fail("a cut image");
    if (cantus_texture_create(engine, "r8unorm", 9, 9, padded, 448, 8, &nothing) != CANTUS_STATUS_SHAPE) fail("a short pitch");
    if (cantus_texture_write(photo, padded, 100, 64) != CANTUS_STATUS_SHAPE) fail("a cut picture");
    if (cantus_texture_read(small, shrunk, 71) != CANTUS_STATUS_SHAPE) fail("a part of a texture was read");
    images[0].tensor = x;
    if (cantus_dispatch(engine, shrink, images, 2, NULL, 0, 0, 6, 3, 1) != CANTUS_STATUS_INVALID_INPUT) fail("two things were bound");

    /* Tensors and textures outlive their engine. */
    cantus_engine_destroy(engine);
    float kept = 0;
    need(cantus_tensor_read(x, values, sizeof values));
    memcpy(&kept, values, sizeof kept);
    if (kept != -91.0f) fail("the tensor changed");
    CantusTensor *tensors[] = {x, y, counts, packed, noise, field, phi, NULL};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) cantus_tensor_destroy(tensors[i]);
    cantus_kernel_destroy(saxpy);
    cantus_kernel_destroy(steps);
    need(cantus_texture_read(small, shrunk, sizeof shrunk));
    CantusTexture *textures[] = {photo, small, levels, NULL};
    for (size_t i = 0; i < sizeof textures / sizeof *textures; i++) cantus_texture_destroy(textures[i]);
    cantus_kernel_destroy(shrink);
    free(shrink_text);
    free(saxpy_text);
    free(steps_text);
    return 0;
}
