/* An extension module around the machine code of the kernels: what Python needs to call them.

   kernels[] and what it points to are written by build.py.  An adapter takes the arguments of its kernel as words: a
   number is one word, an array its address and its shape.  Here Python's objects become such words, once they are
   found to be what the kernel takes. */

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)

enum { MAX_WORDS = 192, RESULT_WORDS = 16 };

typedef struct {
    const char *name, *arguments, *result; /* see signatures.py */
    int32_t (*adapter)(int64_t *words, int64_t *result, void **error);
    void *address;
} Kernel;

extern const Kernel kernels[];
extern const int kernel_count;
extern const char *const library_sources, *const library_digest;

/* ---- What numba's own run-time library would give to kernels that make arrays. */

typedef struct {
    size_t references;
    void *destructor, *destructor_information, *data;
    size_t size;
    void *allocator;
} MemInfo;

void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t alignment) {
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    char *memory = malloc(sizeof(MemInfo) + size + alignment);
    if (memory == NULL) {
        return NULL;
    }
    MemInfo *info = (MemInfo *)memory;
    uintptr_t data = (uintptr_t)(memory + sizeof(MemInfo));
    data = (data + alignment - 1) / alignment * alignment;
    *info = (MemInfo){1, NULL, NULL, (void *)data, size, NULL};
    return info;
}

void NRT_MemInfo_call_dtor(void *info) { free(info); }

/* ---- Arguments. */

static int take_array(const Kernel *kernel, int index, const char *code, PyObject *value, int64_t **words) {
    int dimensions = code[1] - '0', letter = code[0];
    if (PyArray_Check(value)) {
        PyArrayObject *array = (PyArrayObject *)value;
        char kind = PyArray_DESCR(array)->kind;
        int size = (int)PyArray_ITEMSIZE(array), fits;
        int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (code[2] == 'w' ? NPY_ARRAY_WRITEABLE : 0);
        switch (letter) {
        case '?': fits = kind == 'b'; break;
        case 'b': fits = kind == 'i' && size == 1; break;
        case 'B': fits = kind == 'u' && size == 1; break;
        case 'H': fits = kind == 'u' && size == 2; break;
        case 'i': fits = kind == 'i' && size == 4; break;
        case 'I': fits = kind == 'u' && size == 4; break;
        case 'q': fits = kind == 'i' && size == 8; break;
        case 'Q': fits = kind == 'u' && size == 8; break;
        case 'f': fits = kind == 'f' && size == 4; break;
        default: fits = kind == 'f' && size == 8;
        }
        if (fits && PyArray_NDIM(array) == dimensions && PyArray_CHKFLAGS(array, wanted) && PyArray_ISNOTSWAPPED(array)) {
            *(*words)++ = (int64_t)(intptr_t)PyArray_DATA(array);
            for (int i = 0; i < dimensions; i++) {
                *(*words)++ = PyArray_DIM(array, i);
            }
            return 1;
        }
    }
    PyErr_Format(PyExc_TypeError, "%s: argument %d is not a %sarray in C order of type '%c' with %d dimensions",
                 kernel->name, index + 1, code[2] == 'w' ? "writable " : "", letter, dimensions);
    return 0;
}

static int take_number(int letter, PyObject *value, int64_t *word) {
    if (letter == 'd') {
        double number = PyFloat_AsDouble(value);
        memcpy(word, &number, 8);
        return !(number == -1.0 && PyErr_Occurred());
    }
    if (letter == '?') {
        *word = PyObject_IsTrue(value);
        return *word >= 0;
    }
    if (!PyLong_Check(value)) { /* such as numpy.int64 */
        PyObject *number = PyNumber_Index(value);
        if (number == NULL) {
            return 0;
        }
        int taken = take_number(letter, number, word);
        Py_DecRef(number);
        return taken;
    }
    if (letter == 'Q') {
        *word = (int64_t)PyLong_AsUnsignedLongLong(value);
    } else {
        *word = PyLong_AsLongLong(value);
    }
    return !(*word == -1 && PyErr_Occurred());
}

/* ---- Results. */

static PyObject *number_of(int letter, int64_t word) {
    if (letter == '?') {
        return PyBool_FromLong(word & 1);
    }
    if (letter == 'd') {
        double number;
        memcpy(&number, &word, 8);
        return PyFloat_FromDouble(number);
    }
    return PyLong_FromLongLong(word);
}

