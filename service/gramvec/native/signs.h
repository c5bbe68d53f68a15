/* Signs of turned vectors, and the rows whose signs agree best with a query. jobs/search/signs.py defines them, and has
 * the slow loops with which tests compare these. Nothing here knows of Python: the caller may release the interpreter's
 * lock. */
#ifndef GRAMVEC_SIGNS_H
#define GRAMVEC_SIGNS_H

#include <stdint.h>
#include <string.h>

#include "sum.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* As in jobs/search/signs.py. A block has the signs of 64 rows: the first eight signs of each, then the next eight of each. */
enum { BLOCK_ROWS = 64, ENTRIES = 16, LARGEST_ENTRY = 31, ROUNDS = 4 };
/* Blocks that all queries are compared with before the next ones: they stay in the cache of a core. */
enum { TILE_BLOCKS = 128 };
/* Bytes that are fetched ahead: one query reads the blocks from memory, a fifth faster so. */
enum { FETCHED_AHEAD = 8192 };

/* Rows that are turned together: a step is the same for all, so that the compiler makes one instruction of several. */
enum { LANES = 8 };
typedef uint32_t Lanes[LANES];

/* Multiply `size` numbers of each row, a power of 2, by a Hadamard matrix. Sums wrap around, as numpy's do. */
static inline void transform(Lanes *values, int64_t size) {
    for (int64_t half = 1; half < size; half *= 2)
        for (int64_t i = 0; i < size; i += 2 * half)
            for (int64_t j = i; j < i + half; j++)
                for (int r = 0; r < LANES; r++) {
                    uint32_t a = values[j][r], b = values[j + half][r];
                    values[j][r] = a + b;
                    values[j + half][r] = a - b;
                }
}

/* Turn int32[n, d], n up to LANES. A round multiplies the numbers by `flips`, which are 1 and -1, then the first or the
 * last `size` of them by a Hadamard matrix and the others by its length, and all by 2^-shift. flips: int32[ROUNDS, d].
 * values: scratch for d numbers of LANES rows. */
FOR_EACH_CPU static void turn(int32_t *rows, int64_t n, int64_t d, int64_t size, int32_t length, int shift,
                              const int32_t *flips, Lanes *values) {
    memset(values, 0, (size_t)d * sizeof *values);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < d; i++) values[i][r] = (uint32_t)rows[r * d + i];
    for (int round = 0; round < ROUNDS; round++, flips += d) {
        int64_t first = round % 2 ? d - size : 0;
        for (int64_t i = 0; i < d; i++) {
            uint32_t factor = (uint32_t)flips[i] * (i < first || i >= first + size ? (uint32_t)length : 1);
            for (int r = 0; r < LANES; r++) values[i][r] *= factor;
        }
        transform(values + first, size);
        for (int64_t i = 0; i < d; i++)
            for (int r = 0; r < LANES; r++) values[i][r] = (uint32_t)((int32_t)values[i][r] >> shift);
    }
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < d; i++) rows[r * d + i] = (int32_t)values[i][r];
}

/* Sum for each row of a block the entries that its bytes name in a table, uint8[columns, 2, ENTRIES]: the first by a
 * byte's lower half. Entries are at most LARGEST_ENTRY, sums below 2^16 - 1. Returns a bit for
 * each row whose sum reaches the limit; `sums` are unspecified where there is none. */
typedef uint64_t SumBlock(const uint8_t *block, int64_t columns, const uint8_t *table, uint16_t limit, uint16_t *sums);

