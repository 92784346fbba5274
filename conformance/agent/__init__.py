"""The suite for authors of agents: a strict ACP client plays against theirs."""
