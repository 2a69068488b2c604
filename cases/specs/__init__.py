"""A case as a small value, the space it is taken from, and the model and inputs that it stands for."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    case="Trial",
    data="inputs_of",
    features="ILLEGAL_TOPICS all_features illegal_feature node_features",
    graphs="FIRST GRAPHS SECOND can_join join",
    illegal="all_violations break_case illegal_cases violation_of violations_of",
    simpler="simpler_cases",
    space="axes_of settle space_of spec_from",
    subject="Bound Move Source Subject",
    tensor="array_of",
    wrapping="EXACT WRAPS can_wrap wrap",
)
