// A double of cuBLASLt and hipBLASLt: the calls that Cantus uses, with the numbers of each vendor's header. Products are computed in double
// precision, in the stream's order. A description keeps what it was told, and what it cannot mean is a misuse. Part of double.cpp.

enum { BLAS_OK = 0, BLAS_INVALID = 7, BLAS_UNSUPPORTED = 15, R_32F = 0, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14 };

struct Layout { int type; uint64_t rows, columns; int64_t lead; int batches = 1; int64_t batch_stride = 0; };
struct Product { int sums, scale; int transposed[2] = {NAME(0, 111), NAME(0, 111)}; uint32_t epilogue = 1; const void *bias = nullptr; };
struct Preference { uint64_t workspace = 0; uint32_t alignments[4] = {256, 256, 256, 256}, parts = 7; };
// As large as the vendors' own, and readable for the double alone.
struct Algorithm { uint64_t mark; uint32_t epilogue; uint32_t alignments[4]; uint32_t rest[NAME(9, 0)]; };
struct Answer { uint64_t algorithm[NAME(8, 3)]; size_t workspace; int state; float waves; int reserved[4]; };
static const uint64_t MARK = 0x616c676f726974ull;

#define BLAS(name) NAME(cublasLt##name, hipblasLt##name)

#ifndef HIP
extern "C" __attribute__((visibility("default"))) size_t cublasLtGetCudartVersion() { return size_t(setting("CANTUS_DOUBLE_CUBLASLT", 12090)); }
#endif
API BLAS(Create)(void **handle) { BEGIN("product_library"); *handle = born("product library", new int(0)); return BLAS_OK; }
API BLAS(Destroy)(void *handle) {
    BEGIN("product_library_destroy");
    if (!die("product library", handle)) return 1;
    delete (int *)handle;
    return BLAS_OK;
}
API BLAS(MatmulDescCreate)(void **product, int sums, int scale) {
    BEGIN_FREE("product_create");
    // Float32 in full, or i32: Cantus asks for no other way of summing.
    if (!(sums == NAME(68, 2) && scale == R_32F) && !(sums == NAME(72, 9) && scale == R_32I)) misuse("sums in another way than in float32 or i32");
    *product = born("product", new Product{sums, scale});
    return BLAS_OK;
}
API BLAS(MatmulDescDestroy)(void *product) {
    BEGIN_FREE("product_destroy");
    if (!die("product", product)) return BLAS_INVALID;
    delete (Product *)product;
    return BLAS_OK;
}
API BLAS(MatmulDescSetAttribute)(void *handle, int attribute, const void *value, size_t bytes) {
    BEGIN_FREE("product_set");
    if (!alive("product", handle)) return BLAS_INVALID;
    Product *product = (Product *)handle;
    struct { int number; void *to; size_t bytes; } known[] = {
        {NAME(3, 0), &product->transposed[0], 4}, {NAME(4, 1), &product->transposed[1], 4}, {NAME(7, 2), &product->epilogue, 4}, {NAME(8, 3), &product->bias, 8}};
    for (auto &one : known) {
        if (one.number != attribute) continue;
        if (one.bytes != bytes) return BLAS_INVALID;
        memcpy(one.to, value, bytes);
        return BLAS_OK;
    }
    misuse("an attribute of a product that the double does not know");
    return BLAS_INVALID;
}
API BLAS(MatrixLayoutCreate)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t lead) {
    BEGIN_FREE("layout_create");
    if (!rows || !columns || lead < int64_t(rows) || (type != R_32F && type != R_16F && type != R_16BF && type != R_8I && type != R_32I)) {
        misuse("what is not a matrix");
        return BLAS_INVALID;
    }
    *layout = born("layout", new Layout{type, rows, columns, lead});
    return BLAS_OK;
}
API BLAS(MatrixLayoutDestroy)(void *layout) {
    BEGIN_FREE("layout_destroy");
    if (!die("layout", layout)) return BLAS_INVALID;
    delete (Layout *)layout;
    return BLAS_OK;
}
API BLAS(MatrixLayoutSetAttribute)(void *layout, int attribute, const void *value, size_t bytes) {
    BEGIN_FREE("layout_set");
    if (!alive("layout", layout)) return BLAS_INVALID;
    if (attribute == NAME(5, 0) && bytes == 4) memcpy(&((Layout *)layout)->batches, value, 4);
    else if (attribute == NAME(6, 1) && bytes == 8) memcpy(&((Layout *)layout)->batch_stride, value, 8);
    else {
        misuse("an attribute of a matrix that the double does not know");
        return BLAS_INVALID;
    }
    return BLAS_OK;
}
API BLAS(MatmulPreferenceCreate)(void **preference) { BEGIN_FREE("preference_create"); *preference = born("preference", new Preference); return BLAS_OK; }
API BLAS(MatmulPreferenceDestroy)(void *preference) {
    BEGIN_FREE("preference_destroy");
    if (!die("preference", preference)) return BLAS_INVALID;
    delete (Preference *)preference;
    return BLAS_OK;
}
API BLAS(MatmulPreferenceSetAttribute)(void *handle, int attribute, const void *value, size_t bytes) {
    BEGIN_FREE("preference_set");
    if (!alive("preference", handle)) return BLAS_INVALID;
    Preference *preference = (Preference *)handle;
    if (attribute == 1 && bytes == 8) memcpy(&preference->workspace, value, 8);
#ifndef HIP
    else if (attribute == 3 && bytes == 4) memcpy(&preference->parts, value, 4);
    else if (attribute >= 5 && attribute <= 8 && bytes == 4) memcpy(&preference->alignments[attribute - 5], value, 4);
#endif
    else {
        misuse("an attribute of a preference that the double does not know");
        return BLAS_INVALID;
    }
    return BLAS_OK;
}

