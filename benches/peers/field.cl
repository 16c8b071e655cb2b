/* The field family as one would write it in OpenCL C by hand: what Cantus's translations are measured against on the same device. */

#define PHI 1.618033988749895f
#define LAMBDA 0.618033988749895f
#define LANES 256
#define ROWS 32

float coordinate(uint i, uint n) {
    uint last = max(n, 2u) - 1u;
    return ((float)i - (float)(last - i)) / (float)last;
}

__kernel void field(__global float *restrict values, uint width, uint height, float number, float phase) {
    uint i = get_global_id(0), j = get_global_id(1);
    if (i >= width || j >= height) return;
    float x = coordinate(i, width), y = coordinate(j, height);
    float r = sqrt(x * x + y * y);
    values[j * width + i] = sin(number * r + PHI * atan2(y, x) + phase) * exp(-r);
}

void reduce(__local float2 *lanes, uint lane, float2 value) {
    lanes[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint stride = LANES / 2; stride > 0; stride /= 2) {
        if (lane < stride) lanes[lane] += lanes[lane + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The sum, and the largest magnitude as bits. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void mean(__global const float *restrict values, __global float4 *restrict partials, uint count) {
    __local float2 lanes[LANES];
    __local uint largest_bits;
    uint lane = get_local_id(0), start = get_group_id(0) * ROWS * LANES;
    if (lane == 0) largest_bits = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    float first = values[0], sum = 0.0f;
    uint largest = 0;
    for (uint row = 0; row < ROWS; row++) {
        uint place = start + row * LANES + lane;
        if (place < count) {
            float value = values[place];
            largest = max(largest, as_uint(value) & 0x7fffffffu);
            sum += value - first;
        }
    }
    atomic_max(&largest_bits, largest);
    reduce(lanes, lane, (float2)(sum, 0.0f));
    if (lane == 0) partials[get_group_id(0)] = (float4)(lanes[0].x, as_float(largest_bits), first, 0.0f);
}

/* The sums of z and of its square. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void deviation(__global const float *restrict values, __global float2 *restrict partials, uint count, float centre, float factor) {
    __local float2 lanes[LANES];
    uint lane = get_local_id(0), start = get_group_id(0) * ROWS * LANES;
    float2 sum = (float2)(0.0f, 0.0f);
    for (uint row = 0; row < ROWS; row++) {
        uint place = start + row * LANES + lane;
        if (place < count) {
            float z = (values[place] - centre) * factor;
            sum += (float2)(z, z * z);
        }
    }
    reduce(lanes, lane, sum);
    if (lane == 0) partials[get_group_id(0)] = lanes[0];
}

/* The sums of |z (above + left)| down 32 rows of 256 columns. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void neighbours(__global const float *restrict values, __global float *restrict partials, uint width, uint height, float centre, float factor) {
    __local float2 lanes[LANES];
    uint lane = get_local_id(0), column = 1 + get_group_id(0) * LANES + lane, first = 1 + get_group_id(1) * ROWS;
    uint end = min(height, first + ROWS);
    float sum = 0.0f;
    if (column < width) {
        float above = (values[(first - 1) * width + column] - centre) * factor;
        for (uint row = first; row < end; row++) {
            float here = (values[row * width + column] - centre) * factor;
            float left = (values[row * width + column - 1] - centre) * factor;
            sum += fabs(here * (above + left));
            above = here;
        }
    }
    reduce(lanes, lane, (float2)(sum, 0.0f));
    if (lane == 0) partials[get_group_id(1) * get_num_groups(0) + get_group_id(0)] = lanes[0].x;
}
