"""The harness's side of the daemon: packets in, packets out, in any of the three generations."""
