"""Prometheus metrics: how modules that have some switch them on and off.

Functions do not test whether metrics are on.  Switching them on replaces functions of modules and methods of classes by
measuring ones, and switching them off puts the originals back.  So metrics cost nothing while they are off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from constrain.errors import ConstrainError
from constrain.extras import how_to_install
from constrain.forking import renew_in_child

SECONDS = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Buckets of histograms of times."""


class Instruments:
    """Some metrics in a registry, and the functions that are replaced for them.

    Parameters
    ----------
    library
        The module ``prometheus_client``.
    registry : prometheus_client.CollectorRegistry
    """

    def __init__(self, library: Any, registry: Any) -> None:
        self.registry = registry
        self._library = library
        self._collectors: list[Any] = []
        self._originals: list[tuple[Any, str, Any]] = []

    def histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Any:
        """A new histogram."""
        return self._new(self._library.Histogram, name, text, labels, buckets=buckets)

    def counter(self, name: str, text: str, *labels: str) -> Any:
        """A new counter."""
        return self._new(self._library.Counter, name, text, labels)

    def gauge(self, name: str, text: str, *labels: str, of_processes: str = "livesum") -> Any:
        """A new gauge; those of several processes are added up, or taken together in another of the library's ways."""
        return self._new(self._library.Gauge, name, text, labels, multiprocess_mode=of_processes)

    def _new(self, kind: Any, name: str, text: str, labels: tuple[str, ...], **options: Any) -> Any:
        metric = kind(name, text, labels, registry=self.registry, **options)
        self._collectors.append(metric)
        return metric

    def is_replaced(self, owner: Any, name: str) -> bool:
        """Whether a function of a module, or a method that a class itself defines, has been replaced."""
        return any(owner is done and name == function for done, function, _ in self._originals)

    def replace(self, owner: Any, name: str, function: Any) -> None:
        """Put a function in the place of one of a module or class, until :meth:`remove`."""
        self._originals.append((owner, name, vars(owner)[name]))
        setattr(owner, name, function)

    def install(self) -> None:
        """Replace what is to be measured."""
        raise NotImplementedError

    def remove(self) -> None:
        """Put the originals back, and take the metrics out of their registry."""
        for owner, name, function in self._originals:
            setattr(owner, name, function)
        for collector in self._collectors:
            self.registry.unregister(collector)


Some = TypeVar("Some", bound=Instruments)


class Switch(Generic[Some]):
    """Switches the instruments of a module on and off.

    Parameters
    ----------
    make : callable
        Makes them of the module ``prometheus_client``, a registry and options.

    Attributes
    ----------
    on : Instruments or None
        Those that are on.
    """

    def __init__(self, make: Callable[..., Some]) -> None:
        self.on: Some | None = None
        self._make = make
        self._lock = threading.Lock()
        renew_in_child(self)

    def _renew_after_fork(self) -> None:
        self._lock = threading.Lock()

    def enable(self, registry: Any = None, **options: Any) -> None:
        """Measure from now on; does nothing if it is on already.

        Raises
        ------
        ConstrainError
            If ``prometheus_client`` is not installed, or metrics go to another registry already.
        """
        try:
            import prometheus_client
        except ImportError:
            raise ConstrainError(f"metrics need prometheus-client: {how_to_install('metrics')}") from None
        if registry is None:
            registry = prometheus_client.REGISTRY
        with self._lock:
            if self.on is not None:
                if self.on.registry is not registry:
                    raise ConstrainError("metrics go to another registry already: disable() them first")
                return
            instruments = self._make(prometheus_client, registry, **options)
            instruments.install()
            self.on = instruments

    def disable(self) -> None:
        """Stop measuring, and take the metrics out of their registry."""
        with self._lock:
            if self.on is not None:
                self.on.remove()
                self.on = None