// Whether three matrices make a product by columns.
static bool product_fits(const Product *product, const Layout *a, const Layout *b, const Layout *c) {
    bool turned[2] = {product->transposed[0] == NAME(1, 112), product->transposed[1] == NAME(1, 112)};
    uint64_t m = turned[0] ? a->columns : a->rows, inner = turned[0] ? a->rows : a->columns;
    uint64_t n = turned[1] ? b->rows : b->columns, other = turned[1] ? b->columns : b->rows;
    bool batches = a->batches == c->batches && b->batches == c->batches;
    if ((a->type == R_8I) != (product->scale == R_32I) || (c->type == R_32I) != (product->scale == R_32I)) misuse("a product whose types do not belong together");
    return m == c->rows && n == c->columns && inner == other && a->type == b->type && batches;
}
API BLAS(MatmulAlgoGetHeuristic)(void *library, void *product, void *a, void *b, void *c, void *d, void *preference, int wanted, void *answers, int *found) {
    BEGIN("product_algorithm");
    bool lives = alive("product library", library) && alive("product", product) && alive("layout", a) && alive("layout", b) && alive("preference", preference);
    if (!lives || c != d || !alive("layout", c) || wanted != 1) return BLAS_INVALID;
    const Preference *asked = (const Preference *)preference;
    *found = 0;
    if (!product_fits((Product *)product, (Layout *)a, (Layout *)b, (Layout *)c)) return BLAS_INVALID;
    // As the vendors say: bytes for one layout, and sides by fours.
    const Layout *first = (const Layout *)a;
    bool turned = ((Product *)product)->transposed[0] == NAME(1, 112) && ((Product *)product)->transposed[1] == NAME(0, 111);
    if (first->type == R_8I && (!turned || first->rows % 4 || first->columns % 4 || first->lead % 4)) return BLAS_UNSUPPORTED;
    // Half the machines in the field have no algorithm for some shape: to order, none is found.
    if (setting("CANTUS_DOUBLE_ALGORITHMS", 1) == 0) return BLAS_UNSUPPORTED;
    Answer *answer = (Answer *)answers;
    Algorithm algorithm = {MARK, ((Product *)product)->epilogue};
    static_assert(sizeof algorithm <= sizeof answer->algorithm || NAME(0, 1), "it is no larger than the vendor's");
    if (NAME(true, false)) memcpy(algorithm.alignments, asked->alignments, sizeof algorithm.alignments);
    memcpy(answer->algorithm, &algorithm, NAME(sizeof algorithm, 12));
    answer->workspace = asked->workspace;
    answer->state = 0;
    *found = 1;
    return BLAS_OK;
}

