/* gramvec.native: the loops of features and runtime, and rows of length 1, for Python. See loops.pyi for the contract. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "embed.h"
#include "lexical.h"
#include "signs.h"

/* Below this number of characters or rows a call is over before another thread could take the interpreter's lock. */
enum { KEEP_LOCK = 2048 };

static PyThreadState *give_lock(int64_t work) { return work < KEEP_LOCK ? NULL : PyEval_SaveThread(); }

static void take_lock(PyThreadState *given) {
    if (given) PyEval_RestoreThread(given);
}

/* Arrays that an object holds on to. */
enum { MAX_BUFFERS = 32 };
typedef struct {
    Py_buffer views[MAX_BUFFERS];
    int count;
} Buffers;

static void *hold(Buffers *buffers, PyObject *array, Py_ssize_t item, Py_ssize_t *length, int flags) {
    Py_buffer *view = &buffers->views[buffers->count];
    if (PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | flags) < 0) return NULL;
    buffers->count++;
    if (view->len % item != 0) {
        PyErr_Format(PyExc_ValueError, "an array of %zd bytes does not hold items of %zd", view->len, item);
        return NULL;
    }
    if ((uintptr_t)view->buf % (uintptr_t)item != 0) {
        PyErr_Format(PyExc_ValueError, "an array of items of %zd bytes is not aligned to them", item);
        return NULL;
    }
    if (length) *length = view->len / item;
    static char nothing[64];
    return view->buf ? view->buf : nothing;
}

static void let_go(Buffers *buffers) {
    while (buffers->count > 0) PyBuffer_Release(&buffers->views[--buffers->count]);
}

/* ---- Featurizer ---- */

typedef struct {
    PyObject_HEAD
    Buffers buffers;
    Features features;
    PyObject *compose; /* text -> text in normalization form C */
} Featurizer;

/* Zeroed slots, at most half of them needed, on pages of 2 MB where the system has them: a look-up then seldom misses the
 * list of pages. Rows are int32, so there are at most 2^32 slots, and their indices fit a uint32. */
