"""`omni control`: asks running workers to sleep, wake, record a profile, drain, or tell how they are."""
