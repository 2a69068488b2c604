"""A node, the scan that all recurrent operators share, and what outputs must be."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    agreement="Agreement compare",
    configuration="Configuration",
    computation="Computation computation_of dequantized evaluate",
    expectation="Expectation Expecting expect expect_behind valid_elements",
    gates="Steps steps_of",
    rnn="run states_of outputs_of",
    special="departures",
)
