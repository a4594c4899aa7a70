"""Opens a model whatever it is, by its path or by the backend's name."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from constrain.backends.options import BackendOptions
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.backends.base import Backend

BACKENDS = ("auto", "demo", "transformers", "llama-cpp")


def choose_backend(path: str | PathLike[str] | None, name: str = "auto") -> str:
    """The backend for a path: that of the name, or for "auto" by what is there.

    Without a path it is the demonstration model; a GGUF file, or a folder with one and without a ``config.json``, is
    for llama-cpp; any other folder is for transformers.

    Raises
    ------
    ConstrainError
        There is no such path or backend, or a backend is named that does not go with the path.
    """
    if name not in BACKENDS:
        raise ConstrainError(f"there is no backend {name!r}; there are {', '.join(BACKENDS)}")
    if path is None:
        if name in ("transformers", "llama-cpp"):
            raise ConstrainError(f"the {name} backend needs the path of a model")
        return "demo"
    if name == "demo":
        raise ConstrainError("the demo backend has its own model, and takes no path")
    if name != "auto":
        return name
    try:
        place = Path(fspath(path))
    except TypeError:
        raise ConstrainError(f"the path of a model must be a str or a path, not {type(path).__name__}") from None
    try:
        if not place.exists():
            raise ConstrainError(
                f"{place}: no such file or folder; a model of the Hugging Face Hub has to be downloaded to one first"
            )
        if place.is_file():
            return "llama-cpp"
        return "llama-cpp" if not (place / "config.json").is_file() and any(place.glob("*.gguf")) else "transformers"
    except OSError as error:
        raise ConstrainError(f"{place}: {error.strerror}") from error


def load_backend(
    path: str | PathLike[str] | None = None, name: str = "auto", options: BackendOptions | None = None
) -> Backend:
    """Open a model.

    Parameters
    ----------
    path : path, optional
        A folder of ``transformers``, or a GGUF file (or a folder with one); the demonstration model by default.
    name : str
        "auto", "demo", "transformers" or "llama-cpp".
    options : BackendOptions, optional

    Raises
    ------
    ConstrainError
        With the path: what is there cannot be read, what it needs is not installed, or the backend has not what an
        option asks for.
    """
    if options is not None and not isinstance(options, BackendOptions):
        raise ConstrainError(f"options must be a BackendOptions, not {type(options).__name__}")
    chosen = choose_backend(path, name)
    if chosen == "demo":
        from constrain.backends.demo import DemoBackend

        return DemoBackend(options)
    assert path is not None
    if chosen == "transformers":
        from constrain.backends.transformers import TransformersBackend

        return TransformersBackend.load(path, options)
    from constrain.backends.llama_cpp import LlamaCppBackend

    return LlamaCppBackend(_gguf_file(Path(fspath(path))), options)


def _gguf_file(place: Path) -> Path:
    if not place.is_dir():
        return place
    files = sorted(place.glob("*.gguf"))
    if len(files) != 1:
        found = "no .gguf file" if not files else f"several .gguf files ({', '.join(file.name for file in files)})"
        raise ConstrainError(f"{place}: {found} in this folder; give the path of one")
    return files[0]