static uint64_t sum_block(const uint8_t *block, int64_t columns, const uint8_t *table, uint16_t limit, uint16_t *sums) {
    uint64_t reached = 0;
    memset(sums, 0, BLOCK_ROWS * sizeof *sums);
    for (int64_t c = 0; c < columns; c++, block += BLOCK_ROWS, table += 2 * ENTRIES)
        for (int r = 0; r < BLOCK_ROWS; r++)
            sums[r] = (uint16_t)(sums[r] + table[block[r] & 15] + table[ENTRIES + (block[r] >> 4)]);
    for (int r = 0; r < BLOCK_ROWS; r++) reached |= (uint64_t)(sums[r] >= limit) << r;
    return reached;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static inline __m256i reaching(__m256i sums, __m256i least) {
    return _mm256_cmpeq_epi16(_mm256_max_epu16(sums, least), sums);
}

/* Sums of a few columns fit into bytes. These are added as the halves of 16 bits: `even` has the sums of both halves,
 * `odd` those of the higher only. */
__attribute__((target("avx2"))) static uint64_t sum_block_avx2(const uint8_t *block, int64_t columns,
                                                               const uint8_t *table, uint16_t limit, uint16_t *sums) {
    enum { PARTS_OF_BLOCK = BLOCK_ROWS / 32, COLUMNS_IN_A_BYTE = UINT8_MAX / (2 * LARGEST_ENTRY) };
    const __m256i nibble = _mm256_set1_epi8(15), least = _mm256_set1_epi16((int16_t)limit);
    __m256i even[PARTS_OF_BLOCK], odd[PARTS_OF_BLOCK], reach = _mm256_setzero_si256();
    for (int p = 0; p < PARTS_OF_BLOCK; p++) even[p] = odd[p] = reach;
    while (columns > 0) {
        int64_t some = columns < COLUMNS_IN_A_BYTE ? columns : COLUMNS_IN_A_BYTE;
        __m256i few[PARTS_OF_BLOCK];
        for (int p = 0; p < PARTS_OF_BLOCK; p++) few[p] = _mm256_setzero_si256();
        for (int64_t c = 0; c < some; c++, block += BLOCK_ROWS, table += 2 * ENTRIES) {
            __m256i lows = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
            __m256i highs = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + ENTRIES)));
            for (int p = 0; p < PARTS_OF_BLOCK; p++) {
                __m256i bytes = _mm256_loadu_si256((const __m256i *)(block + 32 * p));
                if (!p) _mm_prefetch((const char *)(block + FETCHED_AHEAD), _MM_HINT_T0);
                __m256i low = _mm256_shuffle_epi8(lows, _mm256_and_si256(bytes, nibble));
                __m256i high = _mm256_shuffle_epi8(highs, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
                few[p] = _mm256_add_epi8(few[p], _mm256_add_epi8(low, high));
            }
        }
        for (int p = 0; p < PARTS_OF_BLOCK; p++) {
            even[p] = _mm256_add_epi16(even[p], few[p]);
            odd[p] = _mm256_add_epi16(odd[p], _mm256_srli_epi16(few[p], 8));
        }
        columns -= some;
    }
    for (int p = 0; p < PARTS_OF_BLOCK; p++) {
        even[p] = _mm256_sub_epi16(even[p], _mm256_slli_epi16(odd[p], 8));
        reach = _mm256_or_si256(reach, reaching(_mm256_max_epu16(even[p], odd[p]), least));
    }
    if (!_mm256_movemask_epi8(reach)) return 0;
    uint64_t reached = 0;
    for (int p = 0; p < PARTS_OF_BLOCK; p++) {
        /* Rows alternate between both: those of a lane are interleaved, then lanes are put in order. */
        __m256i low = _mm256_unpacklo_epi16(even[p], odd[p]), high = _mm256_unpackhi_epi16(even[p], odd[p]);
        __m256i first = _mm256_permute2x128_si256(low, high, 0x20), second = _mm256_permute2x128_si256(low, high, 0x31);
        _mm256_storeu_si256((__m256i *)(sums + 32 * p), first);
        _mm256_storeu_si256((__m256i *)(sums + 32 * p + 16), second);
        __m256i both = _mm256_packs_epi16(reaching(first, least), reaching(second, least));
        reached |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8)) << 32 * p;
    }
    return reached;
}
#endif

static SumBlock *choose_sum_block(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) return sum_block_avx2;
#endif
    return sum_block;
}

/* The rows of the largest sums of one query so far; rows come in ascending order, and of equal sums the first stay. */
typedef struct {
    int32_t *rows;
    uint16_t *sums;
    int64_t count, most; /* there is room for twice `most` */
    uint16_t limit;      /* a smaller sum is not kept */
} Best;

/* Keep the `most` best. histogram: scratch, uint32[2^16]. */
static void keep_best(Best *best, uint32_t *histogram) {
    if (best->count <= best->most) return;
    int limit = 0;
    for (int64_t i = 0; i < best->count; i++)
        if (best->sums[i] > limit) limit = best->sums[i];
    memset(histogram, 0, sizeof *histogram * ((size_t)limit + 1));
    for (int64_t i = 0; i < best->count; i++) histogram[best->sums[i]]++;
    int64_t above = 0;
    for (; above + histogram[limit] < best->most; limit--) above += histogram[limit];
    int64_t equal = best->most - above, kept = 0;
    for (int64_t i = 0; i < best->count; i++) {
        if (best->sums[i] < limit || (best->sums[i] == limit && equal-- <= 0)) continue;
        best->rows[kept] = best->rows[i];
        best->sums[kept++] = best->sums[i];
    }
    best->count = kept;
    best->limit = (uint16_t)(limit + 1);
}

/* Find for each of q queries the best of n rows. allowed: a bit for each row that may be found, or NULL for all. */
static void scan_signs(const uint8_t *blocks, int64_t n, int64_t columns, const uint8_t *tables, int64_t q,
                       const uint64_t *allowed, Best *best, uint32_t *histogram) {
    SumBlock *sum = choose_sum_block();
    int64_t n_blocks = (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    for (int64_t tile = 0; tile < n_blocks; tile += TILE_BLOCKS)
        for (int64_t query = 0; query < q; query++) {
            Best *own = &best[query];
            int64_t last = tile + TILE_BLOCKS < n_blocks ? tile + TILE_BLOCKS : n_blocks;
            for (int64_t b = tile; b < last; b++) {
                uint16_t sums[BLOCK_ROWS];
                const uint8_t *block = blocks + b * columns * BLOCK_ROWS, *table = tables + query * columns * 2 * ENTRIES;
                uint64_t left = sum(block, columns, table, own->limit, sums);
                if (allowed) left &= allowed[b];
                for (; left; left &= left - 1) {
                    int r = __builtin_ctzll(left);
                    if (b * BLOCK_ROWS + r >= n) break;
                    if (sums[r] < own->limit) continue;
                    own->rows[own->count] = (int32_t)(b * BLOCK_ROWS + r);
                    own->sums[own->count++] = sums[r];
                    if (own->count == 2 * own->most) keep_best(own, histogram);
                }
            }
        }
    for (int64_t query = 0; query < q; query++) keep_best(&best[query], histogram);
}

#endif