static void *allocate_slots(size_t needed, size_t size, uint64_t *mask, int *shift) {
    enum { PAGE = 1 << 21 };
    int bits = 1;
    while ((size_t)1 << bits < 2 * needed) bits++;
    size_t bytes = size << bits, alignment = bytes < PAGE ? 64 : PAGE;
    void *slots = NULL;
    if (posix_memalign(&slots, alignment, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == PAGE) madvise(slots, bytes, MADV_HUGEPAGE);
#endif
    *mask = ((uint64_t)1 << bits) - 1;
    *shift = 64 - bits;
    return memset(slots, 0, bytes);
}

static int is_made(Fault fault) {
    static const char *const sentences[] = {
        [TOO_MANY] = "more entries than an int32 counts",
        [ZERO_KEY] = "0 is the key of no n-gram",
        [NEGATIVE_ROW] = "a row is negative",
        [REPEATED] = "an entry is repeated",
        [CROWDED] = "entries were chosen to collide, and searches would be long",
    };
    if (fault == NO_MEMORY) PyErr_NoMemory();
    else if (fault != FINE) PyErr_SetString(PyExc_ValueError, sentences[fault]);
    return fault == FINE;
}

/* Without the interpreter's lock, and in linear time whatever the keys are. */
static Fault make_pairs(Pairs *pairs, const uint64_t *keys, const int32_t *rows, Py_ssize_t n) {
    if (n > INT32_MAX) return TOO_MANY;
    pairs->slots = allocate_slots((size_t)n, sizeof(Pair), &pairs->mask, &pairs->shift);
    Fault fault = pairs->slots ? FINE : NO_MEMORY;
    for (Py_ssize_t i = 0; fault == FINE && i < n; i++) fault = add_pair(pairs, keys[i], rows[i]);
    return fault == FINE ? check_pairs(pairs) : fault;
}

static Fault make_words(Words *words, const uint32_t *starts, const int32_t *rows, Py_ssize_t n) {
    if (n > INT32_MAX) return TOO_MANY;
    words->slots = allocate_slots((size_t)n, sizeof(Word), &words->mask, &words->shift);
    Fault fault = words->slots ? FINE : NO_MEMORY;
    for (Py_ssize_t i = 0; fault == FINE && i < n; i++)
        fault = add_word(words, starts[i], (uint16_t)(starts[i + 1] - starts[i]), rows[i]);
    return fault == FINE ? check_words(words) : fault;
}

static int pairs_from(Pairs *pairs, PyObject *keys, PyObject *rows) {
    Buffers buffers = {.count = 0};
    Py_ssize_t n_keys, n_rows;
    int made = 0;
    const uint64_t *key = hold(&buffers, keys, 8, &n_keys, 0);
    const int32_t *row = key ? hold(&buffers, rows, 4, &n_rows, 0) : NULL;
    if (row && n_keys != n_rows) {
        PyErr_SetString(PyExc_ValueError, "keys and rows differ in length");
    } else if (row) {
        Fault fault;
        PyThreadState *lock = give_lock(n_keys);
        fault = make_pairs(pairs, key, row, n_keys);
        take_lock(lock);
        made = is_made(fault);
    }
    let_go(&buffers);
    return made;
}

static int words_from(Buffers *buffers, Words *words, PyObject *starts, PyObject *chars, PyObject *rows,
                      Py_ssize_t longest) {
    Py_ssize_t n_starts, n_chars, n_rows;
    const uint32_t *start = hold(buffers, starts, 4, &n_starts, 0);
    if (!start || !(words->chars = hold(buffers, chars, 2, &n_chars, 0))) return 0;
    const int32_t *row = hold(buffers, rows, 4, &n_rows, 0);
    if (!row) return 0;
    int fits = n_starts == n_rows + 1;
    for (Py_ssize_t i = 0; fits && i < n_rows; i++)
        fits = start[i] < start[i + 1] && start[i + 1] - start[i] <= UINT16_MAX && row[i] >= 0;
    if (!fits || (Py_ssize_t)start[n_rows] > n_chars) {
        PyErr_SetString(PyExc_ValueError, "the arrays of words do not fit together");
        return 0;
    }
    words->longest = longest; /* if it lies, words are missed, or looked for in vain */
    Fault fault;
    PyThreadState *lock = give_lock(n_chars);
    fault = make_words(words, start, row, n_rows);
    take_lock(lock);
    return is_made(fault);
}

/* A class is one of three, and an id has at most `bits` bits; the padding is a space. */
static int are_entries(const uint32_t *entries, Py_ssize_t n_entries, const uint16_t *pages, Py_ssize_t n_pages,
                       Py_ssize_t bits) {
    if (n_pages != 0x110000 >> PAGE_SHIFT) return 0;
    for (Py_ssize_t i = 0; i < n_pages; i++)
        if (pages[i] >= n_entries >> PAGE_SHIFT) return 0;
    uint32_t ids = 0, above = 0;
    for (Py_ssize_t i = 0; i < n_entries; i++) {
        ids |= entries[i] & 0xFFFF;
        above |= entries[i] >> CLASS_SHIFT > SPACE;
    }
    return !above && ids >> bits == 0 && entries[((size_t)pages[0] << PAGE_SHIFT) + 32] >> CLASS_SHIFT == SPACE;
}

static uint64_t lowest_bits(int64_t count) { return count >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1; }

static PyObject *featurizer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *compose, *pages, *entries, *orders, *ngram_keys, *ngram_rows, *words[3], *chunks[3], *edge_keys, *edge_rows;
    Py_ssize_t bits, longest_word, longest_chunk, reach;
    int has_words, unknown_row;
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Featurizer takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOOO!nOOp(OOO)ni(OOO)nnOO", &compose, &pages, &entries, &PyTuple_Type, &orders, &bits,
                          &ngram_keys, &ngram_rows, &has_words, &words[0], &words[1], &words[2],
                          &longest_word, &unknown_row, &chunks[0], &chunks[1], &chunks[2],
                          &longest_chunk, &reach, &edge_keys, &edge_rows))
        return NULL;
    Featurizer *self = (Featurizer *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    Features *f = &self->features;
    Py_ssize_t n_pages, n_entries;
    self->compose = Py_NewRef(compose);
    if (bits < 1 || bits > MAX_BITS || reach < 0 || reach > LONGEST_REACH || (2 * reach + 1) * bits > 64) {
        PyErr_SetString(PyExc_ValueError, "bits or reach do not fit a key of 64 bits");
        goto failed;
    }
    if (unknown_row < SPELT) {
        PyErr_SetString(PyExc_ValueError, "the row of unknown words is none");
        goto failed;
    }
    f->bits = (int)bits;
    f->has_words = has_words;
    f->unknown_row = unknown_row;
    f->reach = reach;
    Py_ssize_t n_orders = PyTuple_GET_SIZE(orders);
    if (n_orders > MAX_ORDERS) {
        PyErr_SetString(PyExc_ValueError, "too many orders");
        goto failed;
    }
    f->n_orders = (int)n_orders;
    for (int i = 0; i < f->n_orders; i++) {
        f->orders[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(orders, i));
        if (f->orders[i] == -1 && PyErr_Occurred()) goto failed;
        if (f->orders[i] < (i > 0 ? f->orders[i - 1] + 1 : 1) || f->orders[i] > LONGEST_ORDER ||
            f->orders[i] * bits > 64) {
            PyErr_SetString(PyExc_ValueError, "orders do not ascend, or do not fit a key of 64 bits");
            goto failed;
        }
        f->masks[i] = lowest_bits(f->orders[i] * bits);
        for (int n = 0; n <= LONGEST_ORDER; n++) f->fitting[n] += f->orders[i] <= n;
    }
    if (!(f->pages = hold(&self->buffers, pages, 2, &n_pages, 0))) goto failed;
    if (!(f->entries = hold(&self->buffers, entries, 4, &n_entries, 0))) goto failed;
    if (!are_entries(f->entries, n_entries, f->pages, n_pages, bits)) {
        PyErr_SetString(PyExc_ValueError, "the table of characters is short, or holds what is no class or no id");
        goto failed;
    }
    for (int n = 0; n <= 2 * reach + 1; n++) f->edge_masks[n] = lowest_bits(n * bits);
    if (pairs_from(&f->ngrams, ngram_keys, ngram_rows) && pairs_from(&f->edges, edge_keys, edge_rows) &&
        words_from(&self->buffers, &f->words, words[0], words[1], words[2], longest_word) &&
        words_from(&self->buffers, &f->chunks, chunks[0], chunks[1], chunks[2], longest_chunk))
        return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static void featurizer_free(Featurizer *self) {
    PyTypeObject *type = Py_TYPE(self);
    let_go(&self->buffers);
    free(self->features.ngrams.slots);
    free(self->features.edges.slots);
    free(self->features.words.slots);
    free(self->features.chunks.slots);
    Py_XDECREF(self->compose);
    type->tp_free(self);
    Py_DECREF(type);
}

static int has_surrogate(PyObject *text) {
    int kind = PyUnicode_KIND(text);
    if (kind == PyUnicode_1BYTE_KIND) return 0;
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    uint32_t found = 0;
    if (kind == PyUnicode_2BYTE_KIND)
        for (Py_ssize_t i = 0; i < length; i++) found |= (((const uint16_t *)data)[i] & 0xF800u) == 0xD800u;
    else
        for (Py_ssize_t i = 0; i < length; i++) found |= (((const uint32_t *)data)[i] & 0xFFFFF800u) == 0xD800u;
    return found != 0;
}

/* Limit of the characters of a call and of its texts: the sizes of their rows in bytes stay below 2^63. */
#define MAX_CHARACTERS (PY_SSIZE_T_MAX >> 8)

/* Own each text, composed; describe it for the loops. Returns the characters of all, -1 with an exception set. */
static Py_ssize_t take_texts(PyObject *compose, PyObject *sequence, Py_ssize_t n, PyObject **owned, Text *texts,
                             int64_t *longest) {
    Py_ssize_t characters = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *text = PySequence_Fast_GET_ITEM(sequence, i);
        if (!PyUnicode_Check(text)) {
            PyErr_Format(PyExc_TypeError, "text %zd is no str", i);
            return -1;
        }
        if (PyUnicode_GET_LENGTH(text) > LONGEST_TEXT || characters > MAX_CHARACTERS) {
            PyErr_Format(PyExc_OverflowError, "text %zd has more than %d characters, or all together more than can be "
                         "counted; cut it up", i, LONGEST_TEXT);
            return -1;
        }
        if (PyUnicode_IS_ASCII(text)) {
            owned[i] = Py_NewRef(text);
        } else {
            owned[i] = PyObject_CallOneArg(compose, text);
            if (!owned[i]) return -1;
            if (!PyUnicode_Check(owned[i]) || has_surrogate(owned[i])) {
                PyErr_Format(PyExc_ValueError, "text %zd has a lone surrogate", i);
                return -1;
            }
        }
        texts[i] = (Text){PyUnicode_DATA(owned[i]), PyUnicode_GET_LENGTH(owned[i]), (int)PyUnicode_KIND(owned[i])};
        characters += texts[i].length;
        if (texts[i].length > *longest) *longest = texts[i].length;
    }
    return characters;
}

