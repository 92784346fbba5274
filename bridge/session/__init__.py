"""One host session: its queue of prompts, its turns and what becomes of an agent's updates."""