static int bytes_of(int type) { return type == R_32F || type == R_32I ? 4 : type == R_8I ? 1 : 2; }
static double element_of(const void *start, int type, int64_t place) {
    if (type == R_32F) return double(((const float *)start)[place]);
    if (type == R_16F) return double(((const _Float16 *)start)[place]);
    if (type == R_8I) return double(((const int8_t *)start)[place]);
    uint32_t bits = uint32_t(((const uint16_t *)start)[place]) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return double(value);
}
API BLAS(Matmul)(void *library, void *product_handle, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, const void *beta,
                 const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
    BEGIN("product");
    bool lives = alive("product library", library) && alive("product", product_handle) && alive("layout", a_layout) && alive("layout", b_layout);
    if (!lives || !alive("layout", d_layout) || !alive("stream", stream)) return BLAS_INVALID;
    // All but the bias is read now; so is the description.
    Product product = *(Product *)product_handle;
    Layout left = *(Layout *)a_layout, right = *(Layout *)b_layout, into = *(Layout *)d_layout;
    bool one = product.scale == R_32I ? *(const int *)alpha == 1 && *(const int *)beta == 0 : *(const float *)alpha == 1 && *(const float *)beta == 0;
    if (!one || c != d || c_layout != d_layout) misuse("a product that is more than a product");
    Algorithm chosen;
    memcpy(&chosen, algorithm, NAME(sizeof chosen, 12));
    if (chosen.mark != MARK || chosen.epilogue != product.epilogue) misuse("an algorithm for another product");
    const void *places[] = {a, b, c, d};
    for (int i = 0; i < 4 && NAME(true, false); i++) {
        if (uintptr_t(places[i]) % chosen.alignments[i]) misuse("an operand is not aligned as was said");
    }
    auto bytes = [](const Layout &one) {
        uint64_t last = uint64_t(one.lead) * (one.columns - 1) + one.rows + uint64_t(one.batch_stride) * uint64_t(one.batches - 1);
        return last * bytes_of(one.type);
    };
    bool biased = product.epilogue & 4, relu = product.epilogue & 2;
    bool there = inside(uint64_t(a), bytes(left), "an operand") && inside(uint64_t(b), bytes(right), "an operand") && inside(uint64_t(d), bytes(into), "a product");
    there = there && inside(uint64_t(workspace), workspace_bytes, "a workspace");
    there = there && (!biased || inside(uint64_t(product.bias), into.rows * bytes_of(into.type), "a bias"));
    if (!there) return BLAS_INVALID;
    if (((Stream *)stream)->device != device_number()) misuse("a product while another device is current");
    ((Stream *)stream)->put([=] {
        bool turned[2] = {product.transposed[0] == NAME(1, 112), product.transposed[1] == NAME(1, 112)};
        uint64_t inner = turned[0] ? left.rows : left.columns;
        memset(workspace, 0x5A, workspace_bytes < 4096 ? workspace_bytes : 4096);
        for (int batch = 0; batch < into.batches; batch++) {
            for (uint64_t column = 0; column < into.columns; column++) {
                for (uint64_t row = 0; row < into.rows; row++) {
                    double sum = 0;
                    for (uint64_t k = 0; k < inner; k++) {
                        int64_t x = int64_t(turned[0] ? k + row * uint64_t(left.lead) : row + k * uint64_t(left.lead)) + batch * left.batch_stride;
                        int64_t y = int64_t(turned[1] ? column + k * uint64_t(right.lead) : k + column * uint64_t(right.lead)) + batch * right.batch_stride;
                        sum += element_of(a, left.type, x) * element_of(b, right.type, y);
                    }
                    if (biased) sum += element_of(product.bias, into.type, int64_t(row));
                    if (relu && sum < 0) sum = 0;
                    int64_t place = int64_t(row + column * uint64_t(into.lead)) + batch * into.batch_stride;
                    if (into.type == R_32F) ((float *)d)[place] = float(sum);
                    else if (into.type == R_32I) ((int *)d)[place] = int(sum);
                    else if (into.type == R_16F) ((_Float16 *)d)[place] = _Float16(float(sum));
                    else {
                        // To the nearest, ties to even.
                        float value = float(sum);
                        uint32_t bits;
                        memcpy(&bits, &value, 4);
                        ((uint16_t *)d)[place] = uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
                    }
                }
            }
        }
    });
    return BLAS_OK;
}

