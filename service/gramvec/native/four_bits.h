/* Sums of rows of four bits with weights. Included by sum.h.
 *
 * A byte holds two codes: the low four bits that of a column, the high ones that of the next. A code stands for a level.
 * Levels times weights are added as integers: exact, so that no order and no width of vectors shows. A total has `width`
 * int32 for the low codes, then as many for the high ones.
 */
#ifndef GRAMVEC_FOUR_BITS_H
#define GRAMVEC_FOUR_BITS_H

/* As in bundle/four_bits.py. */
static const int8_t LEVELS[16] = {-21, -16, -12, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 12, 16, 21};

/* An int16 holds the sum of so many rows: 12 * 127 * 21 is 32,004. */
enum { ROWS_IN_INT16 = 12, MAX_FOUR_BITS_WEIGHT = 127 };

static inline int64_t bytes_of_fours(int64_t dimension) { return (dimension + 1) / 2; }

FOR_EACH_CPU
static int64_t sum_fours(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *sums) {
    int32_t *restrict low = sums, *restrict high = low + t->width;
    int64_t bytes = bytes_of_fours(t->dimension);
    for (int64_t i = from; i < to; i++) {
        if (!is_row(t, ids[i])) return i;
        prefetch(t, row_ahead(t, ids, i, last));
        const uint8_t *own = (const uint8_t *)row_of(t, ids[i]);
        int32_t products[16];
        for (int k = 0; k < 16; k++) products[k] = LEVELS[k] * t->weights[ids[i]];
        for (int64_t c = 0; c < bytes; c++) {
            low[c] += products[own[c] & 15];
            high[c] += products[own[c] >> 4];
        }
    }
    return -1;
}

/* The columns of a total in their order, in the 2 * `width` int32 behind it. */
FOR_EACH_CPU
static const int32_t *columns_in_order(const Table *t, int32_t *total) {
    const int32_t *restrict low = total, *restrict high = low + t->width;
    int32_t *restrict columns = total + 2 * t->width;
    for (int64_t c = 0; c < t->width; c++) {
        columns[2 * c] = low[c];
        columns[2 * c + 1] = high[c];
    }
    return columns;
}

#if defined(__x86_64__) || defined(HAS_NEON)
/* The next rows, as many as an int16 can add; their number is even, where need be with one that weighs nothing. */
typedef struct {
    const uint8_t *rows[ROWS_IN_INT16];
    const char *ahead[ROWS_IN_INT16];
    uint8_t weights[ROWS_IN_INT16];
    int count;
} Few;

/* The position of an id that is no row, or -1. */
static inline int64_t next_few(const Table *t, const int32_t *ids, int64_t at, int64_t to, int64_t last, Few *few) {
    int real = to - at < ROWS_IN_INT16 ? (int)(to - at) : ROWS_IN_INT16;
    few->count = real + real % 2;
    for (int k = 0; k < few->count; k++) {
        int64_t own = k < real ? at + k : at;
        if (!is_row(t, ids[own])) return own;
        few->rows[k] = (const uint8_t *)row_of(t, ids[own]);
        few->weights[k] = k < real ? t->weights[ids[own]] : 0;
        few->ahead[k] = row_ahead(t, ids, own, last);
        __builtin_prefetch(few->ahead[k] + t->stride - 1);
    }
    return -1;
}
#endif

#ifdef HAS_NEON
static int64_t sum_fours_neon(const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *sums) {
    int32_t *low = sums, *high = low + t->width;
    int64_t bytes = bytes_of_fours(t->dimension);
    int8x16_t levels = vld1q_s8(LEVELS);
    for (int64_t i = from; i < to; i += ROWS_IN_INT16) {
        Few few;
        int64_t wrong = next_few(t, ids, i, to, last, &few);
        if (wrong >= 0) return wrong;
        for (int64_t c = 0; c < bytes; c += 16) {
            int16x8_t added[4] = {vdupq_n_s16(0), vdupq_n_s16(0), vdupq_n_s16(0), vdupq_n_s16(0)};
            for (int k = 0; k < few.count; k++) {
                if (c % CACHE_LINE == 0) __builtin_prefetch(few.ahead[k] + c);
                uint8x16_t row = vld1q_u8(few.rows[k] + c);
                int8x8_t weight = vdup_n_s8((int8_t)few.weights[k]);
                int8x16_t lows = vqtbl1q_s8(levels, vandq_u8(row, vdupq_n_u8(15)));
                int8x16_t highs = vqtbl1q_s8(levels, vshrq_n_u8(row, 4));
                added[0] = vmlal_s8(added[0], vget_low_s8(lows), weight);
                added[1] = vmlal_s8(added[1], vget_high_s8(lows), weight);
                added[2] = vmlal_s8(added[2], vget_low_s8(highs), weight);
                added[3] = vmlal_s8(added[3], vget_high_s8(highs), weight);
            }
            for (int part = 0; part < 4; part++) {
                int32_t *place = (part < 2 ? low : high) + c + part % 2 * 8;
                vst1q_s32(place, vaddw_s16(vld1q_s32(place), vget_low_s16(added[part])));
                vst1q_s32(place + 4, vaddw_s16(vld1q_s32(place + 4), vget_high_s16(added[part])));
            }
        }
    }
    return -1;
}
#elif defined(__x86_64__)
/* place[0] to place[7] += the lower half of `sums`, place[16] to place[23] += the upper. */
__attribute__((target("avx2"), always_inline)) static inline void add_halves(int32_t *place, __m256i sums) {
    __m256i lower = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(sums));
    __m256i upper = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sums, 1));
    __m256i *first = (__m256i *)place, *second = (__m256i *)(place + 16);
    _mm256_storeu_si256(first, _mm256_add_epi32(_mm256_loadu_si256(first), lower));
    _mm256_storeu_si256(second, _mm256_add_epi32(_mm256_loadu_si256(second), upper));
}

