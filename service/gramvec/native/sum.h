/* Sums of rows of a table, and rows of length 1. Nothing here knows of Python.
 *
 * Additions go in one order however wide the machine's vectors are, and nothing is fused (-ffp-contract=off): all
 * machines of one architecture give the same bytes.
 */
#ifndef GRAMVEC_SUM_H
#define GRAMVEC_SUM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "rows.h"

/* One binary holds the plain loops for three widths of vector, and the loader takes the machine's: before a sanitizer is
 * ready for it. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_CPU
#endif

/* Rows are asked for so far ahead of their sum: on a Zen 5 a text's int8 rows take 2.4 us with one, 1.2 with 28. */
enum { MAX_ROWS_AHEAD = 28, MAX_BYTES_AHEAD = 16000 };
/* Rows with weights are read in blocks of this many bytes; what the last block reads beyond a row is dropped. */
enum { BLOCK = 64 };
/* int32 holds at least this many rows of 127 * 128. */
enum { ROWS_IN_INT32 = 1 << 16 };

enum { FOUR_BITS = 0, INT8 = 1, FLOAT16 = 2, FLOAT32 = 4 }; /* bytes of a number */

typedef struct Table Table;
/* total[c] += the sum of the rows ids[from] to ids[to - 1]; returns the position of an id that is no row, or -1. */
typedef int64_t (*SumRows)(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *total);

struct Table {
    const char *rows;
    int64_t n_rows, dimension, stride, width; /* bytes from row to row; bytes of a row with a weight that are read */
    int64_t ahead;
    int type;
    const float *scales;    /* of each row, or NULL */
    const uint8_t *weights; /* what each row counts, in units of `step`: of int8 1 to 128, of four bits 0 to 127; or NULL */
    float step;
    int mean;
    const float *columns, *bias; /* or NULL */
    SumRows sum;
};

static inline int is_row(const Table *t, int32_t row) { return row >= 0 && row < t->n_rows; }

static inline const char *row_of(const Table *t, int32_t row) { return t->rows + (int64_t)row * t->stride; }

/* The row that will be wanted soon; an id that is no row gives an address that no one reads. */
static inline const char *row_ahead(const Table *t, const int32_t *ids, int64_t at, int64_t last) {
    return row_of(t, ids[at + t->ahead < last ? at + t->ahead : last]);
}

static inline void prefetch(const Table *t, const char *row) {
    PREFETCH_ROW(row, t->stride, 3);
}

/* ---- int8 rows with weights, added as integers: exact, so that no order and no width of vectors shows. ---- */

FOR_EACH_CPU
static int64_t sum_weighted(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *sums) {
    int32_t *restrict total = sums;
    for (int64_t i = from; i < to; i++) {
        if (!is_row(t, ids[i])) return i;
        prefetch(t, row_ahead(t, ids, i, last));
        const int8_t *own = (const int8_t *)row_of(t, ids[i]);
        int32_t weight = t->weights[ids[i]];
        for (int64_t c = 0; c < t->width; c++) total[c] += own[c] * weight;
    }
    return -1;
}

#if defined(__aarch64__) && !defined(__AARCH64EB__)
#define HAS_NEON
#endif

#if defined(__x86_64__) || defined(HAS_NEON)
/* Four rows at a time: their bytes are interleaved, so that one instruction multiplies four by their weights and adds
 * them up. */
typedef struct {
    const char *rows[4], *ahead[4];
    uint32_t weights; /* four bytes */
} Four;

/* How many of the next four are rows: 4, or fewer where the one at ids[at + that] is none. */
static inline int next_four(const Table *t, const int32_t *ids, int64_t at, int64_t to, int64_t last, Four *four) {
    four->weights = 0;
    for (int k = 0; k < 4; k++) {
        int32_t row = ids[at + k < to ? at + k : to - 1];
        if (!is_row(t, row)) return k;
        four->rows[k] = row_of(t, row);
        four->ahead[k] = row_ahead(t, ids, at + k, last);
        if (at + k < to) four->weights |= (uint32_t)t->weights[row] << 8 * k;
        __builtin_prefetch(four->ahead[k] + t->stride - 1);
    }
    return 4;
}
#endif

#ifdef HAS_NEON
#include "sum_neon.h"
#elif defined(__x86_64__)
#include <immintrin.h>

