"""The documents in tables: operator versions, errata, clauses, interpretations."""

# Documented in docs/operators.md.
from .interpretations import Question as Question
from .operators import Document as Document
from .operators import Needed as Needed
from .operators import NodeRules as NodeRules
from .tensors import ONE as ONE
from .tensors import Extent as Extent
from .tensors import TensorForm as TensorForm
