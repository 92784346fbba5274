"""Pipes, processes and HTTP on anyio: the only place that touches file descriptors and sockets."""
