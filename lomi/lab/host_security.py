"""Dask as a cluster of ours has it: mutual TLS 1.3 on every connection, and no port without it."""

import logging
import ssl

import dask
from distributed import Scheduler, Worker
from distributed.http.routing import RoutingApplication
from distributed.security import Security
from tornado.httpserver import HTTPServer

from lomi.lab.host_place import ClusterPlace

LOST_S = 10.0
"""How long a host may be silent before its shards run elsewhere; a dead process is noticed at once."""


def security(place: ClusterPlace) -> Security:
    """Mutual TLS with the member's certificate, for whatever part it takes."""
    certificate, key = str(place.certificate), str(place.key)
    made: Security = Security(  # type: ignore[no-untyped-call]
        require_encryption=True,
        tls_min_version=ssl.TLSVersion.TLSv1_3,
        tls_ca_file=str(place.authority),
        tls_client_cert=certificate,
        tls_client_key=key,
        tls_scheduler_cert=certificate,
        tls_scheduler_key=key,
        tls_worker_cert=certificate,
        tls_worker_key=key,
    )
    return made


def configure() -> None:
    """Settings of this process: nothing is run twice by Dask itself, and silence is noticed."""
    logging.getLogger("distributed").setLevel(logging.ERROR)
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.worker-ttl": f"{LOST_S:g}s",
            "distributed.comm.timeouts.connect": "10s",
            "distributed.comm.timeouts.tcp": "15s",
            "distributed.comm.retry.count": 0,
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False,
            "distributed.worker.profile.enabled": False,
            "distributed.worker.lifetime.restart": False,
        }
    )


def _silent() -> tuple[RoutingApplication, HTTPServer]:
    """What stands where Dask keeps its HTTP server, which has no TLS: one that is never told to listen."""
    routes = RoutingApplication([])  # type: ignore[no-untyped-call]
    return routes, HTTPServer(routes)


class TlsScheduler(Scheduler):
    """A scheduler whose only port is Dask's own, with TLS."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start none."""
        self.http_application, self.http_server = _silent()


class TlsWorker(Worker):
    """A worker whose only port is Dask's own, with TLS."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start none."""
        self.http_application, self.http_server = _silent()
