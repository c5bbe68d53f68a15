/* gramvec.native.loops.word_ngrams, turn, scan and multiply: see loops.pyi. A part of module.c, whose buffers it takes. */

/* ---- word_ngrams ---- */

enum { NGRAM = 4, WORD_EDGE = 0x1f }; /* as in lexical/letters.py */

/* First and last characters of scripts without spaces between words, as in text/scripts.py. */
static const uint32_t unspaced[][2] = {
    {0xE01, 0xE3A}, {0xE40, 0xE4E}, {0xE81, 0xECE}, {0xEDC, 0xEDF}, {0x1000, 0x103F}, {0x1050, 0x108F},
    {0x109A, 0x109D}, {0x1100, 0x11FF}, {0x1780, 0x17D3}, {0x17D7, 0x17D7}, {0x17DC, 0x17DD}, {0x2E80, 0x2FD5},
    {0x3005, 0x3007}, {0x3021, 0x302F}, {0x3031, 0x3035}, {0x3038, 0x303C}, {0x3041, 0x309A}, {0x309D, 0x309F},
    {0x30A1, 0x30FA}, {0x30FC, 0x318E}, {0x31A0, 0x31BF}, {0x31F0, 0x31FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF},
    {0xA960, 0xA97C}, {0xA9E0, 0xA9EF}, {0xA9FA, 0xA9FE}, {0xAA60, 0xAA76}, {0xAA7A, 0xAA7F}, {0xAC00, 0xD7A3},
    {0xD7B0, 0xD7FB}, {0xF900, 0xFAFF}, {0x1AFF0, 0x1B16F}, {0x20000, 0x323AF},
};

static int is_unspaced(uint32_t point) {
    if (point < 0xE01) return 0;
    for (size_t k = 0; k < sizeof unspaced / sizeof *unspaced && unspaced[k][0] <= point; k++)
        if (point <= unspaced[k][1]) return 1;
    return 0;
}

/* Write the n-grams of words with spaces between, at `to` unless that is NULL; return the characters of all. */
#define NGRAMS_OF(TYPE)                                                                        \
    static Py_ssize_t ngrams_of_##TYPE(const TYPE *text, Py_ssize_t length, TYPE *to) {        \
        Py_ssize_t size = 0, i = 0;                                                            \
        for (;;) {                                                                             \
            while (i < length && Py_UNICODE_ISSPACE(text[i])) i++;                             \
            if (i == length) return size;                                                      \
            Py_ssize_t first = i;                                                              \
            int is_run = sizeof(TYPE) > 1 && is_unspaced(text[i]);                             \
            while (i < length && !Py_UNICODE_ISSPACE(text[i]) &&                               \
                   (sizeof(TYPE) == 1 || is_unspaced(text[i]) == is_run))                      \
                i++;                                                                           \
            for (Py_ssize_t at = first; is_run && at < i; at++)                                \
                for (Py_ssize_t width = 1; width <= NGRAM && at + width <= i; width *= 2) {    \
                    if (to) {                                                                  \
                        TYPE *out = to + size;                                                 \
                        if (size > 0) *out++ = ' ';                                            \
                        for (Py_ssize_t w = 0; w < width; w++) *out++ = text[at + w];          \
                    }                                                                          \
                    size += (size > 0) + width;                                                \
                }                                                                              \
            if (is_run) continue;                                                              \
            Py_ssize_t letters = i - first, ngrams = letters > 2 ? letters - 1 : 1;            \
            Py_ssize_t width = letters > 2 ? NGRAM : letters + 2;                              \
            if (to) {                                                                          \
                TYPE *out = to + size;                                                         \
                if (size > 0) *out++ = ' ';                                                    \
                for (Py_ssize_t n = 0; n < ngrams; n++) {                                      \
                    if (n > 0) *out++ = ' ';                                                   \
                    for (Py_ssize_t w = 0; w < width; w++) {                                   \
                        Py_ssize_t at = n + w - 1;                                             \
                        *out++ = at < 0 || at >= letters ? (TYPE)WORD_EDGE : text[first + at];      \
                    }                                                                          \
                }                                                                              \
            }                                                                                  \
            size += (size > 0) + ngrams * width + ngrams - 1;                                  \
        }                                                                                      \
    }