// ---- NCCL and RCCL: devices of one process that add up. Each device's stream waits for all parts, and then for all sums.

enum { COLLECTIVE_INVALID = 4, COLLECTIVE_MISUSED = 5 };
struct Meeting {
    std::mutex lock;
    std::condition_variable changed;
    size_t arrived = 0;
    void meet(size_t all) {
        std::unique_lock<std::mutex> guard(lock);
        size_t round = arrived / all + 1;
        arrived++;
        changed.notify_all();
        changed.wait(guard, [&] { return arrived >= round * all; });
    }
};
struct RingMember { int rank, count, device; };
struct Part { RingMember *member; const float *from; float *into; size_t count; Stream *stream; };
static thread_local std::vector<Part> parts_;
static thread_local bool in_group_ = false;

API ncclCommInitAll(void **members, int count, const int *devices) {
    BEGIN_FREE("ring");
    if (std::set<int>(devices, devices + count).size() != size_t(count)) return COLLECTIVE_MISUSED;
    for (int rank = 0; rank < count; rank++) members[rank] = born("ring member", new RingMember{rank, count, devices[rank]});
    // The last device stays current, as with the library.
#ifdef HIP
    current_ = devices[count - 1];
#else
    current_ = contexts_ + devices[count - 1];
#endif
    return OK;
}
API ncclCommDestroy(void *member) {
    BEGIN("ring_destroy");
    if (!die("ring member", member)) return COLLECTIVE_INVALID;
    delete (RingMember *)member;
    return OK;
}
API ncclGroupStart() {
    BEGIN_FREE("ring_begin");
    in_group_ = true;
    return OK;
}
API ncclAllReduce(const void *from, void *into, size_t count, int type, int by, void *handle, void *stream) {
    BEGIN("all_reduce");
    if (!alive("ring member", handle) || !alive("stream", stream)) return COLLECTIVE_INVALID;
    RingMember *member = (RingMember *)handle;
    if (!in_group_ || type != 7 || by != 0) misuse("a sum over devices that is not of float32");
    if (((Stream *)stream)->device != member->device || device_number() != member->device) misuse("a part of another device");
    if (!inside(uint64_t(from), count * 4, "a part") || !inside(uint64_t(into), count * 4, "a sum")) return COLLECTIVE_INVALID;
    parts_.push_back({member, (const float *)from, (float *)into, count, (Stream *)stream});
    return OK;
}
API ncclGroupEnd() {
    std::vector<Part> parts;
    parts.swap(parts_);
    in_group_ = false;
    BEGIN_FREE("ring_end");
    if (parts.empty()) return OK;
    // Devices that wait for one that never comes would hang.
    if (parts.size() != size_t(parts[0].member->count)) return COLLECTIVE_MISUSED;
    auto meeting = std::make_shared<Meeting>();
    for (const Part &own : parts) {
        own.stream->put([=] {
            meeting->meet(parts.size());
            std::vector<float> sum(own.count, 0.0f);
            for (const Part &part : parts) {
                for (size_t i = 0; i < own.count; i++) sum[i] += part.from[i];
            }
            meeting->meet(parts.size());
            memcpy(own.into, sum.data(), own.count * 4);
        });
    }
    return OK;
}
