/* The rows of a table in memory, and how to ask for one before it is wanted. */
#ifndef GRAMVEC_ROWS_H
#define GRAMVEC_ROWS_H

#include <stdint.h>

enum { CACHE_LINE = 64 };

typedef struct {
    const char *first;
    int64_t stride; /* bytes from row to row */
} Rows;

/* locality: 3 for all caches, 1 for those behind the first; a constant, as the compiler wants it. An address that is no
 * row's is not read. */
#define PREFETCH_ROW(begin, stride, locality)                                         \
    do {                                                                              \
        const char *row_begin = (begin), *row_last = row_begin + (stride) - 1;        \
        for (const char *line = row_begin; line < row_last; line += CACHE_LINE)       \
            __builtin_prefetch(line, 0, locality);                                    \
        __builtin_prefetch(row_last, 0, locality); /* rows begin anywhere in a line */ \
    } while (0)

#endif
