/* gramvec.native.loops.Folder: see loops.pyi. A part of module.c, whose buffers it takes. */

/* Of an entry: 0 is a character that stays; else the highest byte is how many characters it becomes, and 1 more, the
 * rest is the one that it becomes, or where they are. */
enum { FOLD_SHIFT = 24 };
#define FOLD_MASK (((uint32_t)1 << FOLD_SHIFT) - 1)

typedef struct {
    PyObject_HEAD
    Buffers buffers;
    const uint16_t *pages;
    const uint32_t *entries, *targets;
} FolderObject;

static int are_folds(const FolderObject *f, Py_ssize_t n_pages, Py_ssize_t n_entries, Py_ssize_t n_targets) {
    if (!are_pages(f->pages, n_pages, n_entries)) return 0;
    for (Py_ssize_t i = 0; i < n_targets; i++)
        if (f->targets[i] > 0x10FFFF) return 0;
    for (Py_ssize_t i = 0; i < n_entries; i++) {
        Py_ssize_t length = (Py_ssize_t)(f->entries[i] >> FOLD_SHIFT) - 1, value = f->entries[i] & FOLD_MASK;
        if (length == 1 ? value > 0x10FFFF : length > 1 && value > n_targets - length) return 0;
    }
    return 1;
}

static PyObject *folder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *pages, *entries, *targets;
    Py_ssize_t n_pages, n_entries, n_targets;
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Folder takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOO", &pages, &entries, &targets)) return NULL;
    FolderObject *self = (FolderObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    if ((self->pages = hold(&self->buffers, pages, 2, &n_pages, 0)) &&
        (self->entries = hold(&self->buffers, entries, 4, &n_entries, 0)) &&
        (self->targets = hold(&self->buffers, targets, 4, &n_targets, 0))) {
        if (are_folds(self, n_pages, n_entries, n_targets)) return (PyObject *)self;
        PyErr_SetString(PyExc_ValueError, "the arrays of a folder do not fit together");
    }
    Py_DECREF(self);
    return NULL;
}

static void folder_free(FolderObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    let_go(&self->buffers);
    type->tp_free(self);
    Py_DECREF(type);
}

static inline uint32_t fold_of(const FolderObject *f, Py_UCS4 point) {
    return f->entries[(size_t)f->pages[point >> PAGE_SHIFT] << PAGE_SHIFT | (point & 255)];
}

/* Number of characters of the folded text, with the union of their bits in `above`; -1 where the text does not change. */
static Py_ssize_t folded_length(const FolderObject *f, int kind, const void *data, Py_ssize_t length, Py_UCS4 *above) {
    Py_ssize_t size = 0;
    uint32_t bits = 0, changed = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 point = PyUnicode_READ(kind, data, i);
        uint32_t entry = fold_of(f, point);
        Py_ssize_t count = (Py_ssize_t)(entry >> FOLD_SHIFT) - 1;
        changed |= entry;
        if (count > 1)
            for (Py_ssize_t k = 0; k < count; k++) bits |= f->targets[(entry & FOLD_MASK) + (size_t)k];
        else
            bits |= entry == 0 ? point : count == 1 ? entry & FOLD_MASK : 0;
        size += entry == 0 ? 1 : count;
    }
    *above = bits > 0x10FFFF ? 0x10FFFF : bits;
    return changed == 0 ? -1 : size;
}

static PyObject *folder_call(FolderObject *self, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    PyObject *text;
    if (!PyArg_ParseTuple(args, "U", &text)) return NULL;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (length > LONGEST_TEXT) {
        PyErr_Format(PyExc_OverflowError, "the text has more than %d characters; cut it up", LONGEST_TEXT);
        return NULL;
    }
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_UCS4 above;
    Py_ssize_t size = folded_length(self, kind, data, length, &above);
    if (size < 0) return Py_NewRef(text);
    PyObject *made = PyUnicode_New(size, above);
    if (!made || size == 0) return made;
    int to_kind = (int)PyUnicode_KIND(made);
    void *to = PyUnicode_DATA(made);
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 point = PyUnicode_READ(kind, data, i);
        uint32_t entry = fold_of(self, point);
        Py_ssize_t count = (Py_ssize_t)(entry >> FOLD_SHIFT) - 1;
        if (count > 1) {
            for (Py_ssize_t k = 0; k < count; k++, at++)
                PyUnicode_WRITE(to_kind, to, at, self->targets[(entry & FOLD_MASK) + (size_t)k]);
        } else if (count != 0) {
            PyUnicode_WRITE(to_kind, to, at, entry == 0 ? point : entry & FOLD_MASK);
            at++;
        }
    }
    return made;
}

static PyType_Slot folder_slots[] = {
    {Py_tp_new, folder_new}, {Py_tp_dealloc, folder_free}, {Py_tp_call, folder_call}, {0, NULL}};
static PyType_Spec folder_spec = {"gramvec.native.loops.Folder", sizeof(FolderObject), 0, Py_TPFLAGS_DEFAULT, folder_slots};