/* What a call was given: its texts, and scratch for the characters of one. */
enum { FEW = 16, SHORT = 1024 };
typedef struct {
    PyObject *sequence, **owned, *few_owned[FEW];
    Text *texts, few_texts[FEW];
    Py_ssize_t n, characters;
    int64_t longest;
    Characters chars;
    void *scratch;
    uint64_t short_scratch[SHORT * BYTES_A_CHARACTER / sizeof(uint64_t) + 1];
} Given;

static void give_back(Given *given) {
    for (Py_ssize_t i = 0; given->owned && i < given->n; i++) Py_XDECREF(given->owned[i]);
    if (given->owned != given->few_owned) PyMem_RawFree(given->owned);
    if (given->texts != given->few_texts) PyMem_RawFree(given->texts);
    if (given->scratch != given->short_scratch) PyMem_RawFree(given->scratch);
    Py_XDECREF(given->sequence);
}

/* -1 with an exception set. Give it back in either case. */
static int take(PyObject *compose, PyObject *texts, Given *given) {
    given->owned = NULL;
    given->texts = NULL;
    given->scratch = NULL;
    given->longest = 0;
    given->sequence = NULL;
    /* A list is copied: another thread, or `compose`, may change it meanwhile. */
    given->sequence = PyList_Check(texts) ? PyList_AsTuple(texts)
                                          : PySequence_Fast(texts, "texts must be a sequence of str");
    if (!given->sequence) return -1;
    Py_ssize_t n = given->n = PySequence_Fast_GET_SIZE(given->sequence);
    if (n > MAX_CHARACTERS) {
        PyErr_NoMemory();
        given->n = 0;
        return -1;
    }
    if (n <= FEW) memset(given->few_owned, 0, sizeof given->few_owned);
    given->owned = n <= FEW ? given->few_owned : PyMem_RawCalloc((size_t)n, sizeof *given->owned);
    given->texts = n <= FEW ? given->few_texts : PyMem_RawMalloc((size_t)n * sizeof *given->texts);
    if (!given->owned || !given->texts) {
        PyErr_NoMemory();
        return -1;
    }
    given->characters = take_texts(compose, given->sequence, n, given->owned, given->texts, &given->longest);
    if (given->characters < 0) return -1;
    int64_t length = given->longest + SLACK > SHORT ? given->longest + SLACK : SHORT;
    given->scratch = length > SHORT ? PyMem_RawMalloc((size_t)length * BYTES_A_CHARACTER) : given->short_scratch;
    if (!given->scratch) {
        PyErr_NoMemory();
        return -1;
    }
    given->chars = characters_in(given->scratch, length);
    return 0;
}

