/* gramvec.native.loops.LexicalSketch: see loops.pyi. A part of module.c, whose texts and buffers it takes. */

typedef struct {
    PyObject_HEAD
    Buffers buffers;
    LexicalSketch lexical;
    PyObject *compose;
} LexicalObject;

static int are_pages(const uint16_t *pages, Py_ssize_t n_pages, Py_ssize_t n_shifts) {
    int fit = n_pages == 0x110000 >> PAGE_SHIFT;
    for (Py_ssize_t i = 0; fit && i < n_pages; i++) fit = pages[i] < n_shifts >> PAGE_SHIFT;
    return fit;
}

static PyObject *lexical_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *compose, *pages, *shifts, *weights, *orders;
    Py_ssize_t columns, n_pages, n_shifts, n_weights;
    double scale;
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "LexicalSketch takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOOOO!nd", &compose, &pages, &shifts, &weights, &PyTuple_Type, &orders, &columns,
                          &scale))
        return NULL;
    LexicalObject *self = (LexicalObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    LexicalSketch *d = &self->lexical;
    self->compose = Py_NewRef(compose);
    d->scale = scale;
    while (d->block_bits < MAX_BLOCK_BITS && (Py_ssize_t)SIGNS << d->block_bits < columns) d->block_bits++;
    if ((Py_ssize_t)SIGNS << d->block_bits != columns) {
        PyErr_SetString(PyExc_ValueError, "columns are 8 to 1024, a power of 2");
        goto failed;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(orders); i++) {
        long order = PyLong_AsLong(PyTuple_GET_ITEM(orders, i));
        if (order == -1 && PyErr_Occurred()) goto failed;
        if (order < 1 || order > LONGEST_HASHED) {
            PyErr_SetString(PyExc_ValueError, "orders are 1 to 6");
            goto failed;
        }
        d->has_order[order] = 1;
        if (order > d->longest) d->longest = (int)order;
    }
    if (!(d->pages = hold(&self->buffers, pages, 2, &n_pages, 0)) ||
        !(d->shifts = hold(&self->buffers, shifts, 4, &n_shifts, 0)) ||
        !(d->weights = hold(&self->buffers, weights, 1, &n_weights, 0)))
        goto failed;
    if (n_weights == 1 << WEIGHT_BITS && are_pages(d->pages, n_pages, n_shifts))
        return (PyObject *)self;
    PyErr_SetString(PyExc_ValueError, "the arrays of a lexical sketch do not fit together");
failed:
    Py_DECREF(self);
    return NULL;
}

static void lexical_free(LexicalObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    let_go(&self->buffers);
    Py_XDECREF(self->compose);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *lexical_join(LexicalObject *self, PyObject *args) {
    PyObject *texts, *given_vectors, *given_joined, *given_counts, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOO", &texts, &given_vectors, &given_joined, &given_counts)) return NULL;
    const LexicalSketch *d = &self->lexical;
    int64_t sums[2 * SIGNS << MAX_BLOCK_BITS];
    Buffers buffers = {.count = 0};
    Given given;
    Py_ssize_t n_vectors, n_joined, n_counts, columns = (Py_ssize_t)SIGNS << d->block_bits;
    if (take(self->compose, texts, &given) < 0) goto done;
    const float *vectors = hold(&buffers, given_vectors, 4, &n_vectors, PyBUF_ND);
    float *joined = vectors ? hold(&buffers, given_joined, 4, &n_joined, PyBUF_ND | PyBUF_WRITABLE) : NULL;
    int64_t *counts = joined ? hold(&buffers, given_counts, 8, &n_counts, PyBUF_WRITABLE) : NULL;
    if (!counts) goto done;
    const Py_buffer *from = &buffers.views[0], *to = &buffers.views[1];
    if (from->ndim != 2 || to->ndim != 2 || from->shape[0] != given.n || to->shape[0] != given.n || n_counts != given.n ||
        to->shape[1] != from->shape[1] + columns) {
        PyErr_SetString(PyExc_ValueError, "texts, vectors, joined and counts do not fit together");
        goto done;
    }
    PyThreadState *lock = give_lock(given.characters);
    join_sketches(d, given.texts, given.n, vectors, from->shape[1], sums, joined, counts);
    take_lock(lock);
    result = Py_NewRef(Py_None);
done:
    give_back(&given);
    let_go(&buffers);
    return result;
}

static PyMethodDef lexical_methods[] = {{"join", (PyCFunction)lexical_join, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyType_Slot lexical_slots[] = {
    {Py_tp_methods, lexical_methods}, {Py_tp_new, lexical_new}, {Py_tp_dealloc, lexical_free}, {0, NULL}};
static PyType_Spec lexical_spec = {"gramvec.native.loops.LexicalSketch", sizeof(LexicalObject), 0, Py_TPFLAGS_DEFAULT,
                                    lexical_slots};
