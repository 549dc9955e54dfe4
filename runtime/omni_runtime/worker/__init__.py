"""The stage worker: one process per replica, a gRPC server around one engine."""