static PyObject *array_of(const char *code, const int64_t *words) {
    /* numba's struct of an array: MemInfo, parent, items, item size, address, shape, strides. */
    int type = code[0] == 'i' ? NPY_INT32 : code[0] == 'q' ? NPY_INT64 : NPY_UINT8, dimensions = code[1] - '0';
    MemInfo *info = (MemInfo *)(intptr_t)words[0];
    npy_intp shape[2];
    for (int i = 0; i < dimensions; i++) {
        shape[i] = words[5 + i];
    }
    PyObject *array = PyArray_SimpleNew(dimensions, shape, type);
    if (array != NULL && words[2] > 0) {
        memcpy(PyArray_DATA((PyArrayObject *)array), (void *)(intptr_t)words[4], words[2] * words[3]);
    }
    if (info != NULL && --info->references == 0) {
        free(info);
    }
    return array;
}

/* An exception that a kernel raises is a pickle of its class and arguments. */
static void raise_error(const Kernel *kernel, int32_t status, void *error) {
    struct {
        const char *data;
        int32_t size;
    } pickle = {NULL, 0};
    if (status > 0 && error != NULL) {
        memcpy(&pickle, error, sizeof(pickle));
        PyObject *module = PyImport_ImportModule("pickle");
        PyObject *found = module ? PyObject_CallMethod(module, "loads", "y#", pickle.data, (Py_ssize_t)pickle.size) : NULL;
        if (found != NULL && PyTuple_Check(found) && PyTuple_Size(found) >= 2) {
            PyErr_SetObject(PyTuple_GetItem(found, 0), PyTuple_GetItem(found, 1));
        }
        Py_XDECREF(found);
        Py_XDECREF(module);
    }
    if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_RuntimeError, "%s failed with status %d", kernel->name, (int)status);
    }
}

static PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    const Kernel *kernel = PyCapsule_GetPointer(self, NULL);
    int64_t words[MAX_WORDS], *next = words, result[RESULT_WORDS] = {0};
    void *error = NULL;
    const char *code = kernel->arguments;
    for (Py_ssize_t i = 0; i < count; i++, code += 3) {
        if (*code == 0) {
            break;
        }
        if (code[1] == '0' ? !take_number(code[0], arguments[i], next++)
                           : !take_array(kernel, (int)i, code, arguments[i], &next)) {
            return NULL;
        }
    }
    if (*code != 0 || (code - kernel->arguments) / 3 != count) {
        PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd", kernel->name,
                     (int)(strlen(kernel->arguments) / 3), count);
        return NULL;
    }
    int32_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = kernel->adapter(words, result, &error);
    Py_END_ALLOW_THREADS;
    if (status != 0) {
        raise_error(kernel, status, error);
        return NULL;
    }
    const char *kind = kernel->result;
    if (kind[0] == 0) {
        Py_RETURN_NONE;
    }
    if (kind[1] == 0) {
        return number_of(kind[0], result[0]);
    }
    if (kind[1] == '1' || kind[1] == '2') {
        return array_of(kind, result);
    }
    PyObject *tuple = PyTuple_New((Py_ssize_t)strlen(kind));
    for (int i = 0; tuple != NULL && kind[i] != 0; i++) {
        PyTuple_SetItem(tuple, i, number_of(kind[i], result[i]));
    }
    return tuple;
}

/* ---- Short texts.

   A tokenizer's kernel takes a frame, which has the addresses of all else, and the size of a text; it leaves the ids in
   an array and returns their number.  To come from Python's text to a list of ids with calls from Python takes as long
   as such a text has words.  The lock is held meanwhile, so threads can share the arrays. */

enum { SHORT_BYTES = 1024 };

typedef struct {
    const Kernel *kernel;
    PyArrayObject *frame, *text, *ids;
    PyObject *common, *kept;
    const char *begin; /* what all added tokens begin with, which may be nothing */
    Py_ssize_t begin_size;
    unsigned char is_first[256]; /* whether an added token begins with this byte */
    int only_ascii;
} Texts;

