"""Says plainly why a module of the standard library, or a thread, is not there: WASI has no way to carry what it wraps."""

import _thread
import sys

_WHY = {
    **dict.fromkeys(("_ssl", "socket", "ssl", "socketserver", "selectors", "asyncio"),
                    "a module of the wasm tier has no network"),
    **dict.fromkeys(("_posixsubprocess", "subprocess", "pty", "multiprocessing", "_multiprocessing"),
                    "a module of the wasm tier can't start programs"),
    **dict.fromkeys(("_ctypes", "ctypes"), "the wasm tier loads no native code"),
    **dict.fromkeys(("_curses", "curses", "readline", "termios", "tty", "fcntl", "resource", "pwd", "grp", "spwd", "mmap", "syslog",
                     "nis", "ossaudiodev"),
                    "WASI has nothing of the kind"),
    **dict.fromkeys(("_bz2", "bz2", "_lzma", "lzma", "lib2to3", "distutils", "test", "pydoc_data"),
                    "this interpreter is built without it"),
    **dict.fromkeys(("venv", "ensurepip"), "the wasm tier installs nothing"),
    **dict.fromkeys(("tkinter", "_tkinter", "idlelib", "turtle", "turtledemo"), "a module of the wasm tier has no display"),
}


class _Refusals:
    """Last on sys.meta_path: what nothing else has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        why = _WHY.get(name)
        if why is not None:
            raise ModuleNotFoundError(f"No module named {name!r}: {why}; use --isolation container", name=name)
        return None


def _start_new_thread(*_):
    raise RuntimeError("can't start new thread: the wasm tier has no threads, for WASI has none; use --isolation container")


sys.meta_path.append(_Refusals)
_thread.start_new_thread = _thread.start_new = _start_new_thread
