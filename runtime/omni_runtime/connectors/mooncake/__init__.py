"""The two connectors over Mooncake: its transfer engine and its store."""
