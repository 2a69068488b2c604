"""Targets: what is to be put to the test, and the adapters that run it."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    target="PROVIDERS Target TargetError UnknownTarget parse_target table_names",
    third_party="ThirdPartyError source_of third_parties",
)