static int can_sum(const Featurizer *self, int sums) {
    if (!sums || self->features.n_orders > 0) return 1;
    PyErr_SetString(PyExc_ValueError, "there are no sums without n-grams");
    return 0;
}

static PyObject *featurizer_call(Featurizer *self, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    PyObject *texts, *result = NULL, *rows = NULL, *offsets = NULL;
    int sums;
    if (!PyArg_ParseTuple(args, "Op", &texts, &sums) || !can_sum(self, sums)) return NULL;
    Given given;
    if (take(self->compose, texts, &given) < 0) goto done;
    Py_ssize_t n = given.n, room = most_rows(&self->features, sums, given.characters, n);
    rows = PyByteArray_FromStringAndSize(NULL, room * (Py_ssize_t)sizeof(int32_t));
    offsets = PyByteArray_FromStringAndSize(NULL, (n + 1) * (Py_ssize_t)sizeof(int64_t));
    if (!rows || !offsets) goto done;
    int32_t *first = (int32_t *)PyByteArray_AS_STRING(rows), *end;
    int64_t *bounds = (int64_t *)PyByteArray_AS_STRING(offsets), unknown = 0;
    PyThreadState *lock = give_lock(given.characters);
    end = featurize(&self->features, sums, given.texts, n, first, bounds, &given.chars, &unknown);
    take_lock(lock);
    if (PyByteArray_Resize(rows, (end - first) * (Py_ssize_t)sizeof(int32_t)) < 0) goto done;
    result = Py_BuildValue("OOL", rows, offsets, (long long)unknown);
done:
    give_back(&given);
    Py_XDECREF(rows);
    Py_XDECREF(offsets);
    return result;
}

