"""The demo: the whole main job on loopback, for a stranger to watch. Every step is checked."""
