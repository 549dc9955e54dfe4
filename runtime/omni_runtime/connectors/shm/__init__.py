"""`shm`: one arena of shared memory per producer; payloads are copied in once and read in place."""
