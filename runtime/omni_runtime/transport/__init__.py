"""How the processes of a model reach each other, in the clear or with mutual TLS; workers, frontends and connectors."""