static int may_have_added_tokens(const Texts *texts, const char *data, Py_ssize_t size) {
    for (Py_ssize_t i = 0; i < size && i + texts->begin_size <= size; i++) {
        if (texts->is_first[(unsigned char)data[i]] && memcmp(data + i, texts->begin, texts->begin_size) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The ids of a text; None if it is no short text without added tokens, or if the kernel says so. */
static PyObject *ids_of(PyObject *self, PyObject *text) {
    const Texts *texts = PyCapsule_GetPointer(self, NULL);
    Py_ssize_t length, size;
    if (!PyUnicode_CheckExact(text) || (length = PyUnicode_GetLength(text)) > SHORT_BYTES) {
        Py_RETURN_NONE;
    }
    const char *data = PyUnicode_AsUTF8AndSize(text, &size);
    if (data == NULL) { /* a lone surrogate */
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return NULL;
        }
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (size > SHORT_BYTES || (texts->only_ascii && size != length) || may_have_added_tokens(texts, data, size)) {
        Py_RETURN_NONE;
    }
    memcpy(PyArray_DATA(texts->text), data, size);
    int64_t words[3] = {(int64_t)(intptr_t)PyArray_DATA(texts->frame), PyArray_DIM(texts->frame, 0), size};
    int64_t count[RESULT_WORDS] = {0};
    void *error = NULL;
    int32_t status = texts->kernel->adapter(words, count, &error);
    if (status != 0) {
        raise_error(texts->kernel, status, error);
        return NULL;
    }
    if (count[0] < 0 || count[0] > SHORT_BYTES) {
        Py_RETURN_NONE;
    }
    /* A new list may call the garbage collector, and that anything. */
    int32_t ids[SHORT_BYTES];
    memcpy(ids, PyArray_DATA(texts->ids), count[0] * sizeof(int32_t));
    PyObject *list = PyList_New(count[0]);
    for (int i = 0; list != NULL && i < count[0]; i++) {
        PyObject *number = PyLong_FromLong(ids[i]);
        if (number == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SetItem(list, i, number);
        }
    }
    if (list != NULL) {
        /* Numbers are part of no cycle.  For a batch, to go through its lists again and again took a fifth of the time. */
        PyObject_GC_UnTrack(list);
    }
    return list;
}

static void forget_texts(PyObject *capsule) {
    Texts *texts = PyCapsule_GetPointer(capsule, NULL);
    Py_XDECREF((PyObject *)texts->frame);
    Py_XDECREF((PyObject *)texts->text);
    Py_XDECREF((PyObject *)texts->ids);
    Py_XDECREF(texts->common);
    Py_XDECREF(texts->kept);
    free(texts);
}

static PyMethodDef ids_of_definition = {"ids_of", ids_of, METH_O, NULL};

/* kernel, frame: int64[], text: uint8[], ids: int32[], what added tokens begin with: bytes, and their first bytes:
   bytes, whether other texts than those in ASCII are not taken, what has to live as long: a function from a text to its
   ids or None. */
static PyObject *on_short_texts(PyObject *module, PyObject *arguments) {
    PyObject *function, *common, *first, *kept;
    PyArrayObject *frame, *text, *ids;
    char *firsts;
    Py_ssize_t first_count;
    int only_ascii;
    if (!PyArg_ParseTuple(arguments, "OO!O!O!SSpO", &function, &PyArray_Type, &frame, &PyArray_Type, &text, &PyArray_Type,
                          &ids, &common, &first, &only_ascii, &kept)) {
        return NULL;
    }
    PyObject *holder = PyCFunction_Check(function) ? PyCFunction_GetSelf(function) : NULL;
    const Kernel *kernel = holder && PyCapsule_CheckExact(holder) ? PyCapsule_GetPointer(holder, NULL) : NULL;
    if (kernel == NULL || strcmp(kernel->arguments, "q1wq0w") != 0 || strcmp(kernel->result, "q") != 0 ||
        PyArray_SIZE(text) < SHORT_BYTES || PyArray_ITEMSIZE(text) != 1 || PyArray_SIZE(ids) < SHORT_BYTES ||
        PyArray_ITEMSIZE(ids) != 4 || PyArray_ITEMSIZE(frame) != 8 || PyArray_NDIM(frame) != 1) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "no kernel of texts, or arrays of another type or size");
        return NULL;
    }
    Texts *texts = calloc(1, sizeof(Texts));
    if (texts == NULL) {
        return PyErr_NoMemory();
    }
    *texts = (Texts){kernel, frame, text, ids, common, kept, NULL, 0, {0}, only_ascii};
    Py_INCREF((PyObject *)frame);
    Py_INCREF((PyObject *)text);
    Py_INCREF((PyObject *)ids);
    Py_INCREF(common);
    Py_INCREF(kept);
    PyBytes_AsStringAndSize(common, (char **)&texts->begin, &texts->begin_size);
    PyBytes_AsStringAndSize(first, &firsts, &first_count);
    for (Py_ssize_t i = 0; i < first_count; i++) {
        texts->is_first[(unsigned char)firsts[i]] = 1;
    }
    PyObject *capsule = PyCapsule_New(texts, NULL, forget_texts);
    if (capsule == NULL) {
        return NULL;
    }
    PyObject *result = PyCFunction_NewEx(&ids_of_definition, capsule, NULL);
    Py_DECREF(capsule);
    return result;
}

/* ---- The garbage collector. */

/* Have it leave a tuple alone that is part of no cycle, or all tuples of a list. */
static PyObject *untrack(PyObject *module, PyObject *value) {
    if (PyTuple_CheckExact(value)) {
        PyObject_GC_UnTrack(value);
    } else if (PyList_CheckExact(value)) {
        for (Py_ssize_t i = 0, size = PyList_Size(value); i < size; i++) {
            PyObject *item = PyList_GetItem(value, i);
            if (PyTuple_CheckExact(item)) {
                PyObject_GC_UnTrack(item);
            }
        }
    }
    Py_RETURN_NONE;
}

/* ---- Identities. */

/* list, addresses: int64[n]: whether the list has the objects that are there, in this order. */
static PyObject *are_at(PyObject *module, PyObject *arguments) {
    PyObject *list;
    PyArrayObject *addresses;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &list, &PyArray_Type, &addresses)) {
        return NULL;
    }
    if (PyArray_ITEMSIZE(addresses) != 8 || PyArray_NDIM(addresses) != 1 ||
        !PyArray_CHKFLAGS(addresses, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)) {
        PyErr_SetString(PyExc_TypeError, "no array of addresses");
        return NULL;
    }
    const int64_t *wanted = PyArray_DATA(addresses);
    Py_ssize_t size = PyList_Size(list), same = 0;
    if (size == PyArray_DIM(addresses, 0)) {
        while (same < size && (intptr_t)PyList_GetItem(list, same) == wanted[same]) {
            same++;
        }
        return PyBool_FromLong(same == size);
    }
    Py_RETURN_FALSE;
}