/* A lane of 16 columns lies across four registers after these loops; the columns are put back. */
static inline void in_order(int32_t *total, int64_t columns, int lanes) {
    int32_t block[64];
    for (int64_t c = 0; c < columns; c += 16 * lanes) {
        memcpy(block, total + c, (size_t)(16 * lanes) * sizeof *block);
        for (int lane = 0; lane < lanes; lane++)
            for (int k = 0; k < 4; k++)
                memcpy(total + c + 16 * lane + 4 * k, block + 4 * lanes * k + 4 * lane, 4 * sizeof *block);
    }
}

/* The bytes of four rows from c, four of one place beside each other. */
__attribute__((target("avx512f,avx512bw"), always_inline)) static inline void interleave_four(const Four *four,
                                                                                              int64_t c,
                                                                                              __m512i *quads) {
    __m512i a = _mm512_loadu_si512(four->rows[0] + c), b = _mm512_loadu_si512(four->rows[1] + c);
    __m512i e = _mm512_loadu_si512(four->rows[2] + c), f = _mm512_loadu_si512(four->rows[3] + c);
    __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    __m512i low2 = _mm512_unpacklo_epi8(e, f), high2 = _mm512_unpackhi_epi8(e, f);
    quads[0] = _mm512_unpacklo_epi16(low, low2);
    quads[1] = _mm512_unpackhi_epi16(low, low2);
    quads[2] = _mm512_unpacklo_epi16(high, high2);
    quads[3] = _mm512_unpackhi_epi16(high, high2);
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) static int64_t sum_weighted_vnni(
    const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *sums) {
    int32_t *total = sums;
    for (int64_t i = from; i < to; i += 4) {
        Four four;
        int good = next_four(t, ids, i, to, last, &four);
        if (good < 4) return i + good;
        __m512i weights = _mm512_set1_epi32((int)four.weights);
        for (int64_t c = 0; c < t->width; c += 64) {
            for (int k = 0; k < 4; k++) __builtin_prefetch(four.ahead[k] + c);
            __m512i quads[4];
            interleave_four(&four, c, quads);
            for (int k = 0; k < 4; k++) {
                int32_t *place = total + c + 16 * k;
                _mm512_storeu_si512(place, _mm512_dpbusd_epi32(_mm512_loadu_si512(place), weights, quads[k]));
            }
        }
    }
    in_order(total, t->width, 4);
    return -1;
}

__attribute__((target("avx2"))) static int64_t sum_weighted_avx2(const Table *t, const int32_t *ids, int64_t from,
                                                                 int64_t to, int64_t last, void *sums) {
    int32_t *total = sums;
    __m256i ones = _mm256_set1_epi16(1);
    for (int64_t i = from; i < to; i += 4) {
        Four four;
        int good = next_four(t, ids, i, to, last, &four);
        if (good < 4) return i + good;
        __m256i weights = _mm256_set1_epi32((int)four.weights);
        for (int64_t c = 0; c < t->width; c += 32) {
            for (int k = 0; k < 4; k++) __builtin_prefetch(four.ahead[k] + c);
#define LOAD(k) _mm256_loadu_si256((const __m256i *)(four.rows[k] + c))
            __m256i a = LOAD(0), b = LOAD(1), e = LOAD(2), f = LOAD(3);
#undef LOAD
            __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
            __m256i low2 = _mm256_unpacklo_epi8(e, f), high2 = _mm256_unpackhi_epi8(e, f);
            __m256i quads[4] = {_mm256_unpacklo_epi16(low, low2), _mm256_unpackhi_epi16(low, low2),
                                _mm256_unpacklo_epi16(high, high2), _mm256_unpackhi_epi16(high, high2)};
            for (int k = 0; k < 4; k++) {
                /* Two products of at most 127 * 128 fit an int16. */
                __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(weights, quads[k]), ones);
                __m256i *place = (__m256i *)(total + c + 8 * k);
                _mm256_storeu_si256(place, _mm256_add_epi32(_mm256_loadu_si256(place), sum));
            }
        }
    }
    in_order(total, t->width, 2);
    return -1;
}
#endif

#include "four_bits.h"

/* ---- Rows of any type with scales of their own, added one after the other as float32. ---- */

static inline float half_to_float(uint16_t half) {
    /* Exponent and fraction moved to their places in a float32, then times 2^112; subnormals come out right. */
    uint32_t magnitude = (uint32_t)(half & 0x7FFF) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    memcpy(&magnitude, &value, sizeof value);
    magnitude |= sign;
    memcpy(&value, &magnitude, sizeof value);
    return value;
}

