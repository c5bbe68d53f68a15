/* Texts -> sketches of their n-grams: each n-gram adds its weight, with signs of its own, to a few of the columns.
 *
 * The rules are those of lexical/hashing.py and lexical/sketch.py, which tests compare with it. Nothing here knows of
 * Python: the caller holds the texts, and may release the interpreter's lock.
 */
#ifndef GRAMVEC_LEXICAL_H
#define GRAMVEC_LEXICAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "featurize.h"

/* As in lexical/sketch.py. */
enum { WEIGHT_BITS = 18, SIGNS = 8, FULL_WEIGHT = 255, USUAL_BLOCK_BITS = 5, MAX_BLOCK_BITS = 7 };
enum { LONGEST_HASHED = 6 };
enum { PARTS = 8 };        /* in which squares are added */
enum { HASHES = 512 };     /* that are made before they are added: a loop of one kind of work is twice as fast */

typedef struct {
    const uint16_t *pages;  /* for each 256 code points: where they are among the shifts */
    const uint32_t *shifts; /* for each code point: what makes it lower case, or white space U+0020, by addition */
    const uint8_t *weights; /* by a hash's highest bits */
    int has_order[LONGEST_HASHED + 1], longest;
    int block_bits; /* of the columns, SIGNS blocks of 2^block_bits */
    double scale;
} LexicalSketch;

/* SplitMix64's finaliser (Steele, Lea and Flood 2014). */
static inline uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* `keys` are n-grams, from each of which a hash is made. A column has two sums, of what is subtracted and, a block behind
 * it, of what is added: so the sign is a bit of the address, which is twice as fast as turning the weight's. */
static inline void add_with(const LexicalSketch *d, const uint64_t *keys, int n, int64_t *restrict sums, int block_bits) {
    const uint8_t *weights = d->weights;
    for (int k = 0; k < n; k++) {
        uint64_t rest = mixed(keys[k]), signed_block = ((uint64_t)2 << block_bits) - 1;
        int64_t weight = weights[rest >> (64 - WEIGHT_BITS)];
        for (int i = 0; i < SIGNS; i++, rest >>= block_bits + 1)
            sums[((uint64_t)i << (block_bits + 1)) + (rest & signed_block)] += weight;
    }
}

static void add_ngrams(const LexicalSketch *d, const uint64_t *keys, int n, int64_t *sums) {
    if (d->block_bits == USUAL_BLOCK_BITS) add_with(d, keys, n, sums, USUAL_BLOCK_BITS);
    else add_with(d, keys, n, sums, d->block_bits);
}

/* Add a text's n-grams to the sums, int64[2 * columns]; returns how many they are. */
static int64_t sketch_text(const LexicalSketch *d, const Text *text, int64_t *sums) {
    uint64_t keys[LONGEST_HASHED + 1] = {0}; /* of the n-gram of each order that ends in the last character */
    uint64_t waiting[HASHES];
    int64_t place = 0, found = 0; /* of the next character */
    int after_space = 1, longest = d->longest, count = 0;
#define NEXT(POINT)                                                                        \
    do {                                                                                   \
        uint64_t letter = (POINT);                                                         \
        for (int order = longest; order > 0; order--) {                                    \
            keys[order] = (order > 1 ? keys[order - 1] : 0) * MULTIPLIER + letter;         \
            waiting[count] = keys[order] + (uint64_t)(order + 1) * MULTIPLIER;             \
            count += (place >= order - 1) & d->has_order[order];                           \
        }                                                                                  \
        place++;                                                                           \
        if (count > HASHES - LONGEST_HASHED - 1) {                                         \
            add_ngrams(d, waiting, count, sums);                                           \
            found += count;                                                                \
            count = 0;                                                                     \
        }                                                                                  \
    } while (0)
#define READ(TYPE)                                                                               \
    for (int64_t i = 0; i < text->length; i++) {                                                 \
        uint32_t point = ((const TYPE *)text->data)[i];                                          \
        point += d->shifts[(size_t)d->pages[point >> PAGE_SHIFT] << PAGE_SHIFT | (point & 255)]; \
        int is_space = point == ' ';                                                             \
        if (is_space & after_space) continue;                                                    \
        if (place == 0) NEXT(' ');                                                               \
        after_space = is_space;                                                                  \
        NEXT(point);                                                                             \
    }
    if (text->width == 1) {
        READ(uint8_t)
    } else if (text->width == 2) {
        READ(uint16_t)
    } else {
        READ(uint32_t)
    }
    if (place > 0 && !after_space) NEXT(' ');
#undef READ
#undef NEXT
    add_ngrams(d, waiting, count, sums);
    return found + count;
}

static double length_of(const float *vector, int64_t d) {
    double parts[PARTS] = {0}, square = 0;
    int64_t c = 0;
    for (; c + PARTS <= d; c += PARTS)
        for (int i = 0; i < PARTS; i++) parts[i] += (double)vector[c + i] * vector[c + i];
    for (int i = 0; c + i < d; i++) parts[i] += (double)vector[c + i] * vector[c + i];
    for (int i = 0; i < PARTS; i++) square += parts[i];
    return sqrt(square);
}

/* Write float32[n, d + columns]: each vector, then its text's sketch, as long as the vector times what the n-grams weigh
 * (of a zero vector, as if it had length 1). Write how many n-grams each has. sums: scratch of 2 * columns int64. */
static void join_sketches(const LexicalSketch *lexical, const Text *texts, int64_t n, const float *vectors, int64_t d,
                          int64_t *sums, float *joined, int64_t *counts) {
    int64_t block = (int64_t)1 << lexical->block_bits, columns = SIGNS * block;
    for (int64_t i = 0; i < n; i++) {
        float *row = joined + i * (d + columns);
        const float *vector = vectors + i * d;
        memcpy(row, vector, (size_t)d * sizeof *row);
        memset(sums, 0, 2 * (size_t)columns * sizeof *sums);
        counts[i] = sketch_text(lexical, &texts[i], sums);
        double length = length_of(vector, d);
        double factor = (length > 0 ? length : 1) * lexical->scale;
        if (counts[i] > 0) factor /= FULL_WEIGHT * sqrt(SIGNS) * sqrt((double)counts[i]);
        float *sketch = row + d;
        for (const int64_t *own = sums; own < sums + 2 * columns; own += 2 * block, sketch += block)
            for (int64_t c = 0; c < block; c++) sketch[c] = (float)((double)(own[block + c] - own[c]) * factor);
    }
}

#endif