static PyMethodDef functions[] = {{"on_short_texts", on_short_texts, METH_VARARGS, NULL},
                                  {"untrack", untrack, METH_O, NULL},
                                  {"are_at", are_at, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

/* ---- The module. */

/* Whether this processor has what the code was compiled for. */
static int is_supported(void) {
#if defined(__x86_64__) && defined(LEVEL)
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
          __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt"))) {
        return 0;
    }
    return LEVEL < 4 || (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl"));
#else
    return 1;
#endif
}

static int add(PyObject *module, const char *name, PyObject *value) {
    int failed = value == NULL || PyModule_AddObjectRef(module, name, value) < 0;
    Py_XDECREF(value);
    return failed;
}

/* name: (callable, address, arguments, result) */
static PyObject *make_kernels(void) {
    PyObject *found = PyDict_New();
    PyMethodDef *methods = calloc(kernel_count, sizeof(PyMethodDef)); /* lives as long as the process */
    if (found == NULL || methods == NULL) {
        return PyErr_NoMemory();
    }
    for (int i = 0; i < kernel_count; i++) {
        const Kernel *kernel = &kernels[i];
        size_t words = 0;
        for (const char *code = kernel->arguments; *code != 0; code += 3) {
            words += 1 + (code[1] - '0');
        }
        if (words > MAX_WORDS) {
            PyErr_Format(PyExc_RuntimeError, "%s takes too many arguments", kernel->name);
            return NULL;
        }
        methods[i] = (PyMethodDef){kernel->name, (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};
        PyObject *self = PyCapsule_New((void *)kernel, NULL, NULL);
        PyObject *function = self ? PyCFunction_NewEx(&methods[i], self, NULL) : NULL;
        PyObject *entry = function ? Py_BuildValue("(NLss)", function, (long long)(intptr_t)kernel->address,
                                                   kernel->arguments, kernel->result)
                                   : NULL;
        Py_XDECREF(self);
        int failed = entry == NULL || PyDict_SetItemString(found, kernel->name, entry) < 0;
        Py_XDECREF(entry);
        if (failed) {
            Py_DecRef(found);
            return NULL;
        }
    }
    return found;
}

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, QUOTE(NAME), NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PASTE(PyInit_, NAME)(void) {
    import_array();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || add(module, "is_supported", PyBool_FromLong(is_supported())) ||
        add(module, "sources", PyUnicode_FromString(library_sources)) ||
        add(module, "digest", PyUnicode_FromString(library_digest)) || add(module, "kernels", make_kernels())) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
