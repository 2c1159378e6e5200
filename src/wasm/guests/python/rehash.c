
#include "wasm/guests/python/rehash.h"

#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_hashtable.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>

enum { PERTURB_SHIFT = 5, LINEAR_PROBES = 9 };

// Pointers, each once.
typedef struct {
  void** items;
  size_t count;
} List;

static List texts;  // str and bytes that have been hashed
static List keys;   // of dicts and classes
static List sets;

static PyMemAllocatorEx objects;  // as the interpreter has it
static _Py_hashtable_t* blocks;   // of the size of a dict
static _Py_hashtable_t* hashed;   // str and bytes, with a reference to each
static hashfunc hash_text;
static hashfunc hash_bytes;

static void give_up(const char* why) {
  fprintf(stderr, "snapshot: %s\n", why);
  exit(1);
}

static _Py_hashtable_t* make_table(void) {
  return _Py_hashtable_new(_Py_hashtable_hash_ptr, _Py_hashtable_compare_direct);
}

static void note(_Py_hashtable_t* table, const void* pointer) {
  if (_Py_hashtable_get_entry(table, pointer)) return;
  if (_Py_hashtable_set(table, pointer, NULL) != 0) give_up("no memory");
}

// A dict that holds only what holds nothing itself is on no list of the garbage collector; so its allocation is
// watched.
static void* note_block(void* block, size_t size) {
  if (block && size == sizeof(PyGC_Head) + sizeof(PyDictObject)) note(blocks, block);
  return block;
}

static void* watched_malloc(void* context, size_t size) {
  return note_block(objects.malloc(context, size), size);
}

static void* watched_calloc(void* context, size_t count, size_t size) {
  return note_block(objects.calloc(context, count, size), count * size);
}

static void* watched_realloc(void* context, void* block, size_t size) {
  if (block) _Py_hashtable_steal(blocks, block);
  return note_block(objects.realloc(context, block, size), size);
}

static void watched_free(void* context, void* block) {
  if (block) _Py_hashtable_steal(blocks, block);
  objects.free(context, block);
}

static Py_hash_t note_hashed(PyObject* object, hashfunc hash) {
  if (hashed && !_Py_hashtable_get_entry(hashed, object)) {
    note(hashed, object);
    Py_INCREF(object);
  }
  return hash(object);
}

static Py_hash_t watched_text(PyObject* object) {
  return note_hashed(object, hash_text);
}

static Py_hash_t watched_bytes(PyObject* object) {
  return note_hashed(object, hash_bytes);
}

void watch_for_hashes(void) {
  PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &objects);
  blocks = make_table();
  hashed = make_table();
  PyMemAllocatorEx watched = {objects.ctx, watched_malloc, watched_calloc, watched_realloc, watched_free};
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &watched);
  hash_text = PyUnicode_Type.tp_hash;
  hash_bytes = PyBytes_Type.tp_hash;
  PyUnicode_Type.tp_hash = watched_text;
  PyBytes_Type.tp_hash = watched_bytes;
}

static int add_to_list(_Py_hashtable_t* table, const void* pointer, const void* value, void* data) {
  (void)table, (void)value;
  List* list = data;
  list->items[list->count++] = (void*)pointer;
  return 0;
}

static List list_of(_Py_hashtable_t* table) {
  List list = {malloc((table->nentries + 1) * sizeof(void*)), 0};
  if (!list.items) give_up("no memory");
  _Py_hashtable_foreach(table, add_to_list, &list);
  return list;
}

// Only those that somebody else has a use for.
static void keep_living_texts(void) {
  texts = list_of(hashed);
  _Py_hashtable_destroy(hashed);
  hashed = NULL;
  size_t living = 0;
  for (size_t i = 0; i < texts.count; ++i) {
    PyObject* text = texts.items[i];
    if (Py_REFCNT(text) > 1) texts.items[living++] = text;
    Py_DECREF(text);
  }
  texts.count = living;
}

static void add_object(PyObject* object, _Py_hashtable_t* all_keys, _Py_hashtable_t* all_sets) {
  if (PyDict_Check(object)) note(all_keys, ((PyDictObject*)object)->ma_keys);
  if (PyODict_Check(object)) give_up("an OrderedDict keeps hashes of its own");
  if (PyAnySet_Check(object)) note(all_sets, object);
  if (PyType_Check(object) && (((PyTypeObject*)object)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
    PyDictKeysObject* cached = ((PyHeapTypeObject*)object)->ht_cached_keys;
    if (cached) note(all_keys, cached);
  }
  if (strcmp(Py_TYPE(object)->tp_name, "functools._lru_cache_wrapper") == 0) give_up("a cache keeps hashes of its own");
}

static int add_untracked_dict(_Py_hashtable_t* table, const void* block, const void* value, void* all_keys) {
  (void)table, (void)value;
  PyObject* object = (PyObject*)((PyGC_Head*)block + 1);
  // The interpreter keeps blocks of dicts that are gone, to use them again.
  const int is_dict = Py_IS_TYPE(object, &PyDict_Type) && Py_REFCNT(object) > 0;
  if (is_dict && !_PyObject_GC_IS_TRACKED(object)) note(all_keys, ((PyDictObject*)object)->ma_keys);
  return 0;
}

void end_watch(void) {
  PyGC_Collect();
  keep_living_texts();
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &objects);
  _Py_hashtable_t* all_keys = make_table();
  _Py_hashtable_t* all_sets = make_table();
  struct _gc_runtime_state* collector = &_PyInterpreterState_GET()->gc;
  for (int i = 0; i < NUM_GENERATIONS; ++i) {
    PyGC_Head* head = &collector->generations[i].head;
    for (PyGC_Head* at = _PyGCHead_NEXT(head); at != head; at = _PyGCHead_NEXT(at)) {
      add_object((PyObject*)(at + 1), all_keys, all_sets);
    }
  }
  _Py_hashtable_foreach(blocks, add_untracked_dict, all_keys);
  _Py_hashtable_destroy(blocks);
  keys = list_of(all_keys);
  sets = list_of(all_sets);
  _Py_hashtable_destroy(all_keys);
  _Py_hashtable_destroy(all_sets);
  rehash_all();  // ends here rather than in somebody's run, if it can't be done
}

