/* Products with weights and the layers of encoders and decoders for blocks of few tokens, on a CPU: in single precision,
   or with 8-bit integers in the products.

   Compiled once for each set of vector instructions (setup.py), loaded by library.py, and called with addresses of
   tensors, so that no headers of Python or PyTorch are needed.

   A result does not depend on the other rows or on the number of threads: sums have a fixed order, over the inputs of a
   product in chunks of PART, over the keys of attention by their places in the cache. */

#include <immintrin.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since glibc 2.34 these two have a second version, which an older glibc lacks: the wheel is for 2.28 and later. */
#if defined(__GLIBC__)
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_detach, pthread_detach@GLIBC_2.2.5");
#endif

#if defined(__AVX512F__)
#define LANES 16
#define TILE 12 /* rows multiplied at once: TILE times two accumulators, of 32 registers */
#else
#define LANES 8
#define TILE 6
#endif
#define PANEL (2 * LANES) /* outputs of a product that are computed at once */
#define PART 512          /* inputs of a product that are summed in one chunk */
#define AHEAD 1024        /* prefetch distance of weights, in bytes */
#define LINE 64           /* bytes of a cache line */
#define LEVELS 127.0f     /* levels of a byte on either side of ZERO */
#define ZERO 128
#define LOOP_SPINS 1000   /* spins before a thread sleeps, within a job: about 20 microseconds */
#define JOB_SPINS 60000   /* spins before a thread sleeps, between jobs: a millisecond, longer than Python takes in between */
#define MEMBERS 256       /* upper bound of a team's size, exclusive */
#define LOSS 20           /* at most 1 / LOSS of the time is lost to teams that are slower than one thread */
#define GAP 16            /* padding of a row, in numbers: rows a power of two apart share few places of the first cache */

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint32_t uvec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint8_t bvec __attribute__((vector_size(LANES), aligned(1), may_alias));

enum { NO_ACTIVATION, RELU, GELU, SILU, GELU_TANH };
enum { SINGLE, HALF, BFLOAT }; /* storage types of weights; inputs, sums and outputs are in single precision */

typedef struct {
    const void *weight;     /* numbers, panels x inputs x PANEL; integers, panels x inputs / 4 x PANEL x 4 */
    const float *bias;      /* panels x PANEL */
    const float *scales;    /* of integers, panels x PANEL: value of a unit, divided by the row's largest input; or NULL */
    const int32_t *offsets; /* of integers, panels x PANEL: the sum of an output's weights times ZERO */
    int64_t inputs, outputs;
    int64_t kept; /* SINGLE, HALF or BFLOAT */
} Product;

/* inputs of a product as bytes around ZERO, `stride` bytes per row, and each row's largest absolute value */
typedef struct {
    uint8_t *bytes;
    float *peaks;
    int64_t stride;
} Levels;

typedef struct {
    const float *gain, *bias; /* D, or both NULL; `bias` alone NULL: of an RMS norm, which does not subtract the mean */
    double epsilon;
} Norm;

typedef struct {
    Norm self_norm, cross_norm, final_norm;
    Product self_qkv; /* queries, then keys and values head by head, each head's keys first */
    Product self_out, cross_q, cross_out, fc1, fc2; /* cross_*: of a decoder only */
    Product gate;                                   /* multiplies the output of fc1; weight NULL: there is none */
} Layer;

typedef struct {
    const Layer *layers;
    const Norm *last; /* behind all layers, or NULL */
    int64_t count, dim, heads, size, inner, activation, norm_first; /* `size`: of a head */
    double scale;                                                   /* multiplies scores of attention */
} Stack;

/* What is added to scores of self-attention: for each head `step` numbers. */
typedef struct {
    const float *own; /* that of the first head at distance 0; later keys have the next numbers; or NULL: nothing */
    int64_t step;
} Bias;

/* the input and output of a decoder's layers */
typedef struct {
    const float *x;         /* N x D, input of the first layer */
    float *y;               /* M x D, output of the last layer */
    const int64_t *rows;    /* N, each token's row of the batch; NULL: `width` tokens of each row */
    const int64_t *columns; /* N, each token's column of the block; NULL as above */
    const int64_t *starts;  /* B, the position of each row's first token */
    const int64_t *reach;   /* B x W, the last slot that a token attends to; NULL: its own */
    const int64_t *depths;  /* N, of trees: the number of other tokens that a token attends to; NULL: those before it */
    const int64_t *paths;   /* N x `longest`, of trees: the slots that a token attends to, in order, its own last */
    const int64_t *wanted;  /* B x `wanted_columns`, the columns to return; NULL: all N tokens */
    float *memory;          /* layers x B x H x capacity x 2D/H, keys first */
    const float *cross;     /* layers x B x H x S x 2D/H, keys and values of the source */
    const uint8_t *padding; /* B x S, the hidden positions of the source; or NULL */
    Bias bias;
    int64_t tokens, width, longest, wanted_columns;
    int64_t memory_layer, memory_row, capacity; /* strides in numbers; positions */
    int64_t cross_layer, cross_row, source;
    int64_t threads;
} Block;

/* ---- threads ---- */

/* The worker threads. OpenMP's threads spin so long that on a busy machine two threads take up to thirty times as long as
   one. One caller at a time uses the workers; another one works alone meanwhile. */
static struct {
    atomic_flag taken;
    _Atomic uint32_t job;  /* MEMBERS times the number of jobs, plus the members of the last job: one word to wait for */
    _Atomic uint32_t loop; /* number of loops that all members have finished */
    _Atomic uint32_t arrived, asleep;
    _Atomic uint64_t alone; /* time until which callers work alone, in ticks of the processor's clock */
    int64_t workers;
    void (*work)(const void *);
    const void *what; /* the argument of `work` */
} team = {.taken = ATOMIC_FLAG_INIT};

static __thread int64_t member = 0, members = 1; /* the number of this thread in its team, and its team's size */
static __thread uint64_t waited;                 /* time that this thread has waited for its team, in ticks */

/* Waits until the word is no longer `old`: spinning at first, which is enough where every thread has a core, and then
   asleep, to leave the core to the other thread. */
