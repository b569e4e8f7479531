"""Changes found in logs: actuator response, its changes, and the decision."""

from fallow.diagnosis.actuator import VARIANTS, Response, joint_response, response_of
from fallow.diagnosis.decision import Decision, Gate, decide
from fallow.diagnosis.examples import Example, example
from fallow.diagnosis.segments import Segment, segments_of

__all__ = [
    "VARIANTS",
    "Decision",
    "Example",
    "Gate",
    "Response",
    "Segment",
    "decide",
    "example",
    "joint_response",
    "response_of",
    "segments_of",
]
