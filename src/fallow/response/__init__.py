"""What the data says has changed: actuator response, its changes, and the decision."""

from fallow.response.actuator import VARIANTS, Response, joint_response, response_of
from fallow.response.decision import Decision, Gate, decide
from fallow.response.examples import Example, example
from fallow.response.segments import Segment, segments_of

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
