"""What requests took, stage by stage and edge by edge: counted for Prometheus, written down when asked for."""