static PyType_Slot featurizer_slots[] = {
    {Py_tp_new, featurizer_new}, {Py_tp_dealloc, featurizer_free}, {Py_tp_call, featurizer_call}, {0, NULL}};
static PyType_Spec featurizer_spec = {"gramvec.native.loops.Featurizer", sizeof(Featurizer), 0, Py_TPFLAGS_DEFAULT,
                                      featurizer_slots};

/* ---- Table ---- */

typedef struct {
    PyObject_HEAD
    Buffers buffers;
    Table table;
} TableObject;

/* The products of these and of 2^31 rows fit 63 bits. */
enum { MAX_COLUMNS = 1 << 20, MAX_STRIDE = 1 << 30 };

/* Whether this many numbers are the vectors of n texts; a product could overflow. */
static int are_vectors(Py_ssize_t numbers, Py_ssize_t n, const Table *t) {
    return numbers % t->dimension == 0 && numbers / t->dimension == n;
}

/* An optional array of float32 or bytes, of exactly `expected` items. */
static int optional(Buffers *buffers, PyObject *array, Py_ssize_t item, Py_ssize_t expected, const void **place) {
    Py_ssize_t length;
    *place = NULL;
    if (array == Py_None) return 0;
    if (!(*place = hold(buffers, array, item, &length, 0))) return -1;
    if (length == expected) return 0;
    PyErr_Format(PyExc_ValueError, "an array of %zd items where %zd are needed", length, expected);
    return -1;
}

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *rows, *scales, *weights, *columns, *bias;
    Py_ssize_t n_rows, dimension, stride, length;
    int item, mean, width;
    float step;
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Table takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OnnniOOfpOOi", &rows, &n_rows, &dimension, &stride, &item, &scales, &weights, &step,
                          &mean, &columns, &bias, &width))
        return NULL;
    TableObject *self = (TableObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    Table *t = &self->table;
    int fours = item == FOUR_BITS;
    if ((!fours && item != INT8 && item != FLOAT16 && item != FLOAT32) || n_rows < 0 || n_rows > INT32_MAX ||
        dimension < 1 || dimension > MAX_COLUMNS ||
        stride < (fours ? bytes_of_fours(dimension) : dimension * item) || stride > MAX_STRIDE ||
        (!fours && stride % item != 0)) {
        PyErr_SetString(PyExc_ValueError, "the table's shape, stride and type do not fit");
        goto failed;
    }
    t->n_rows = n_rows;
    t->dimension = dimension;
    t->stride = stride;
    t->width = ((fours ? bytes_of_fours(dimension) : dimension) + BLOCK - 1) / BLOCK * BLOCK;
    t->type = item;
    t->step = step;
    t->mean = mean;
    if (!(t->rows = hold(&self->buffers, rows, 1, &length, 0))) goto failed;
    int weighted = weights != Py_None;
    if ((!fours && (uintptr_t)t->rows % (uintptr_t)item != 0) || length < n_rows * stride || (fours && !weighted) ||
        (weighted && ((!fours && item != INT8) || (n_rows > 0 && length < (n_rows - 1) * stride + t->width)))) {
        PyErr_SetString(PyExc_ValueError, "the table's shape, stride and type do not fit its bytes");
        goto failed;
    }
    if (optional(&self->buffers, scales, 4, n_rows, (const void **)&t->scales) < 0 ||
        optional(&self->buffers, weights, 1, n_rows, (const void **)&t->weights) < 0 ||
        optional(&self->buffers, columns, 4, dimension, (const void **)&t->columns) < 0 ||
        optional(&self->buffers, bias, 4, dimension, (const void **)&t->bias) < 0)
        goto failed;
    for (Py_ssize_t i = 0; t->weights && i < n_rows; i++) {
        if (fours ? t->weights[i] > MAX_FOUR_BITS_WEIGHT : t->weights[i] < 1 || t->weights[i] > 128) {
            PyErr_SetString(PyExc_ValueError, fours ? "weights must be 0 to 127" : "weights must be 1 to 128");
            goto failed;
        }
    }
    t->ahead = MAX_BYTES_AHEAD / stride < MAX_ROWS_AHEAD ? MAX_BYTES_AHEAD / stride : MAX_ROWS_AHEAD;
    t->sum = choose_sum(t, width);
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static void table_free(TableObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    let_go(&self->buffers);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *table_call(TableObject *self, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    PyObject *given_ids, *given_offsets, *given_vectors, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOO", &given_ids, &given_offsets, &given_vectors)) return NULL;
    const Table *t = &self->table;
    Buffers buffers = {.count = 0};
    Py_ssize_t n_ids, n_offsets, n_numbers;
    void *total = NULL, *wide = NULL;
    const int32_t *ids = hold(&buffers, given_ids, 4, &n_ids, 0);
    const int64_t *offsets = ids ? hold(&buffers, given_offsets, 8, &n_offsets, 0) : NULL;
    float *vectors = offsets ? hold(&buffers, given_vectors, 4, &n_numbers, PyBUF_WRITABLE) : NULL;
    if (!vectors) goto done;
    int fits = n_offsets >= 1 && offsets[0] >= 0 && are_vectors(n_numbers, n_offsets - 1, t);
    for (Py_ssize_t i = 0; fits && i + 1 < n_offsets; i++) fits = offsets[i] <= offsets[i + 1];
    if (!fits || offsets[n_offsets - 1] > n_ids) {
        PyErr_SetString(PyExc_ValueError, "ids, offsets and vectors do not fit together");
        goto done;
    }
    total = PyMem_RawMalloc((size_t)total_columns(t) * sizeof(int32_t));
    wide = PyMem_RawMalloc((size_t)t->dimension * sizeof(double));
    if (!total || !wide) {
        PyErr_NoMemory();
        goto done;
    }
    int64_t wrong;
    PyThreadState *lock = give_lock(n_ids);
    wrong = sum_texts(t, ids, offsets, n_offsets - 1, vectors, total, wide);
    take_lock(lock);
    result = PyLong_FromLongLong(wrong);
done:
    PyMem_RawFree(total);
    PyMem_RawFree(wide);
    let_go(&buffers);
    return result;
}

static PyObject *table_embed(TableObject *self, PyObject *args) {
    PyObject *texts, *given_vectors, *result = NULL, *counts = NULL;
    Featurizer *featurizer;
    int sums;
    if (!PyArg_ParseTuple(args, "OOpO", &featurizer, &texts, &sums, &given_vectors)) return NULL;
    if (Py_TYPE(featurizer)->tp_dealloc != (destructor)featurizer_free) {
        PyErr_SetString(PyExc_TypeError, "a Featurizer is needed");
        return NULL;
    }
    if (!can_sum(featurizer, sums)) return NULL;
    const Table *t = &self->table;
    Buffers buffers = {.count = 0};
    Given given;
    void *total = NULL, *wide = NULL;
    int32_t *rows = NULL;
    Py_ssize_t n_numbers;
    if (take(featurizer->compose, texts, &given) < 0) goto done;
    float *vectors = hold(&buffers, given_vectors, 4, &n_numbers, PyBUF_WRITABLE);
    if (!vectors) goto done;
    if (!are_vectors(n_numbers, given.n, t)) {
        PyErr_SetString(PyExc_ValueError, "texts and vectors do not fit together");
        goto done;
    }
    Py_ssize_t room = most_rows(&featurizer->features, sums, given.longest, 1);
    total = PyMem_RawMalloc((size_t)total_columns(t) * sizeof(int32_t));
    wide = PyMem_RawMalloc((size_t)t->dimension * sizeof(double));
    rows = PyMem_RawMalloc(2 * (size_t)room * sizeof *rows);
    counts = PyByteArray_FromStringAndSize(NULL, given.n * (Py_ssize_t)sizeof(int64_t));
    if (!total || !wide || !rows || !counts) {
        PyErr_NoMemory();
        goto done;
    }
    int64_t *count = (int64_t *)PyByteArray_AS_STRING(counts);
    const Features *f = &featurizer->features;
    Embedded got;
    PyThreadState *lock = give_lock(given.characters);
    got = embed_texts(f, sums, t, given.texts, given.n, rows, room, &given.chars, total, wide, vectors, count);
    take_lock(lock);
    PyObject *wrong = got.has_wrong ? PyLong_FromLong(got.wrong) : Py_NewRef(Py_None);
    if (wrong) result = Py_BuildValue("OLdN", counts, (long long)got.unknown, got.featuring, wrong);
done:
    give_back(&given);
    let_go(&buffers);
    PyMem_RawFree(total);
    PyMem_RawFree(wide);
    PyMem_RawFree(rows);
    Py_XDECREF(counts);
    return result;
}

static PyMethodDef table_methods[] = {{"embed", (PyCFunction)table_embed, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyType_Slot table_slots[] = {
    {Py_tp_methods, table_methods}, {Py_tp_new, table_new}, {Py_tp_dealloc, table_free}, {Py_tp_call, table_call}, {0, NULL}};
static PyType_Spec table_spec = {"gramvec.native.loops.Table", sizeof(TableObject), 0, Py_TPFLAGS_DEFAULT, table_slots};

#include "lexical_type.h"
#include "fold_type.h"

/* ---- unit ---- */

static PyObject *unit(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    (void)module;
    PyObject *result = NULL;
    Buffers buffers = {.count = 0};
    Py_ssize_t n_rows, n_units;
    if (n_args != 2) {
        PyErr_SetString(PyExc_TypeError, "unit takes rows and units");
        return NULL;
    }
    const float *rows = hold(&buffers, args[0], 4, &n_rows, PyBUF_ND);
    float *units = rows ? hold(&buffers, args[1], 4, &n_units, PyBUF_WRITABLE) : NULL;
    if (!units) goto done;
    if (buffers.views[0].ndim != 2 || n_rows != n_units) {
        PyErr_SetString(PyExc_ValueError, "rows and units must be float32[n, d] alike");
        goto done;
    }
    Py_ssize_t n = buffers.views[0].shape[0], d = buffers.views[0].shape[1];
    PyThreadState *lock = give_lock(n_rows);
    unit_rows(rows, n, d, units);
    take_lock(lock);
    result = Py_NewRef(Py_None);
done:
    let_go(&buffers);
    return result;
}

#include "search_calls.h"
#include "pair_figures.h"
#include "jaro.h"

static PyMethodDef functions[] = {{"unit", (PyCFunction)(void (*)(void))unit, METH_FASTCALL, NULL},
                                  {"word_ngrams", word_ngrams, METH_O, NULL},
                                  {"turn", turn_rows, METH_VARARGS, NULL},
                                  {"scan", scan, METH_VARARGS, NULL},
                                  {"multiply", multiply, METH_VARARGS, NULL},
                                  {"pair_figures", pair_figures, METH_VARARGS, NULL},
                                  {"column_levels", column_levels, METH_VARARGS, NULL},
                                  {"boosted_sums", boosted_sums, METH_VARARGS, NULL},
                                  {"jaro_winkler", jaro_winkler, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

static int execute(PyObject *module) {
    PyObject *featurizer = PyType_FromModuleAndSpec(module, &featurizer_spec, NULL);
    if (!featurizer || PyModule_AddObjectRef(module, "Featurizer", featurizer) < 0) return -1;
    Py_DECREF(featurizer);
    PyObject *table = PyType_FromModuleAndSpec(module, &table_spec, NULL);
    if (!table || PyModule_AddObjectRef(module, "Table", table) < 0) return -1;
    Py_DECREF(table);
    PyObject *lexical = PyType_FromModuleAndSpec(module, &lexical_spec, NULL);
    if (!lexical || PyModule_AddObjectRef(module, "LexicalSketch", lexical) < 0) return -1;
    Py_DECREF(lexical);
    PyObject *folder = PyType_FromModuleAndSpec(module, &folder_spec, NULL);
    if (!folder || PyModule_AddObjectRef(module, "Folder", folder) < 0) return -1;
    Py_DECREF(folder);
    return PyModule_AddIntConstant(module, "BLOCK", BLOCK);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    /* Objects do not change once they are made, and a call's scratch is its own. */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "gramvec.native.loops", NULL, 0, functions, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_loops(void) { return PyModuleDef_Init(&definition); }
