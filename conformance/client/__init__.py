"""The suite for authors of clients: an agent that their client starts plays strict scenarios."""