FOR_EACH_CPU
static int64_t sum_floats(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *sums) {
    float *restrict total = sums;
    int64_t d = t->dimension;
    for (int64_t i = from; i < to; i++) {
        if (!is_row(t, ids[i])) return i;
        prefetch(t, row_ahead(t, ids, i, last));
        float scale = t->scales ? t->scales[ids[i]] : 1.0f;
        const char *own = row_of(t, ids[i]);
        if (t->type == FLOAT32)
            for (int64_t c = 0; c < d; c++) total[c] += ((const float *)own)[c] * scale;
        else if (t->type == FLOAT16)
            for (int64_t c = 0; c < d; c++) total[c] += half_to_float(((const uint16_t *)own)[c]) * scale;
        else
            for (int64_t c = 0; c < d; c++) total[c] += (float)((const int8_t *)own)[c] * scale;
    }
    return -1;
}

#ifdef __x86_64__
/* The same with a whole sum in registers: 16 columns in each, up to MAX_VECTORS of them. */
enum { MAX_VECTORS = 20 };

__attribute__((target("avx512f,avx512bw,avx512vl"), always_inline)) static inline int64_t sum_in_registers(
    const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, float *total, int type, int vectors) {
    __mmask16 whole = 0xFFFF, tail = (__mmask16)(0xFFFF >> (16 * vectors - t->dimension));
    __m512 sums[MAX_VECTORS];
#pragma GCC unroll 20
    for (int v = 0; v < vectors; v++) sums[v] = _mm512_setzero_ps();
    for (int64_t i = from; i < to; i++) {
        if (!is_row(t, ids[i])) return i;
        const char *own = row_of(t, ids[i]), *ahead = row_ahead(t, ids, i, last);
        __builtin_prefetch(ahead + t->stride - 1);
#pragma GCC unroll 20
        for (int v = 0; v < vectors; v++) {
            __mmask16 mask = v == vectors - 1 ? tail : whole;
            if (16 * type * v % CACHE_LINE == 0) __builtin_prefetch(ahead + 16 * type * v);
            __m512 row = type == FLOAT32 ? _mm512_maskz_loadu_ps(mask, own + 64 * v)
                                         : _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, own + 32 * v));
            sums[v] = _mm512_add_ps(sums[v], row);
        }
    }
#pragma GCC unroll 20
    for (int v = 0; v < vectors; v++) _mm512_mask_storeu_ps(total + 16 * v, v == vectors - 1 ? tail : whole, sums[v]);
    return -1;
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) static int64_t sum_floats_avx512(
    const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *total) {
    /* A loop is unrolled, and its sums stay in registers, where the numbers are known to the compiler. */
#define CASE(N)                                                                                   \
    case N:                                                                                       \
        return t->type == FLOAT32 ? sum_in_registers(t, ids, from, to, last, total, FLOAT32, N)   \
                                  : sum_in_registers(t, ids, from, to, last, total, FLOAT16, N);
    switch ((t->dimension + 15) / 16) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13)
        CASE(14) CASE(15) CASE(16) CASE(17) CASE(18) CASE(19) CASE(20)
    }
#undef CASE
    return sum_floats(t, ids, from, to, last, total);
}
#endif

/* ---- A batch ---- */

/* The fastest loop of at most this width of vectors, in bits, that the machine has; 0 for those that any has. */
static SumRows choose_sum(const Table *t, int width) {
#ifdef __x86_64__
    __builtin_cpu_init();
    int widest = width >= 512 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    int fours = t->type == FOUR_BITS;
    if (t->weights && widest && __builtin_cpu_supports("avx512vnni")) return fours ? sum_fours_vnni : sum_weighted_vnni;
    if (t->weights && width >= 256 && __builtin_cpu_supports("avx2")) return fours ? sum_fours_avx2 : sum_weighted_avx2;
    if (!t->weights && widest && t->type != INT8 && !t->scales) return sum_floats_avx512;
#elif defined(HAS_NEON)
    if (t->type == FOUR_BITS && width >= 256) return sum_fours_neon;
    if (t->type == INT8 && t->weights) return choose_sum_neon(width);
#endif
    (void)width;
    if (t->type == FOUR_BITS) return sum_fours;
    return t->weights ? sum_weighted : sum_floats;
}