NGRAMS_OF(Py_UCS1)
NGRAMS_OF(Py_UCS2)
NGRAMS_OF(Py_UCS4)
#undef NGRAMS_OF

static PyObject *word_ngrams(PyObject *module, PyObject *text) {
    (void)module;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a str is needed");
        return NULL;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (length > LONGEST_TEXT) {
        PyErr_Format(PyExc_OverflowError, "the text has more than %d characters; cut it up", LONGEST_TEXT);
        return NULL;
    }
    const void *data = PyUnicode_DATA(text);
    PyObject *made;
#define MAKE(TYPE)                                                                                          \
    made = PyUnicode_New(ngrams_of_##TYPE(data, length, NULL), PyUnicode_MAX_CHAR_VALUE(text));             \
    if (made && PyUnicode_GET_LENGTH(made) > 0) ngrams_of_##TYPE(data, length, (TYPE *)PyUnicode_DATA(made))
    if (PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND) {
        MAKE(Py_UCS1);
    } else if (PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND) {
        MAKE(Py_UCS2);
    } else {
        MAKE(Py_UCS4);
    }
#undef MAKE
    return made;
}

/* ---- signs ---- */

static PyObject *turn_rows(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given_values, *given_flips, *result = NULL;
    Py_ssize_t size, length, shift, n_values, n_flips;
    Lanes *scratch = NULL;
    if (!PyArg_ParseTuple(args, "OOnnn", &given_values, &given_flips, &size, &length, &shift)) return NULL;
    Buffers buffers = {.count = 0};
    int32_t *values = hold(&buffers, given_values, 4, &n_values, PyBUF_WRITABLE);
    const int32_t *flips = values ? hold(&buffers, given_flips, 4, &n_flips, 0) : NULL;
    if (!flips) goto done;
    Py_ssize_t d = n_flips / ROUNDS;
    if (d < 1 || n_flips % ROUNDS || n_values % d || size < 1 || size > d || (size & (size - 1)) || length < 1 ||
        length > INT32_MAX || shift < 0 || shift > 31) {
        PyErr_SetString(PyExc_ValueError, "values, flips and sizes do not fit together");
        goto done;
    }
    if (!(scratch = PyMem_RawMalloc((size_t)d * sizeof *scratch))) {
        PyErr_NoMemory();
        goto done;
    }
    PyThreadState *lock = give_lock(n_values);
    for (Py_ssize_t left = n_values / d; left > 0; left -= LANES, values += LANES * d)
        turn(values, left < LANES ? left : LANES, d, size, (int32_t)length, (int)shift, flips, scratch);
    take_lock(lock);
    result = Py_NewRef(Py_None);
done:
    PyMem_RawFree(scratch);
    let_go(&buffers);
    return result;
}

static PyObject *scan(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given_blocks, *given_tables, *given_allowed, *given_rows, *given_sums, *result = NULL;
    Py_ssize_t n, q, most, n_bytes, n_entries, n_allowed = 0, n_rows, n_sums;
    if (!PyArg_ParseTuple(args, "OnOnOnOO", &given_blocks, &n, &given_tables, &q, &given_allowed, &most, &given_rows,
                          &given_sums))
        return NULL;
    Buffers buffers = {.count = 0};
    Best *best = NULL;
    uint32_t *histogram = NULL;
    const uint64_t *allowed = NULL;
    const uint8_t *blocks = hold(&buffers, given_blocks, 1, &n_bytes, 0);
    const uint8_t *tables = blocks ? hold(&buffers, given_tables, 1, &n_entries, 0) : NULL;
    int32_t *rows = tables ? hold(&buffers, given_rows, 4, &n_rows, PyBUF_WRITABLE) : NULL;
    uint16_t *sums = rows ? hold(&buffers, given_sums, 2, &n_sums, PyBUF_WRITABLE) : NULL;
    if (!sums) goto done;
    if (given_allowed != Py_None && !(allowed = hold(&buffers, given_allowed, 8, &n_allowed, 0))) goto done;
    Py_ssize_t n_blocks = n < 0 || n > INT32_MAX ? -1 : (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    Py_ssize_t columns = q < 1 || q > n_entries ? 0 : n_entries / (q * 2 * ENTRIES);
    if (n_blocks < 0 || columns < 1 || columns * q * 2 * ENTRIES != n_entries || n_bytes / (columns * BLOCK_ROWS) < n_blocks ||
        (allowed && n_allowed < n_blocks) || most < 1 || most > INT32_MAX || n_rows / (2 * most) != q ||
        n_rows % (2 * most) || n_sums != n_rows) {
        PyErr_SetString(PyExc_ValueError, "blocks, tables, rows and sums do not fit together");
        goto done;
    }
    best = PyMem_RawCalloc((size_t)q, sizeof *best);
    histogram = PyMem_RawMalloc(sizeof *histogram << 16);
    if (!best || !histogram) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < q; i++)
        best[i] = (Best){.rows = rows + i * 2 * most, .sums = sums + i * 2 * most, .most = most};
    PyThreadState *lock = give_lock(n * q);
    scan_signs(blocks, n, columns, tables, q, allowed, best, histogram);
    take_lock(lock);
    result = PyTuple_New(q);
    for (Py_ssize_t i = 0; result && i < q; i++) {
        PyObject *count = PyLong_FromLongLong(best[i].count);
        if (!count) Py_CLEAR(result);
        else PyTuple_SET_ITEM(result, i, count);
    }
done:
    PyMem_RawFree(best);
    PyMem_RawFree(histogram);
    let_go(&buffers);
    return result;
}

/* ---- products ---- */

/* Rows that are fetched ahead: candidates lie far from each other, so that each would be waited for. */
enum { ROWS_AHEAD = 8 };

/* Multiply a query with rows of a table, or with its first n where rows is NULL. */
FOR_EACH_CPU static void multiply_rows(const int8_t *table, int64_t stride, const int64_t *rows, int64_t n,
                                       const int16_t *query, int64_t d, int32_t *products) {
    for (int64_t r = 0; r < n; r++) {
        const int8_t *row = table + (rows ? rows[r] : r) * stride;
        if (rows && r + ROWS_AHEAD < n)
            for (int64_t i = 0; i < stride; i += CACHE_LINE)
                __builtin_prefetch(table + rows[r + ROWS_AHEAD] * stride + i);
        int32_t product = 0;
        for (int64_t i = 0; i < d; i++) product += (int16_t)row[i] * query[i];
        products[r] = product;
    }
}

static PyObject *multiply(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given_table, *given_rows, *given_query, *given_products, *result = NULL;
    Py_ssize_t stride, n_bytes, n_rows = 0, d, n;
    if (!PyArg_ParseTuple(args, "OnOOO", &given_table, &stride, &given_rows, &given_query, &given_products)) return NULL;
    Buffers buffers = {.count = 0};
    const int64_t *rows = NULL;
    const int8_t *table = hold(&buffers, given_table, 1, &n_bytes, 0);
    const int16_t *query = table ? hold(&buffers, given_query, 2, &d, 0) : NULL;
    int32_t *products = query ? hold(&buffers, given_products, 4, &n, PyBUF_WRITABLE) : NULL;
    if (!products) goto done;
    if (given_rows != Py_None && !(rows = hold(&buffers, given_rows, 8, &n_rows, 0))) goto done;
    /* Sums of that many products of int8 stay below 2^31. */
    int fine = d >= 1 && d <= 1 << 16 && stride >= d && (rows ? n_rows == n : n <= n_bytes / stride);
    for (Py_ssize_t i = 0; fine && i < n_rows; i++) fine = rows[i] >= 0 && rows[i] < n_bytes / stride;
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "the table, rows, query and products do not fit together");
        goto done;
    }
    PyThreadState *lock = give_lock(n);
    multiply_rows(table, stride, rows, n, query, d, products);
    take_lock(lock);
    result = Py_NewRef(Py_None);
done:
    let_go(&buffers);
    return result;
}