static void wait_for_change(_Atomic uint32_t *word, uint32_t old, int spins) {
    for (int i = 0; i < spins; i++) {
        if (*word != old) return;
        _mm_pause();
    }
    team.asleep++;
    while (*word == old) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL);
    team.asleep--;
}

static void change(_Atomic uint32_t *word, uint32_t value) {
    *word = value;
    if (team.asleep) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* Waits for all members of the team; returns 0. */
static int64_t meet(void) {
    if (members == 1) return 0;
    uint32_t loop = team.loop;
    if (++team.arrived < members) {
        uint64_t start = __rdtsc();
        wait_for_change(&team.loop, loop, LOOP_SPINS);
        waited += __rdtsc() - start;
    } else {
        team.arrived = 0;
        change(&team.loop, loop + 1);
    }
    return 0;
}

/* the first of `count` items that a member of the team processes; a single item is the caller's */
static inline int64_t share(int64_t count, int64_t number) { return (count * number + members - 1) / members; }

/* A loop over i = 0 ... count - 1, divided among the members of the team, with a barrier at the end. */
#define SHARED(i, count) \
    for (int64_t i = share(count, member), i##_end = share(count, member + 1); i < i##_end || meet(); i++)

/* `start`: the worker's number times 2^32, plus `team.job` when it was started */
static void *worker(void *start) {
    uint32_t job = (uint32_t)(uintptr_t)start;
    member = (int64_t)((uintptr_t)start >> 32);
    for (;;) {
        wait_for_change(&team.job, job, JOB_SPINS);
        job = team.job;
        members = job % MEMBERS;
        if (member < members) team.work(team.what);
    }
    return NULL;
}

/* A child process has no workers, and perhaps not the thread that used them. */
static void forget_workers(void) { memset(&team, 0, sizeof team); }

__attribute__((constructor)) static void at_load(void) { pthread_atfork(NULL, NULL, forget_workers); }

/* Runs work(what), which must end with a SHARED loop, in a team of at most `threads` threads, the caller included.

   Where other processes take the cores, members wait for one that is not running, and a team may take longer than one thread.
   The time of a single thread is estimated as the caller's time without waiting, times the members. Where a team takes
   longer, callers work alone for LOSS times the lost time. */
static void in_team(void (*work)(const void *), const void *what, int64_t threads) {
    uint64_t start = __rdtsc();
    if (threads < 2 || start < team.alone || atomic_flag_test_and_set(&team.taken)) {
        work(what);
        return;
    }
    for (pthread_t thread; team.workers < threads - 1 && team.workers < MEMBERS - 2; team.workers++) {
        uintptr_t number = (uintptr_t)(team.workers + 1);
        if (pthread_create(&thread, NULL, worker, (void *)(number << 32 | team.job)) != 0) break;
        pthread_detach(thread);
    }
    members = threads - 1 < team.workers ? threads : team.workers + 1;
    team.work = work;
    team.what = what;
    waited = 0;
    change(&team.job, (team.job / MEMBERS + 1) * MEMBERS + members);
    work(what);
    uint64_t end = __rdtsc(), took = end - start, alone = (took - waited) * members;
    if (took > alone) team.alone = end + LOSS * (took - alone);
    members = 1;
    atomic_flag_clear(&team.taken);
}

/* ---- sums over vectors ---- */

/* Indices into two vectors, divided into groups of 2 n numbers: the first (`second` = 0) or second n of every group. */
#define OF_GROUP(lane, n, second) ((lane) / (n) * 2 * (n) + (lane) % (n) + (second) * (n))
#define EIGHT(at, n, second)                                                                                             \
    OF_GROUP(at, n, second), OF_GROUP(at + 1, n, second), OF_GROUP(at + 2, n, second), OF_GROUP(at + 3, n, second),      \
        OF_GROUP(at + 4, n, second), OF_GROUP(at + 5, n, second), OF_GROUP(at + 6, n, second), OF_GROUP(at + 7, n, second)
#if LANES == 16
#define GROUPS(n, second) ((ivec){EIGHT(0, n, second), EIGHT(8, n, second)})
#else
#define GROUPS(n, second) ((ivec){EIGHT(0, n, second)})
#endif
#define HALVED(a, b, n) (__builtin_shuffle(a, b, GROUPS(n, 0)) + __builtin_shuffle(a, b, GROUPS(n, 1)))

/* The sum of each of LANES vectors, which are overwritten: the halves of two vectors are added into one. */
static inline vec sums_of(vec v[LANES]) {
#if LANES == 16
    for (int i = 0; i < 8; i++) v[i] = HALVED(v[2 * i], v[2 * i + 1], 8);
#endif
    for (int i = 0; i < 4; i++) v[i] = HALVED(v[2 * i], v[2 * i + 1], 4);
    for (int i = 0; i < 2; i++) v[i] = HALVED(v[2 * i], v[2 * i + 1], 2);
    return HALVED(v[0], v[1], 1);
}

static inline float sum_of(vec v) {
#if LANES == 16
    v = HALVED(v, v, 8);
#endif
    v = HALVED(v, v, 4);
    v = HALVED(v, v, 2);
    return v[0] + v[1];
}

/* e^x for x <= 0, and 0 below e^-87; within two units of the last place */
static inline vec exponential(vec x) {
    const vec magic = (vec){0} + 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vec shifted = x * 1.44269504f + magic, n = shifted - magic;
    vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = (vec){0} + 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uvec bits = (uvec)p + (((uvec)shifted - (uvec)magic) << 23);
    return (vec)((ivec)bits & (x > (vec){0} - 87.0f));
}

/* ---- products with weights ---- */

/* LANES weights from the number `i` on */
static inline __attribute__((always_inline)) vec weights_at(const void *w, int64_t i, const int kept) {
    if (kept == SINGLE) return *(const vec *)((const float *)w + i);
    const uint16_t *at = (const uint16_t *)w + i;
#if defined(__AVX512F__)
    __m256i narrow = _mm256_loadu_si256((const __m256i *)at);
    return kept == HALF ? (vec)_mm512_cvtph_ps(narrow) : (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16);
#else
    __m128i narrow = _mm_loadu_si128((const __m128i *)at);
    return kept == HALF ? (vec)_mm256_cvtph_ps(narrow) : (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16);
#endif
}

static inline __attribute__((always_inline)) void tile(const int m, const int kept, const void *restrict w,
                                                       const float *restrict x, int64_t stride, int64_t inputs, vec sums[][2]) {
    const int64_t each = kept == SINGLE ? sizeof(float) : sizeof(uint16_t);
    vec own[TILE][2];
    for (int r = 0; r < m; r++) own[r][0] = own[r][1] = (vec){0};
    for (int64_t i = 0; i < inputs; i++) {
        vec first = weights_at(w, i * PANEL, kept), second = weights_at(w, i * PANEL + LANES, kept);
        const char *soon = (const char *)w + i * PANEL * each + AHEAD;
        __builtin_prefetch(soon);
        if (PANEL * each > LINE) __builtin_prefetch(soon + LINE);
#pragma GCC unroll 12
        for (int r = 0; r < m; r++) {
            float number = x[r * stride + i];
            own[r][0] += first * number;
            own[r][1] += second * number;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < m; r++) {
        sums[r][0] += own[r][0];
        sums[r][1] += own[r][1];
    }
}

/* `first`: the number of the panel's first output */
static void panel_times_rows(const Product *p, int64_t first, int m, const float *x, int64_t stride, vec sums[][2]) {
    for (int64_t i = 0; i < p->inputs; i += PART) {
        int64_t n = p->inputs - i < PART ? p->inputs - i : PART, at = first * p->inputs + i * PANEL;
        const void *w = p->kept == SINGLE ? (const float *)p->weight + at : (const void *)((const uint16_t *)p->weight + at);
        switch (m) { /* the number of rows is a constant in each */
#define ROWS(k)                                                             \
    case k:                                                                 \
        if (p->kept == SINGLE) tile(k, SINGLE, w, x + i, stride, n, sums);  \
        else if (p->kept == HALF) tile(k, HALF, w, x + i, stride, n, sums); \
        else tile(k, BFLOAT, w, x + i, stride, n, sums);                    \
        break;
            ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#if TILE > 6
            ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif
        }
    }
}

/* GELU, x/2 (1 + erf(x / sqrt 2)), with erf after Abramowitz and Stegun 7.1.26: wrong by at most 2e-7 times x */
static inline vec gelu(vec x) {
    vec away = (vec)((ivec)x & INT32_MAX) * 0.70710678f, t = 1.0f / (1.0f + away * 0.3275911f);
    vec p = t * 1.061405429f - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    vec erf = 1.0f - p * t * exponential(-away * away);
    return 0.5f * x * (1.0f + (vec)((ivec)erf | ((ivec)x & INT32_MIN)));
}

/* 1 / (1 + e^-x), by e^-|x|, which does not overflow */
static inline vec sigmoid(vec x) {
    vec small = exponential((vec)((ivec)x | INT32_MIN)), large = 1.0f / (1.0f + small);
    ivec below = x < 0;
    return (vec)((below & (ivec)(small * large)) | (~below & (ivec)large));
}

static inline vec activated(vec x, int64_t activation) {
    if (activation == RELU) return (vec)((ivec)x & (x > 0));
    if (activation == SILU) return x * sigmoid(x);
    /* x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and 1 + tanh(z) is twice the sigmoid of 2 z */
    if (activation == GELU_TANH) return x * sigmoid(x * (1.59576912f + 0.07135481f * x * x));
    return activation == GELU ? gelu(x) : x;
}

/* Rounds rows of inputs, each by a scale of its own, so that rows do not depend on each other. */
static void quantise(const float *x, int64_t x_stride, int64_t rows, int64_t inputs, Levels *levels) {
    SHARED(r, rows) {
        const float *from = x + r * x_stride;
        uint8_t *to = levels->bytes + r * levels->stride;
        vec peaks = {0};
        int64_t i = 0;
        for (; i + LANES <= inputs; i += LANES) {
            vec away = (vec)((ivec)*(const vec *)(from + i) & INT32_MAX);
            ivec higher = away > peaks;
            peaks = (vec)((higher & (ivec)away) | (~higher & (ivec)peaks));
        }
        float peak = 0;
        for (int lane = 0; lane < LANES; lane++) peak = peaks[lane] > peak ? peaks[lane] : peak;
        for (; i < inputs; i++) peak = fabsf(from[i]) > peak ? fabsf(from[i]) : peak;
        float scale = peak > 0 ? LEVELS / peak : 0;
        for (i = 0; i + LANES <= inputs; i += LANES) {
            ivec rounded = __builtin_convertvector(*(const vec *)(from + i) * scale + (ZERO + 0.5f), ivec);
            *(bvec *)(to + i) = __builtin_convertvector(rounded, bvec);
        }
        for (; i < inputs; i++) to[i] = (uint8_t)(from[i] * scale + (ZERO + 0.5f));
        levels->peaks[r] = peak;
    }
}

#if defined(__AVX512F__)
#define WITH_VNNI __attribute__((target("avx512vnni")))

WITH_VNNI static inline __attribute__((always_inline)) void tile_of_bytes(const int m, const int8_t *restrict w,
                                                                          const uint8_t *restrict x, int64_t stride,
                                                                          int64_t inputs, ivec sums[][2]) {
    ivec own[TILE][2];
    for (int r = 0; r < m; r++) own[r][0] = own[r][1] = (ivec){0};
    for (int64_t i = 0; i < inputs; i += 4) {
        const int8_t *at = w + i * PANEL;
        ivec first = *(const ivec *)at, second = *(const ivec *)(at + 4 * LANES);
        __builtin_prefetch(at + AHEAD);
        __builtin_prefetch(at + AHEAD + LINE);
#pragma GCC unroll 12
        for (int r = 0; r < m; r++) {
            int32_t four;
            memcpy(&four, x + r * stride + i, sizeof four);
            __m512i bytes = _mm512_set1_epi32(four);
            own[r][0] = (ivec)_mm512_dpbusd_epi32((__m512i)own[r][0], bytes, (__m512i)first);
            own[r][1] = (ivec)_mm512_dpbusd_epi32((__m512i)own[r][1], bytes, (__m512i)second);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < m; r++) {
        sums[r][0] = own[r][0];
        sums[r][1] = own[r][1];
    }
}

WITH_VNNI static void panel_times_bytes(int m, const int8_t *w, const uint8_t *x, int64_t stride, int64_t inputs,
                                        ivec sums[][2]) {
    switch (m) {
#define BYTES(k) \
    case k: tile_of_bytes(k, w, x, stride, inputs, sums); break;
        BYTES(1) BYTES(2) BYTES(3) BYTES(4) BYTES(5) BYTES(6)
        BYTES(7) BYTES(8) BYTES(9) BYTES(10) BYTES(11) BYTES(12)
    }
}
#else
static void panel_times_bytes(int m, const int8_t *w, const uint8_t *x, int64_t stride, int64_t inputs, ivec sums[][2]) {
    (void)m, (void)w, (void)x, (void)stride, (void)inputs, (void)sums; /* see aggdec_quantises */
}
#endif

/* One panel of x W^T + b for at most TILE rows: sums in chunks, or of integers. */
static void panel_of(const Product *p, int64_t first, const float *x, int64_t x_stride, int64_t from, int64_t to,
                     const Levels *levels, vec found[][2]) {
    const vec *bias = (const vec *)(p->bias + first);
    if (p->scales) {
        ivec sums[TILE][2];
        memset(sums, 0, sizeof sums);
        int64_t inputs = (p->inputs + 3) / 4 * 4;
        panel_times_bytes((int)(to - from), (const int8_t *)p->weight + first * inputs,
                          levels->bytes + from * levels->stride, levels->stride, inputs, sums);
        const ivec *offsets = (const ivec *)(p->offsets + first);
        const vec *scales = (const vec *)(p->scales + first);
        for (int64_t r = 0; r < to - from; r++)
            for (int half = 0; half < 2; half++) {
                vec whole = __builtin_convertvector(sums[r][half] - offsets[half], vec) * scales[half];
                found[r][half] = whole * levels->peaks[from + r] + bias[half];
            }
        return;
    }
    memset(found, 0, sizeof(vec) * 2 * (to - from));
    panel_times_rows(p, first, (int)(to - from), x + from * x_stride, x_stride, found);
    for (int64_t r = 0; r < to - from; r++)
        for (int half = 0; half < 2; half++) found[r][half] += bias[half];
}

/* y = x W^T + b (+ other, a residual), or y = activation(x W^T + b) (* other, a gate); `other` may be y */
static void product(const Product *p, const float *x, int64_t x_stride, int64_t rows, float *y, int64_t y_stride,
                    int64_t activation, const float *other, Levels *levels) {
    int64_t panels = (p->outputs + PANEL - 1) / PANEL, tiles = (rows + TILE - 1) / TILE;
    if (p->scales) quantise(x, x_stride, rows, p->inputs, levels);
    SHARED(panel, panels) {
        int64_t first = panel * PANEL, wide = p->outputs - first < PANEL ? p->outputs - first : PANEL;
        for (int64_t number = 0; number < tiles; number++) {
            int64_t from = rows * number / tiles, to = rows * (number + 1) / tiles;
            vec found[TILE][2];
            panel_of(p, first, x, x_stride, from, to, levels, found);
            for (int64_t r = from; r < to; r++) {
                float values[PANEL], *to_y = y + r * y_stride + first;
                for (int half = 0; half < 2; half++)
                    *(vec *)(values + half * LANES) = activated(found[r - from][half], activation);
                const float *own = other ? other + r * y_stride + first : NULL;
                if (own && activation)
                    for (int64_t j = 0; j < wide; j++) to_y[j] = own[j] * values[j];
                else
                    for (int64_t j = 0; j < wide; j++) to_y[j] = own ? own[j] + values[j] : values[j];
            }
        }
    }
}

/* ---- normalisation and attention ---- */

static void normalise(const Norm *norm, const float *x, int64_t rows, int64_t dim, int64_t stride, float *y) {
    SHARED(r, rows) {
        const float *from = x + r * stride;
        float *to = y + r * stride;
        int64_t whole = dim - dim % LANES, i;
        vec sum = {0}, squares = {0};
        float mean = 0, variance;
        if (norm->bias || !norm->gain) {
            for (i = 0; i < whole; i += LANES) sum += *(const vec *)(from + i);
            mean = sum_of(sum);
            for (; i < dim; i++) mean += from[i];
            mean /= dim;
        }
        for (i = 0; i < whole; i += LANES) {
            vec away = *(const vec *)(from + i) - mean;
            squares += away * away;
        }
        variance = sum_of(squares);
        for (; i < dim; i++) variance += (from[i] - mean) * (from[i] - mean);
        float scale = 1 / sqrtf(variance / dim + (float)norm->epsilon);
        for (i = 0; i < dim; i++) {
            float value = (from[i] - mean) * scale;
            if (norm->gain) value *= norm->gain[i];
            to[i] = norm->bias ? value + norm->bias[i] : value;
        }
    }
}

/* Attention of one query of a head to `keys` keys; `memory` has the key and the value of a position, `size` numbers each,
   every `step` numbers. `scale`: of scores. `places`: the position of each key; NULL: the first positions. `hidden`: which
   positions are hidden; or NULL. `bias`: added to the score of each key; or NULL. */
static void attend(const float *restrict query, const float *restrict memory, int64_t size, int64_t step, float scale,
                   int64_t keys, const int64_t *restrict places, const uint8_t *restrict hidden, const float *restrict bias,
                   float *restrict scores, float *restrict found) {
#define PLACE(j) (memory + (places ? places[j] : (j)) * step)
    int64_t whole = size - size % LANES;
    float highest = -INFINITY;
    for (int64_t first = 0; first < keys; first += LANES) {
        vec sums[LANES] = {0};
        int64_t count = keys - first < LANES ? keys - first : LANES;
        for (int64_t j = 0; j < count; j++) {
            const float *key = PLACE(first + j);
            for (int64_t i = 0; i < whole; i += LANES) sums[j] += *(const vec *)(query + i) * *(const vec *)(key + i);
        }
        vec dots = whole ? sums_of(sums) : (vec){0};
        memcpy(scores + first, &dots, sizeof dots);
        for (int64_t j = first; j < first + LANES; j++) {
            if (j < keys && whole < size) {
                const float *key = PLACE(j);
                for (int64_t i = whole; i < size; i++) scores[j] += query[i] * key[i];
            }
            scores[j] = j >= keys || (hidden && hidden[j]) ? -INFINITY : scores[j] * scale + (bias ? bias[j] : 0);
            highest = scores[j] > highest ? scores[j] : highest;
        }
    }
    vec total = {0};
    for (int64_t j = 0; j < keys; j += LANES) {
        vec *part = (vec *)(scores + j);
        *part = exponential(*part - highest);
        total += *part;
    }
    float share = 1 / sum_of(total);
    int64_t i = 0;
#define FIND(n)                                                                                                          \
    for (; i + n * LANES <= whole; i += n * LANES) {                                                                     \
        vec sums[n] = {0};                                                                                               \
        for (int64_t j = 0; j < keys; j++) {                                                                             \
            const float *value = PLACE(j) + size + i;                                                                    \
            for (int k = 0; k < n; k++) sums[k] += *(const vec *)(value + k * LANES) * scores[j];                        \
        }                                                                                                                \
        for (int k = 0; k < n; k++) *(vec *)(found + i + k * LANES) = sums[k] * share;                                   \
    }
    FIND(4)
    FIND(1)
    for (; i < size; i++) {
        float sum = 0;
        for (int64_t j = 0; j < keys; j++) sum += PLACE(j)[size + i] * scores[j];
        found[i] = sum * share;
    }
}

/* ---- memory for the work on a block ---- */

/* One allocation: the caller frees `x`, which is NULL where there is not enough memory. The strides of x and normed are
   D + GAP, of attended the width of all heads + GAP, of qkv three times this width + GAP, of inner its width + GAP. */
typedef struct {
    float *x, *normed, *attended, *qkv, *inner;
    float *scores; /* `each` numbers for each thread */
    int64_t each;
    Levels levels;
} Work;

static Work work_for(const Stack *s, int64_t tokens, int64_t keys, int64_t threads) {
    int64_t width = s->heads * s->size, of_heads = width + GAP;
    int64_t stride = s->dim + GAP, wide = 3 * width + GAP, inner = s->inner + GAP, each = keys + 2 * LANES;
    int64_t widest = (s->inner > s->dim ? s->inner : s->dim) + 64;
    if (widest < width + 64) widest = width + 64;
    int64_t floats = tokens * (2 * stride + of_heads + wide + inner + 1) + threads * each;
    Work work = {.x = malloc(sizeof(float) * floats + tokens * widest), .each = each};
    if (work.x) {
        work.normed = work.x + tokens * stride;
        work.attended = work.normed + tokens * stride;
        work.qkv = work.attended + tokens * of_heads;
        work.inner = work.qkv + tokens * wide;
        work.scores = work.inner + tokens * inner;
        work.levels.peaks = work.scores + threads * each;
        work.levels.bytes = (uint8_t *)(work.x + floats);
        work.levels.stride = widest;
    }
    return work;
}

/* inner = activation(fc1(x)), times the gate of x where a layer has one; the stride of x is D + GAP */
static void feed_forward(const Stack *s, const Layer *layer, const float *x, int64_t rows, Work *work) {
    const int64_t from = s->dim + GAP, to = s->inner + GAP;
    float *inner = work->inner, *gate = NULL;
    if (layer->gate.weight) {
        product(&layer->gate, x, from, rows, inner, to, NO_ACTIVATION, NULL, &work->levels);
        gate = inner;
    }
    product(&layer->fc1, x, from, rows, inner, to, s->activation, gate, &work->levels);
}

/* What is added to the scores of a head's keys for a query at this position; NULL: nothing. */
static inline const float *bias_of(Bias bias, int64_t head, int64_t position) {
    return bias.own ? bias.own + head * bias.step - position : NULL;
}

/* ---- a decoder's layers ---- */

static inline int64_t row_of(const Block *b, int64_t token) { return b->rows ? b->rows[token] : token / b->width; }
static inline int64_t column_of(const Block *b, int64_t token) { return b->columns ? b->columns[token] : token % b->width; }
static inline int64_t position_of(const Block *b, int64_t token) {
    return b->paths ? b->depths[token] : b->starts[row_of(b, token)] + column_of(b, token);
}
static inline int64_t slot_of(const Block *b, int64_t token) {
    int64_t position = position_of(b, token);
    return b->paths ? b->paths[token * b->longest + position] : position;
}
/* the number of slots that a token attends to */
static inline int64_t keys_of(const Block *b, int64_t token) {
    if (b->paths) return b->depths[token] + 1;
    return (b->reach ? b->reach[row_of(b, token) * b->width + column_of(b, token)] : slot_of(b, token)) + 1;
}

typedef struct {
    const Stack *stack;
    const Block *block;
    Work work;
} Decoding;

static void run_decoder(const void *decoding) {
    const Stack *d = ((const Decoding *)decoding)->stack;
    const Block *b = ((const Decoding *)decoding)->block;
    Work work = ((const Decoding *)decoding)->work;
    float *x = work.x, *normed = work.normed, *attended = work.attended, *qkv = work.qkv, *inner = work.inner;
    float *scores = work.scores + member * work.each;
    const int64_t dim = d->dim, heads = d->heads, size = d->size, width = heads * size;
    const int64_t stride = dim + GAP, of_heads = width + GAP, wide = 3 * width + GAP;
    const float scale = (float)d->scale;
    const int64_t returned = b->wanted ? b->tokens / b->width * b->wanted_columns : b->tokens;
    int64_t tokens = b->tokens; /* tokens with an output of the layer */
    SHARED(n, tokens) memcpy(x + n * stride, b->x + n * dim, dim * sizeof *x);

    for (int64_t number = 0; number < d->count; number++) {
        const Layer *layer = d->layers + number;
        float *memory = b->memory + number * b->memory_layer;
        const float *cross = b->cross + number * b->cross_layer, *input = x;
        const int64_t *wanted = number == d->count - 1 ? b->wanted : NULL;

        if (d->norm_first) {
            normalise(&layer->self_norm, x, tokens, dim, stride, normed);
            input = normed;
        }
        product(&layer->self_qkv, input, stride, tokens, qkv, wide, NO_ACTIVATION, NULL, &work.levels);
        SHARED(n, tokens)
            for (int64_t h = 0; h < heads; h++)
                memcpy(memory + row_of(b, n) * b->memory_row + (h * b->capacity + slot_of(b, n)) * 2 * size,
                       qkv + n * wide + width + h * 2 * size, 2 * size * sizeof *memory);
        if (wanted) tokens = returned;
#define TOKEN(m) (wanted ? (m) / b->wanted_columns * b->width + wanted[m] : (m))
        if (wanted) { /* other inputs are not read again */
            SHARED(m, tokens) memcpy(normed + m * stride, x + TOKEN(m) * stride, dim * sizeof *x);
            SHARED(m, tokens) memcpy(x + m * stride, normed + m * stride, dim * sizeof *x);
        }
        SHARED(part, tokens * heads) {
            int64_t m = part / heads, h = part % heads, n = TOKEN(m);
            attend(qkv + n * wide + h * size, memory + row_of(b, n) * b->memory_row + h * b->capacity * 2 * size, size,
                   2 * size, scale, keys_of(b, n), b->paths ? b->paths + n * b->longest : NULL, NULL,
                   bias_of(b->bias, h, position_of(b, n)), scores, attended + m * of_heads + h * size);
        }
        product(&layer->self_out, attended, of_heads, tokens, x, stride, NO_ACTIVATION, x, &work.levels);

        normalise(d->norm_first ? &layer->cross_norm : &layer->self_norm, x, tokens, dim, stride, normed);
        product(&layer->cross_q, normed, stride, tokens, qkv, wide, NO_ACTIVATION, NULL, &work.levels);
        SHARED(part, tokens * heads) {
            int64_t m = part / heads, h = part % heads, row = row_of(b, TOKEN(m));
            attend(qkv + m * wide + h * size, cross + row * b->cross_row + h * b->source * 2 * size, size, 2 * size, scale,
                   b->source, NULL, b->padding ? b->padding + row * b->source : NULL, NULL, scores,
                   attended + m * of_heads + h * size);
        }
        product(&layer->cross_out, attended, of_heads, tokens, x, stride, NO_ACTIVATION, d->norm_first ? x : normed, &work.levels);

        normalise(d->norm_first ? &layer->final_norm : &layer->cross_norm, x, tokens, dim, stride, normed);
        feed_forward(d, layer, normed, tokens, &work);
        product(&layer->fc2, inner, d->inner + GAP, tokens, x, stride, NO_ACTIVATION, d->norm_first ? x : normed, &work.levels);
        if (!d->norm_first) normalise(&layer->final_norm, x, tokens, dim, stride, x);
    }
    if (d->last) normalise(d->last, x, tokens, dim, stride, x);
    SHARED(m, tokens) memcpy(b->y + m * dim, x + m * stride, dim * sizeof *x);
}

/* ---- an encoder's layers ---- */

/* the input of an encoder: a batch without padding */
typedef struct {
    int64_t *places; /* N, the index of each token in B x S */
    int64_t *firsts; /* B + 1, the first token of each row, and N */
    int64_t width;   /* S */
} Text;

/* The tokens of B x S without padding, row by row. The caller frees `places`, which is NULL without enough memory. */
static Text text_of(const uint8_t *padding, int64_t rows, int64_t width) {
    Text text = {.places = malloc(sizeof(int64_t) * (rows * width + rows + 1)), .width = width};
    if (!text.places) return text;
    text.firsts = text.places + rows * width;
    int64_t tokens = 0;
    for (int64_t place = 0; place < rows * width; place++) {
        if (place % width == 0) text.firsts[place / width] = tokens;
        if (!padding || !padding[place]) text.places[tokens++] = place;
    }
    text.firsts[rows] = tokens;
    return text;
}

typedef struct {
    const Stack *stack;
    const Text *text;
    const float *x;
    float *y;
    const uint8_t *padding;
    Bias bias;
    int64_t rows, tokens;
    Work work;
} Encoding;

static void run_encoder(const void *encoding) {
    const Encoding *given = encoding;
    const Stack *e = given->stack;
    const Text *text = given->text;
    const uint8_t *padding = given->padding;
    const int64_t tokens = given->tokens;
    Work work = given->work;
    float *x = work.x, *normed = work.normed, *attended = work.attended, *qkv = work.qkv, *inner = work.inner;
    float *scores = work.scores + member * work.each;
    const int64_t dim = e->dim, heads = e->heads, size = e->size, width = heads * size;
    const int64_t stride = dim + GAP, of_heads = width + GAP, wide = 3 * width + GAP;
    SHARED(n, tokens) memcpy(x + n * stride, given->x + text->places[n] * dim, dim * sizeof *x);
    for (int64_t number = 0; number < e->count; number++) {
        const Layer *layer = e->layers + number;
        if (e->norm_first) normalise(&layer->self_norm, x, tokens, dim, stride, normed);
        product(&layer->self_qkv, e->norm_first ? normed : x, stride, tokens, qkv, wide, NO_ACTIVATION, NULL, &work.levels);
        SHARED(part, tokens * heads) {
            int64_t n = part / heads, h = part % heads;
            const int64_t *row = text->firsts + text->places[n] / text->width;
            attend(qkv + n * wide + h * size, qkv + row[0] * wide + width + h * 2 * size, size, wide, (float)e->scale,
                   row[1] - row[0], NULL, NULL, bias_of(given->bias, h, n - row[0]), scores, attended + n * of_heads + h * size);
        }
        product(&layer->self_out, attended, of_heads, tokens, x, stride, NO_ACTIVATION, x, &work.levels);
        normalise(e->norm_first ? &layer->final_norm : &layer->self_norm, x, tokens, dim, stride, normed);
        feed_forward(e, layer, normed, tokens, &work);
        product(&layer->fc2, inner, e->inner + GAP, tokens, x, stride, NO_ACTIVATION, e->norm_first ? x : normed, &work.levels);
        if (!e->norm_first) normalise(&layer->final_norm, x, tokens, dim, stride, x);
    }
    if (e->last) normalise(e->last, x, tokens, dim, stride, x);
    if (padding) {
        SHARED(place, given->rows * text->width)
            if (padding[place]) memset(given->y + place * dim, 0, dim * sizeof *x);
    }
    SHARED(n, tokens) memcpy(given->y + text->places[n] * dim, x + n * stride, dim * sizeof *x);
}

/* y = the layers' output for x, both B x S x D; `padding`: B x S, the hidden positions, or NULL; y is 0 there. `bias`,
   `step`: see `Bias`. Returns 0, or 1 where there is not enough memory. */
int64_t aggdec_encode(const Stack *e, const float *x, float *y, const uint8_t *padding, const float *bias, int64_t step,
                      int64_t rows, int64_t width, int64_t threads) {
    Text text = text_of(padding, rows, width);
    if (!text.places) return 1;
    const int64_t tokens = text.firsts[rows];
    Work work = work_for(e, tokens, width, threads);
    const int64_t failed = !work.x;
    if (!failed) in_team(run_encoder, &(Encoding){e, &text, x, y, padding, {bias, step}, rows, tokens, work}, threads);
    free(text.places);
    free(work.x);
    return failed;
}

/* Returns 0, or 1 where there is not enough memory. */
int64_t aggdec_decode(const Stack *d, const Block *b) {
    int64_t tokens = b->tokens, keys = b->source;
    for (int64_t n = 0; n < tokens; n++) {
        int64_t end = keys_of(b, n);
        keys = end > keys ? end : keys;
    }
    Work work = work_for(d, tokens, keys, b->threads);
    if (!work.x) return 1;
    in_team(run_decoder, &(Decoding){d, b, work}, b->threads);
    free(work.x);
    return 0;
}

typedef struct {
    const Product *product;
    const float *x;
    float *copy; /* x with gaps between the rows; or NULL */
    float *y;
    int64_t stride, rows, activation; /* stride: of the copy */
    Levels levels;
} Multiplying;

static void multiply(const void *multiplying) {
    const Multiplying *m = multiplying;
    const int64_t inputs = m->product->inputs;
    Levels levels = m->levels;
    if (m->copy) SHARED(r, m->rows) memcpy(m->copy + r * m->stride, m->x + r * inputs, inputs * sizeof *m->x);
    product(m->product, m->copy ? m->copy : m->x, m->copy ? m->stride : inputs, m->rows, m->y, m->product->outputs,
            m->activation, NULL, &levels);
}

/* y = activation(x W^T + b) of `rows` contiguous rows. Returns 0, or 1 where there is not enough memory. */
int64_t aggdec_product(const Product *p, const float *x, float *y, int64_t rows, int64_t activation, int64_t threads) {
    int64_t stride = p->inputs;
    int apart = !p->scales && rows > TILE && stride % 512 == 0;
    Levels levels = {.stride = p->inputs + 64};
    void *own = NULL; /* inputs with gaps between the rows, or as bytes */
    if (apart) own = malloc(sizeof(float) * rows * (stride += GAP));
    if (p->scales) own = malloc(rows * (sizeof(float) + levels.stride));
    if ((apart || p->scales) && !own) return 1;
    if (p->scales) {
        levels.peaks = own;
        levels.bytes = (uint8_t *)(levels.peaks + rows);
    }
    in_team(multiply, &(Multiplying){p, x, apart ? own : NULL, y, stride, rows, activation, levels}, threads);
    free(own);
    return 0;
}

/* ---- the best of many scores ---- */

/* the result of a comparison as bits */
static inline unsigned set_in(ivec found) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)found, (__m512i)found);
#else
    return (unsigned)_mm256_movemask_ps((__m256)found);
#endif
}

/* Inserts x into the `held` highest scores, in descending order, behind equal ones. Returns their number, at most `count`. */
static inline int64_t take_in(float x, int64_t place, int64_t held, int64_t count, float *values, int64_t *places) {
    if (held == count && !(x > values[held - 1])) return held;
    int64_t at = held < count ? held++ : count - 1;
    for (; at > 0 && x > values[at - 1]; at--) {
        values[at] = values[at - 1];
        places[at] = places[at - 1];
    }
    values[at] = x;
    places[at] = place;
    return held;
}

/* The `count` highest of `width` scores and their places, in descending order, equal ones in order of place. NaN and the
   scores at the places `one` and `other` (-1: none) count as minus infinity. */
static void best_of_row(const float *from, int64_t width, int64_t count, int64_t one, int64_t other, float *values,
                        int64_t *places) {
    const int64_t step = 4 * LANES;
    int64_t held = 0, i = 0;
#define TAKE_IN(j)                                                                                                          \
    held = take_in(from[j] == from[j] && (j) != one && (j) != other ? from[j] : -INFINITY, j, held, count, values, places)
    for (; i < count; i++) TAKE_IN(i);
    for (; i + step <= width; i += step) {
        const vec *four = (const vec *)(from + i);
        vec least = (vec){0} + values[count - 1];
        if (!set_in((four[0] > least) | (four[1] > least) | (four[2] > least) | (four[3] > least))) continue;
        for (int part = 0; part < 4; part++)
            for (unsigned higher = set_in(four[part] > least); higher; higher &= higher - 1)
                TAKE_IN(i + part * LANES + __builtin_ctz(higher));
    }
    for (; i < width; i++) TAKE_IN(i);
}

/* log of the sum of e^(x - highest) */
static float log_sum(const float *x, int64_t width, float highest) {
    vec sums[4] = {0}, rest = (vec){0} - INFINITY;
    int64_t i = 0;
    for (; i + 4 * LANES <= width; i += 4 * LANES)
        for (int part = 0; part < 4; part++) sums[part] += exponential(*(const vec *)(x + i + part * LANES) - highest);
    for (; i + LANES <= width; i += LANES) sums[0] += exponential(*(const vec *)(x + i) - highest);
    for (int lane = 0; i < width; i++) rest[lane++] = x[i] - highest;
    return logf(sum_of((sums[0] + sums[1]) + (sums[2] + sums[3] + exponential(rest))));
}

typedef struct {
    const float *scores;
    int64_t rows, width, count, never, late;
    const uint8_t *early;
    float *values;
    int64_t *places;
    float *normals; /* or NULL: the scores are not normalised */
} Choice;

static void choose(const void *choice) {
    const Choice *c = choice;
    SHARED(row, c->rows) {
        const float *from = c->scores + row * c->width;
        float *own = c->values + row * c->count, *normal = c->normals + 2 * row;
        const int64_t other = c->early && c->early[row] ? c->late : c->never;
        best_of_row(from, c->width, c->count, c->never, other, own, c->places + row * c->count);
        if (!c->normals) continue;
        normal[0] = fmaxf(own[0], fmaxf(from[c->never], from[other]));
        normal[1] = log_sum(from, c->width, normal[0]);
        for (int64_t i = 0; i < c->count; i++) {
            own[i] = own[i] - normal[0] - normal[1];
            if (own[i] != own[i]) own[i] = -INFINITY;
        }
    }
}

/* `best_of_row` of each row of `width` scores; `count` is at most `width`. */
void aggdec_best(const float *scores, int64_t rows, int64_t width, int64_t count, float *values, int64_t *places,
                 int64_t threads) {
    Choice choice = {scores, rows, width, count, -1, -1, NULL, values, places, NULL};
    in_team(choose, &choice, rows > 1 && rows * width > 20000 ? threads : 1);
}

/* `aggdec_best` of log-probabilities, with the token `never` banned in all rows and `late` in the rows that are `early` (or
   NULL). `normals`: rows x 2, two numbers that are subtracted from a row's scores one after the other to normalise them. */
void aggdec_likeliest(const float *scores, int64_t rows, int64_t width, int64_t count, int64_t never, int64_t late,
                      const uint8_t *early, float *values, int64_t *places, float *normals, int64_t threads) {
    Choice choice = {scores, rows, width, count, never, late, early, values, places, normals};
    in_team(choose, &choice, rows > 1 && rows * width > 20000 ? threads : 1);
}

/* ---- embeddings ---- */

typedef struct {
    const float *words;
    int64_t symbols;
    float scale;
    const float *further;
    int64_t more;
    const float *places;
    int64_t limit;
    const int64_t *tokens, *positions;
    int64_t first, count, dim;
    float *x;
    _Atomic int64_t *unknown;
} Reading;

static void look_up(const void *reading) {
    const Reading *r = reading;
    const int64_t dim = r->dim;
    SHARED(n, r->count) {
        const int64_t token = r->tokens[n], position = r->positions ? r->positions[n] : r->first + n;
        if (token < 0 || token >= r->symbols + r->more) {
            *r->unknown = 1;
            continue;
        }
        const float by = token < r->symbols ? r->scale : 1;
        const float *word = token < r->symbols ? r->words + token * dim : r->further + (token - r->symbols) * dim;
        const float *place = r->places ? r->places + (position < r->limit ? position : r->limit - 1) * dim : NULL;
        float *own = r->x + n * dim;
        for (int64_t i = 0; i < dim; i++) own[i] = by * word[i];
        for (int64_t i = 0; place && i < dim; i++) own[i] += place[i];
    }
}

/* Token plus position embeddings of N tokens. A token below V has the row of `words` (V x D) times `scale`, others the
   row of `further` (F x D). A position has the row of `places` (P x D, or NULL: none), or the last row behind the table;
   `positions` NULL: consecutive positions from `first`. Returns 0, or 1 where a token is not below V + F. */
int64_t aggdec_embed(const float *words, int64_t symbols, double scale, const float *further, int64_t more, const float *places,
                     int64_t limit, const int64_t *tokens, const int64_t *positions, int64_t first, int64_t count, int64_t dim,
                     float *x, int64_t threads) {
    _Atomic int64_t unknown = 0;
    Reading reading = {words, symbols, (float)scale, further, more, places, limit, tokens, positions,
                       first, count, dim, x, &unknown};
    in_team(look_up, &reading, count * dim > 50000 ? threads : 1);
    return unknown;
}

/* ---- the draft of a transition head ---- */

typedef struct {
    const float *before, *after; /* V x H each, tables of the token before and of the candidate */
    const float *here;           /* rows x k x H, the term of each position's features */
    const int64_t *candidates;   /* rows x k x C, tokens */
    const float *scores;         /* rows x k x C, scores of the candidates without transitions */
    const int64_t *last;         /* rows, the token before each block */
    int64_t *tokens;             /* rows x k, the draft */
    int64_t rows, k, count, dim; /* count: C; dim: H */
} Chain;

/* Chooses position by position the candidate with the highest score + relu(before[token before] + here) .
   after[candidate]; the first of equal ones. */
void aggdec_chain(const Chain *c) {
    const int64_t dim = c->dim, whole = dim - dim % LANES;
    for (int64_t row = 0; row < c->rows; row++) {
        int64_t token = c->last[row];
        for (int64_t place = row * c->k; place < (row + 1) * c->k; place++) {
            const float *before = c->before + token * dim, *here = c->here + place * dim;
            float highest = -INFINITY, hidden[dim];
            for (int64_t i = 0; i < dim; i++) hidden[i] = before[i] + here[i] > 0 ? before[i] + here[i] : 0;
            token = c->candidates[place * c->count];
            for (int64_t j = 0; j < c->count; j++) {
                const int64_t candidate = c->candidates[place * c->count + j];
                const float *after = c->after + candidate * dim;
                vec sum = {0};
                int64_t i;
                for (i = 0; i < whole; i += LANES) sum += *(const vec *)(hidden + i) * *(const vec *)(after + i);
                float score = c->scores[place * c->count + j] + sum_of(sum);
                for (; i < dim; i++) score += hidden[i] * after[i];
                if (score > highest) highest = score, token = candidate;
            }
            c->tokens[place] = token;
        }
    }
}

/* Whether this processor has products of integers. */
int64_t aggdec_quantises(void) {
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512vnni") != 0;
#else
    return 0;
#endif
}

const int64_t aggdec_panel = PANEL;
const uint32_t aggdec_source = SOURCE; /* the checksum of the sources, defined by setup.py */