FOR_EACH_CPU
static void finish_sum(const Table *t, int64_t count, float *vector) {
    float divisor = (float)(count > 0 ? count : 1);
    if (t->mean)
        for (int64_t c = 0; c < t->dimension; c++) vector[c] /= divisor;
    if (t->columns)
        for (int64_t c = 0; c < t->dimension; c++) vector[c] *= t->columns[c];
    if (t->bias)
        for (int64_t c = 0; c < t->dimension; c++) vector[c] += t->bias[c];
}

/* How many int32 a sum with weights is made in, and how many of these begin as zeros. */
static inline int64_t total_columns(const Table *t) { return t->type == FOUR_BITS ? 4 * t->width : t->width; }
static inline int64_t zeroed_columns(const Table *t) { return t->type == FOUR_BITS ? 2 * t->width : t->width; }

/* total, wide: scratch, see sum_texts. Sums of more rows than an int32 holds continue, as exactly, in doubles. */
static int64_t sum_integers(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, int32_t *total,
                            double *wide, float *vector) {
    int64_t parts = 0;
    do {
        int64_t end = to - from > ROWS_IN_INT32 ? from + ROWS_IN_INT32 : to;
        memset(total, 0, (size_t)zeroed_columns(t) * sizeof *total);
        int64_t wrong = t->sum(t, ids, from, end, last, total);
        if (wrong >= 0) return wrong;
        const int32_t *columns = t->type == FOUR_BITS ? columns_in_order(t, total) : total;
        if (parts++ == 0 && end == to) {
            for (int64_t c = 0; c < t->dimension; c++) vector[c] = (float)columns[c] * t->step;
            return -1;
        }
        for (int64_t c = 0; c < t->dimension; c++) wide[c] = (parts > 1 ? wide[c] : 0) + columns[c];
        from = end;
    } while (from < to);
    for (int64_t c = 0; c < t->dimension; c++) vector[c] = (float)wide[c] * t->step;
    return -1;
}

/* Write float32[n, d]; return the first position found of an id that is no row, at which it stops, or -1.
 *
 * total: scratch of total_columns int32. wide: of d doubles.
 */
static int64_t sum_texts(const Table *t, const int32_t *ids, const int64_t *offsets, int64_t n, float *vectors,
                         int32_t *total, double *wide) {
    int64_t last = offsets[n] - 1;
    for (int64_t i = 0; i < n; i++) {
        float *vector = vectors + i * t->dimension;
        int64_t wrong;
        if (t->weights) {
            wrong = sum_integers(t, ids, offsets[i], offsets[i + 1], last, total, wide, vector);
        } else {
            memset(vector, 0, (size_t)t->dimension * sizeof *vector);
            wrong = t->sum(t, ids, offsets[i], offsets[i + 1], last, vector);
        }
        if (wrong >= 0) return wrong;
        finish_sum(t, offsets[i + 1] - offsets[i], vector);
    }
    return -1;
}

/* Between these no square that matters to the sum is lost. As in embed/vectors.py. */
#define MIN_SQUARE 1e-24f
#define MAX_SQUARE 1e36f

/* In doubles, for components whose squares a float cannot hold. */
static void unit_row_wide(const float *row, int64_t d, float *unit) {
    double square = 0;
    for (int64_t c = 0; c < d; c++) square += (double)row[c] * row[c];
    double length = square == 0 ? 1 : sqrt(square);
    for (int64_t c = 0; c < d; c++) unit[c] = (float)(row[c] / length);
}

/* Rows of length 1; a zero row stays zero. Squares are added in 16 columns, then these from left to right. */
FOR_EACH_CPU
static void unit_rows(const float *rows, int64_t n, int64_t d, float *units) {
    enum { LANES = 16 };
    for (int64_t i = 0; i < n; i++) {
        const float *row = rows + i * d;
        float lanes[LANES] = {0}, square = 0;
        int64_t c = 0;
        for (; c + LANES <= d; c += LANES)
            for (int k = 0; k < LANES; k++) lanes[k] += row[c + k] * row[c + k];
        for (int k = 0; c < d; c++, k++) lanes[k] += row[c] * row[c];
        for (int k = 0; k < LANES; k++) square += lanes[k];
        if (!(square > MIN_SQUARE && square < MAX_SQUARE)) {
            unit_row_wide(row, d, units + i * d);
            continue;
        }
        float length = sqrtf(square);
        for (c = 0; c < d; c++) units[i * d + c] = row[c] / length;
    }
}

#endif
