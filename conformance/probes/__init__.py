"""Probes: things that can be run and judged, and how they are chosen and sent."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    directory="probe_directories",
    drawn="drawn_probes fresh_profile fresh_profile_name some_seed",
    naming="CaseError UnknownName expanded portable_probes",
    probe="Probe SpecProbe job_of worded",
    selection="Selection narrow operator_types probes_of_profile select select_probes",
    shard="Shard ShardError parse_shard",
    stream="Tried tried",
    wrapped="WrapProbe split_wrap wrap_lane wrapped_probes",
)
