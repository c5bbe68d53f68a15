/* Texts -> sums, one text after the other: while a text is read, memory brings the rows of the one before.
 *
 * The sums are those of featurize and sum_texts, to the bit. Nothing here knows of Python.
 */
#ifndef GRAMVEC_EMBED_H
#define GRAMVEC_EMBED_H

#include "featurize.h"
#include "sum.h"

#include <time.h>

/* A clock that costs less than what it measures; of what unit does not matter. */
static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    return (uint64_t)clock();
#endif
}

typedef struct {
    int64_t unknown;  /* characters without an id, words without a row */
    double featuring; /* the share of the time that went into features */
    int has_wrong;    /* `wrong` is a row that is not in the table, at whose text the sums stop */
    int32_t wrong;
} Embedded;

/* Write float32[n, d] vectors, and how many rows each has.
 *
 * rows: scratch for the rows of two texts, each with room for `room`, see most_rows. chars: as featurize. total, wide: as sum_texts.
 */
static Embedded embed_texts(const Features *f, int sums, const Table *t, const Text *texts, int64_t n, int32_t *rows,
                            int64_t room, Characters *chars, int32_t *total, double *wide, float *vectors,
                            int64_t *counts) {
    const Rows table = {t->rows, t->stride};
    Pending pending = {.count = 0, .rows = &table};
    uint64_t began = ticks(), featuring = 0;
    Embedded done = {0};
    for (int64_t i = 0; i <= n; i++) {
        if (i < n) {
            uint64_t start = ticks();
            int32_t *own = rows + i % 2 * room;
            pending.at = own;
            featurize_text(f, sums, &texts[i], chars, &pending);
            counts[i] = pending.at - own;
            featuring += ticks() - start;
        }
        if (i > 0) {
            const int32_t *own = rows + (i - 1) % 2 * room;
            int64_t bounds[2] = {0, counts[i - 1]};
            int64_t wrong = sum_texts(t, own, bounds, 1, vectors + (i - 1) * t->dimension, total, wide);
            if (wrong >= 0) {
                done.has_wrong = 1;
                done.wrong = own[wrong];
                break;
            }
        }
    }
    uint64_t all = ticks() - began;
    done.unknown = pending.unknown;
    done.featuring = all > 0 ? (double)featuring / (double)all : 0.0;
    return done;
}

#endif
