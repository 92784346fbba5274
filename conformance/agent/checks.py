"""The list that the modules beside this one add their checks to; `suite` puts them in order."""

from conformance.agent.lab import Lab
from conformance.check import Suite

SUITE: Suite[Lab] = Suite("agent")