static Py_hash_t hash_of(PyObject* key) {
  if (PyFrozenSet_Check(key)) give_up("the hash of a set in a set depends on which is mended first");
  const Py_hash_t hash = PyObject_Hash(key);
  if (hash == -1) give_up("a key can't be hashed");
  return hash;
}

static int is_free(PyDictKeysObject* table, size_t slot) {
  if (table->dk_log2_size < 8) return ((int8_t*)table->dk_indices)[slot] == DKIX_EMPTY;
  if (table->dk_log2_size < 16) return ((int16_t*)table->dk_indices)[slot] == DKIX_EMPTY;
  return ((int32_t*)table->dk_indices)[slot] == DKIX_EMPTY;
}

static void set_index(PyDictKeysObject* table, size_t slot, Py_ssize_t index) {
  if (table->dk_log2_size < 8) {
    ((int8_t*)table->dk_indices)[slot] = (int8_t)index;
  } else if (table->dk_log2_size < 16) {
    ((int16_t*)table->dk_indices)[slot] = (int16_t)index;
  } else {
    ((int32_t*)table->dk_indices)[slot] = (int32_t)index;
  }
}

// As dictobject.c looks it up.
static void place_in_dict(PyDictKeysObject* table, Py_hash_t hash, Py_ssize_t index) {
  const size_t mask = DK_SIZE(table) - 1;
  size_t perturb = (size_t)hash;
  size_t slot = perturb & mask;
  while (!is_free(table, slot)) {
    perturb >>= PERTURB_SHIFT;
    slot = (slot * 5 + perturb + 1) & mask;
  }
  set_index(table, slot, index);
}

// The entries stay where they are, in the order in which they came; so nothing that knows their numbers notices.
static void rehash_keys(PyDictKeysObject* table) {
  if (table->dk_nentries == 0) return;
  memset(table->dk_indices, 0xff, (size_t)1 << table->dk_log2_index_bytes);
  for (Py_ssize_t i = 0; i < table->dk_nentries; ++i) {
    PyObject* key = DK_IS_UNICODE(table) ? DK_UNICODE_ENTRIES(table)[i].me_key : DK_ENTRIES(table)[i].me_key;
    if (!key) continue;  // deleted
    const Py_hash_t hash = hash_of(key);
    if (!DK_IS_UNICODE(table)) DK_ENTRIES(table)[i].me_hash = hash;
    place_in_dict(table, hash, i);
  }
}

// As setobject.c looks it up.
static void place_in_set(PySetObject* set, PyObject* key, Py_hash_t hash) {
  const size_t mask = (size_t)set->mask;
  size_t perturb = (size_t)hash;
  size_t slot = perturb & mask;
  for (;;) {
    const size_t last = slot + LINEAR_PROBES <= mask ? slot + LINEAR_PROBES : slot;
    for (size_t at = slot; at <= last; ++at) {
      if (set->table[at].key) continue;
      set->table[at] = (setentry){key, hash};
      return;
    }
    perturb >>= PERTURB_SHIFT;
    slot = (slot * 5 + 1 + perturb) & mask;
  }
}

static void rehash_set(PySetObject* set) {
  const size_t slots = (size_t)set->mask + 1;
  setentry* old = malloc(slots * sizeof *old);
  if (!old) give_up("no memory");
  memcpy(old, set->table, slots * sizeof *old);
  memset(set->table, 0, slots * sizeof *old);
  for (size_t i = 0; i < slots; ++i) {
    if (old[i].key && old[i].key != _PySet_Dummy) place_in_set(set, old[i].key, hash_of(old[i].key));
  }
  set->fill = set->used;
  set->hash = -1;
  free(old);
}

void rehash_all(void) {
  for (size_t i = 0; i < texts.count; ++i) {
    PyObject* text = texts.items[i];
    if (PyUnicode_Check(text)) {
      ((PyASCIIObject*)text)->hash = -1;
    } else {
      _Py_COMP_DIAG_PUSH _Py_COMP_DIAG_IGNORE_DEPR_DECLS((PyBytesObject*)text)->ob_shash = -1;
      _Py_COMP_DIAG_POP
    }
  }
  // Names first: what a key of another kind does to be hashed may look some up.
  for (int names = 1; names >= 0; --names) {
    for (size_t i = 0; i < keys.count; ++i) {
      if (DK_IS_UNICODE((PyDictKeysObject*)keys.items[i]) == names) rehash_keys(keys.items[i]);
    }
  }
  for (size_t i = 0; i < sets.count; ++i) rehash_set(sets.items[i]);
}
