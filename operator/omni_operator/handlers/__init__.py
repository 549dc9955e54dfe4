"""kopf's handlers. Each only wakes or asks the controller; nothing is decided here."""
