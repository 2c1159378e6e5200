// The interpreter of .py scripts. Run first, it initialises itself and writes its memory to standard output; of the
// two, belljar-snapshot makes the module that users get, which begins where this one was, and runs a script.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wasi/api.h>
#include <wasi/libc-environ.h>
#include <wasi/libc.h>

#include "wasm/guests/python/rehash.h"

#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_initconfig.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>

// The library's folder is the first that is handed over, whatever it is called.
static const char kLibraryFolder[] = "/.belljar/lib";
enum { LIBRARY_FD = 3 };

static PyObject* wake;  // wake.py's

static int fail(const char* why) {
  if (PyErr_Occurred()) PyErr_Print();
  fprintf(stderr, "python3: %s\n", why);
  return 1;
}

static int write_memory(void) {
  const size_t size = __builtin_wasm_memory_size(0) * (size_t)65536;
  for (size_t done = 0; done < size;) {
    const __wasi_ciovec_t rest = {(const uint8_t*)done, size - done};
    __wasi_size_t count = 0;
    if (__wasi_fd_write(STDOUT_FILENO, &rest, 1, &count) != 0) return fail("the snapshot can't be written");
    done += count;
  }
  return 0;
}

static int make_snapshot(void) {
  __wasilibc_register_preopened_fd(LIBRARY_FD, kLibraryFolder);
  watch_for_hashes();
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.parse_argv = 0;
  const PyStatus status = Py_InitializeFromConfig(&config);
  if (PyStatus_Exception(status)) Py_ExitStatusException(status);
  PyConfig_Clear(&config);
  PyObject* module = PyImport_ImportModule("_belljar_wake");
  wake = module ? PyObject_GetAttrString(module, "wake") : NULL;
  if (!wake || PyMapping_DelItemString(PyImport_GetModuleDict(), "_belljar_wake") != 0) return fail("no wake.py");
  end_watch();
  return write_memory();
}

// As bootstrap_hash.c makes it of a number.
static void seed_from_number(unsigned char* out, size_t size, unsigned int number) {
  for (size_t i = 0; i < size; ++i) {
    number = number * 214013 + 2531011;
    out[i] = (number >> 16) & 0xff;
  }
}

static int new_hash_seed(void) {
  unsigned char* const secret = (unsigned char*)&_Py_HashSecret;
  const char* given = getenv("PYTHONHASHSEED");
  if (!given || *given == '\0' || strcmp(given, "random") == 0) {
    return __wasi_random_get(secret, sizeof _Py_HashSecret) == 0 ? 0 : fail("no random bytes");
  }
  char* end;
  const unsigned long long number = strtoull(given, &end, 10);
  if (*end != '\0' || *given < '0' || *given > '9' || number > 4294967295ull) {
    return fail("PYTHONHASHSEED must be \"random\" or an integer in range [0; 4294967295]");
  }
  memset(secret, 0, sizeof _Py_HashSecret);
  if (number) seed_from_number(secret, sizeof _Py_HashSecret, (unsigned int)number);
  return 0;
}

static PyObject* environment(void) {
  PyObject* all = PyDict_New();
  for (char** variable = __wasilibc_get_environ(); all && *variable; ++variable) {
    const char* const equals = strchr(*variable, '=');
    if (!equals) continue;
    PyObject* name = PyBytes_FromStringAndSize(*variable, equals - *variable);
    PyObject* value = PyBytes_FromString(equals + 1);
    if (!name || !value || PyDict_SetItem(all, name, value) != 0) Py_CLEAR(all);
    Py_XDECREF(name);
    Py_XDECREF(value);
  }
  return all;
}

// What Py_RunMain() goes by.
static int set_arguments(int count, char** texts) {
  PyConfig* config = (PyConfig*)_PyInterpreterState_GetConfig(_PyInterpreterState_GET());
  _PyWideStringList_Clear(&config->argv);
  _PyWideStringList_Clear(&config->orig_argv);
  PyStatus status = PyStatus_Ok();
  for (int i = 0; i < count && !PyStatus_Exception(status); ++i) {
    wchar_t* text = Py_DecodeLocale(texts[i], NULL);
    if (!text) return -1;
    status = PyWideStringList_Append(&config->orig_argv, text);
    if (i > 0 && !PyStatus_Exception(status)) status = PyWideStringList_Append(&config->argv, text);
    if (i == 1 && !PyStatus_Exception(status)) status = PyConfig_SetString(config, &config->run_filename, text);
    PyMem_RawFree(text);
  }
  PyObject* given = _PyWideStringList_AsList(&config->argv);
  PyObject* original = _PyWideStringList_AsList(&config->orig_argv);
  const int is_set =
      given && original && PySys_SetObject("argv", given) == 0 && PySys_SetObject("orig_argv", original) == 0;
  Py_XDECREF(given);
  Py_XDECREF(original);
  return is_set && !PyStatus_Exception(status) ? 0 : -1;
}

static int run_script(int count, char** texts) {
  __wasilibc_deinitialize_environ();
  __wasilibc_initialize_environ();
  if (new_hash_seed() != 0) return 1;
  rehash_all();
  if (set_arguments(count, texts) != 0) return fail("the arguments can't be taken");
  PyObject* variables = environment();
  PyObject* result = variables ? PyObject_CallOneArg(wake, variables) : NULL;
  if (!result) return fail("the interpreter can't be woken");
  Py_DECREF(result);
  Py_DECREF(variables);
  return Py_RunMain();
}

int main(int count, char** texts) {
  return wake ? run_script(count, texts) : make_snapshot();
}