__attribute__((target("avx2"))) static int64_t sum_fours_avx2(const Table *t, const int32_t *ids, int64_t from,
                                                              int64_t to, int64_t last, void *sums) {
    int32_t *low = sums, *high = low + t->width;
    int64_t bytes = bytes_of_fours(t->dimension);
    __m256i levels = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)LEVELS));
    __m256i nibble = _mm256_set1_epi8(15);
    for (int64_t i = from; i < to; i += ROWS_IN_INT16) {
        Few few;
        int64_t wrong = next_few(t, ids, i, to, last, &few);
        if (wrong >= 0) return wrong;
        uint32_t weights[ROWS_IN_INT16 / 2];
        for (int k = 0; k < few.count; k += 2)
            weights[k / 2] = (few.weights[k] | (uint32_t)few.weights[k + 1] << 8) * 0x10001u;
        for (int64_t c = 0; c < bytes; c += 32) {
            __m256i lows[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            __m256i highs[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            for (int k = 0; k < few.count; k += 2) {
                if (c % CACHE_LINE == 0) {
                    __builtin_prefetch(few.ahead[k] + c);
                    __builtin_prefetch(few.ahead[k + 1] + c);
                }
                __m256i a = _mm256_loadu_si256((const __m256i *)(few.rows[k] + c));
                __m256i b = _mm256_loadu_si256((const __m256i *)(few.rows[k + 1] + c));
                __m256i weight = _mm256_set1_epi32((int)weights[k / 2]);
                __m256i pairs[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
                for (int p = 0; p < 2; p++) {
                    __m256i of_low = _mm256_shuffle_epi8(levels, _mm256_and_si256(pairs[p], nibble));
                    __m256i of_high = _mm256_and_si256(_mm256_srli_epi16(pairs[p], 4), nibble);
                    of_high = _mm256_shuffle_epi8(levels, of_high);
                    lows[p] = _mm256_add_epi16(lows[p], _mm256_maddubs_epi16(weight, of_low));
                    highs[p] = _mm256_add_epi16(highs[p], _mm256_maddubs_epi16(weight, of_high));
                }
            }
            for (int p = 0; p < 2; p++) {
                add_halves(low + c + 8 * p, lows[p]);
                add_halves(high + c + 8 * p, highs[p]);
            }
        }
    }
    return -1;
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) static int64_t sum_fours_vnni(
    const Table *t, const int32_t *ids, int64_t from, int64_t to, int64_t last, void *sums) {
    int32_t *low = sums, *high = low + t->width;
    int64_t bytes = bytes_of_fours(t->dimension);
    __m512i levels = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)LEVELS));
    __m512i nibble = _mm512_set1_epi8(15);
    for (int64_t i = from; i < to; i += 4) {
        Four four;
        int good = next_four(t, ids, i, to, last, &four);
        if (good < 4) return i + good;
        __m512i weights = _mm512_set1_epi32((int)four.weights);
        for (int64_t c = 0; c < bytes; c += 64) {
            for (int k = 0; k < 4; k++) __builtin_prefetch(four.ahead[k] + c);
            __m512i quads[4];
            interleave_four(&four, c, quads);
            for (int k = 0; k < 4; k++) {
                __m512i of_low = _mm512_shuffle_epi8(levels, _mm512_and_si512(quads[k], nibble));
                __m512i of_high = _mm512_and_si512(_mm512_srli_epi16(quads[k], 4), nibble);
                of_high = _mm512_shuffle_epi8(levels, of_high);
                int32_t *lows = low + c + 16 * k, *highs = high + c + 16 * k;
                _mm512_storeu_si512(lows, _mm512_dpbusd_epi32(_mm512_loadu_si512(lows), weights, of_low));
                _mm512_storeu_si512(highs, _mm512_dpbusd_epi32(_mm512_loadu_si512(highs), weights, of_high));
            }
        }
    }
    in_order(low, t->width, 4);
    in_order(high, t->width, 4);
    return -1;
}
#endif

#endif
