"""Faults of the choice of activations: which gate's, which direction's, with which coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...numbers.activations import ACTIVATIONS, Activation, Coefficient
from ...recurrent.computation import Computation
from ...recurrent.rnn import CELLS
from ..alterations import configured, revalued, with_functions
from ..fault import ALL_BUT_BFLOAT16, VARIANTS, WIDE, Compute, Outputs, Wrong, family, fault

__all__: list[str] = []

SEVERAL = tuple(op for op, cell in CELLS.items() if len(cell.activations) > 1)
ONE = tuple(op for op in CELLS if op not in SEVERAL)


def _usual(c: Computation) -> tuple[Activation, ...]:
    return tuple(Activation(ACTIVATIONS[name]) for name in c.configuration.cell.activations)


def _by_default(compute: Compute, c: Computation) -> bool:
    """Tell whether the functions are the defaults because none are written down."""
    return "activations" not in compute.attributes and c.configuration.activations[0] == _usual(c)


@fault("activations.ignored", clause="activations")
def activations_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores the attribute activations and computes with the defaults."""
    return compute(configured(c, activations=(_usual(c),) * len(c.configuration.directions)))


@fault("activations.backward-as-forward", clause="activations.order")
def backward_as_forward(compute: Compute, c: Computation) -> Outputs:
    """Runs the backward direction with the forward direction's activations."""
    functions = c.configuration.activations
    return compute(configured(c, activations=(functions[0],) * len(functions)))


@fault("activations.backward-default", clause="activations.order")
def backward_by_default(compute: Compute, c: Computation) -> Outputs:
    """Takes the attribute activations for the forward direction only; the backward one runs with the defaults."""
    first, *rest = c.configuration.activations
    return compute(configured(c, activations=(first, *(_usual(c) for _ in rest))))


@fault("activations.reversed", clause="activations.order", operators=SEVERAL)
def activations_reversed(compute: Compute, c: Computation) -> Outputs:
    """Reads the functions of each direction in the opposite order."""
    return compute(configured(c, activations=tuple(fs[::-1] for fs in c.configuration.activations)))


@fault("activations.interleaved", clause="activations.order", operators=SEVERAL)
def activations_interleaved(compute: Compute, c: Computation) -> Outputs:
    """Reads activations as each function of both directions side by side, instead of one direction after the other."""
    functions = c.configuration.activations
    flat = [f for fs in functions for f in fs]
    D = len(functions)
    return compute(configured(c, activations=tuple(tuple(flat[d::D]) for d in range(D))))


@fault("activations.first-for-all", clause="activations.order", operators=SEVERAL)
def first_for_all(compute: Compute, c: Computation) -> Outputs:
    """Applies each direction's first function everywhere."""
    return compute(configured(c, activations=tuple((fs[0],) * len(fs) for fs in c.configuration.activations)))


@fault("activations.default-backward-missing", clause="activations.default")
def default_backward_missing(compute: Compute, c: Computation) -> Outputs:
    """Without activations fills in the defaults of one direction only; the backward one has no functions."""

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, lambda x, alpha, beta: x) if d else function

    return compute(with_functions(c, change) if _by_default(compute, c) else c)


@fault("activations.default-hard", clause="activations.default", operators=SEVERAL, types=ALL_BUT_BFLOAT16)
def default_hard(compute: Compute, c: Computation) -> Outputs:
    """Without activations takes HardSigmoid instead of Sigmoid."""
    hard = Activation(ACTIVATIONS["HardSigmoid"], Coefficient.of(0.2), Coefficient.of(0.5))

    def change(function: Activation, position: int, d: int) -> Activation:
        return hard if function.name == "Sigmoid" else function

    return compute(with_functions(c, change) if _by_default(compute, c) else c)


@fault("activations.default-relu", clause="activations.default", operators=ONE)
def default_relu(compute: Compute, c: Computation) -> Outputs:
    """Without activations takes Relu instead of Tanh."""

    def change(function: Activation, position: int, d: int) -> Activation:
        return Activation(ACTIVATIONS["Relu"])

    return compute(with_functions(c, change) if _by_default(compute, c) else c)


@fault("activations.other-case-identity", clause="activations.letter-case")
def other_case_is_identity(compute: Compute, c: Computation) -> Outputs:
    """Takes a name in another letter case for no function at all and silently applies none."""
    names = [n.decode() if isinstance(n, bytes) else n for n in compute.attributes.get("activations", ())]
    each = len(c.configuration.cell.activations)

    def change(function: Activation, position: int, d: int) -> Activation:
        strange = names and names[d * each + position] not in ACTIVATIONS
        return revalued(function, lambda x, alpha, beta: x) if strange else function

    return compute(with_functions(c, change))


def _with_alphas(c: Computation, handed: Callable[[list[Coefficient]], list[Coefficient]]) -> Computation:
    """The computation with the alphas in use handed out anew, in the order of the functions that use one."""
    used = [f.alpha for fs in c.configuration.activations for f in fs if f.kind.uses_alpha]
    alphas = iter(handed(used))
    return with_functions(c, lambda f, position, d: replace(f, alpha=next(alphas)) if f.kind.uses_alpha else f)


@fault("alpha.ignored", clause="activation-alpha")
def alpha_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores activation_alpha: every function that has a default takes it."""

    def change(function: Activation, position: int, d: int) -> Activation:
        usual = function.kind.default_alpha
        return function if usual is None else replace(function, alpha=Coefficient.of(usual))

    return compute(with_functions(c, change))


@fault("alpha.one-without-default", clause="activation-alpha")
def alpha_one_without_default(compute: Compute, c: Computation) -> Outputs:
    """Ignores activation_alpha: functions take their default, and 1 where they have none."""

    def change(function: Activation, position: int, d: int) -> Activation:
        usual = function.kind.default_alpha
        return replace(function, alpha=Coefficient.of(1.0 if usual is None else usual))

    return compute(with_functions(c, lambda f, p, d: change(f, p, d) if f.kind.uses_alpha else f))


@fault("alpha.zero-as-default", clause="activation-alpha", operators=SEVERAL)
def zero_alpha_as_default(compute: Compute, c: Computation) -> Outputs:
    """Takes an alpha of 0 for one that is not given."""

    def change(function: Activation, position: int, d: int) -> Activation:
        usual = function.kind.default_alpha
        taken = function.kind.uses_alpha and usual is not None and float(function.alpha.value) == 0
        return replace(function, alpha=Coefficient.of(usual)) if taken and usual is not None else function

    return compute(with_functions(c, change))


@fault("alpha.not-consumed", clause="activation-alpha")
def alpha_not_consumed(compute: Compute, c: Computation) -> Outputs:
    """Gives every function that uses an alpha the first entry of activation_alpha."""
    return compute(_with_alphas(c, lambda used: used[:1] * len(used)))


@fault("alpha.reversed", clause="activation-alpha")
def alpha_reversed(compute: Compute, c: Computation) -> Outputs:
    """Hands activation_alpha out from its end."""
    return compute(_with_alphas(c, lambda used: used[::-1]))


@fault("alpha.restarted", clause="activation-alpha")
def alpha_restarted(compute: Compute, c: Computation) -> Outputs:
    """Starts activation_alpha again from its first entry for the backward direction."""
    first = sum(f.kind.uses_alpha for f in c.configuration.activations[0])
    return compute(_with_alphas(c, lambda used: (used[:first] + (used[:first] or used) * len(used))[: len(used)]))


@family("alpha.backward-from-{}", 1, 2, 3, 4, 5, proved=False, clause="activation-alpha")
def alpha_backward_from(entry: int) -> Wrong:
    """Hands activation_alpha out to the backward direction from behind its entry number {0} on."""

    def handed(compute: Compute, c: Computation) -> Outputs:
        given = [Coefficient(float(alpha)) for alpha in compute.attributes.get("activation_alpha", ())]
        forward = sum(f.kind.uses_alpha for f in c.configuration.activations[0])
        taken = given[entry:]
        return compute(_with_alphas(c, lambda used: [*used[:forward], *taken, *used[forward + len(taken) :]]))

    return handed


@fault("beta.ignored", clause="activation-beta")
def beta_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores activation_beta: functions take 0.5 where that is their default, and 0 elsewhere."""

    def change(function: Activation, position: int, d: int) -> Activation:
        return replace(function, beta=Coefficient.of(function.kind.default_beta or 0.0))

    return compute(with_functions(c, lambda f, p, d: change(f, p, d) if f.kind.uses_beta else f))


# Attributes are read before anybody knows of types: core has no cases for it in all of them.
@fault("beta.zero-beside-alpha", clause="activation-beta", types=WIDE)
def beta_zero_beside_alpha(compute: Compute, c: Computation) -> Outputs:
    """Takes 0 for every beta where activation_alpha is given and activation_beta is not."""
    given = compute.attributes
    if "activation_alpha" not in given or "activation_beta" in given:
        return compute(c)
    return compute(with_functions(c, lambda f, p, d: replace(f, beta=Coefficient.of(0.0)) if f.kind.uses_beta else f))


# Of two functions RNN has no third place for what tells it from the interpretation by-position.
@fault("beta.with-alpha", clause="activation-beta", operators=SEVERAL, types=ALL_BUT_BFLOAT16)
def beta_with_alpha(compute: Compute, c: Computation) -> Outputs:
    """Takes an entry of activation_beta for every function that uses an alpha, whether it uses a beta or not."""
    betas = [f.beta for fs in c.configuration.activations for f in fs if f.kind.uses_beta]
    taken = 0

    def change(function: Activation, position: int, d: int) -> Activation:
        nonlocal taken
        if not function.kind.uses_alpha:
            return function
        taken += 1
        if not function.kind.uses_beta:
            return function
        left = betas[taken - 1] if taken <= len(betas) else Coefficient.of(function.kind.default_beta or 0.0)
        return replace(function, beta=left)

    return compute(with_functions(c, change))


@fault("coefficients.swapped", clause="activation-alpha")
def coefficients_swapped(compute: Compute, c: Computation) -> Outputs:
    """Takes activation_alpha for activation_beta, and the other way round."""

    def change(function: Activation, position: int, d: int) -> Activation:
        both = function.kind.uses_alpha and function.kind.uses_beta
        return replace(function, alpha=function.beta, beta=function.alpha) if both else function

    return compute(with_functions(c, change))


@fault("coefficients.by-name", clause="activation-alpha", table=VARIANTS)
def coefficients_by_name(compute: Compute, c: Computation) -> Outputs:
    """Gives all functions of one name the coefficients of the first of them."""
    first: dict[str, Activation] = {}
    return compute(with_functions(c, lambda f, position, d: first.setdefault(f.name, f)))


def _with_default(c: Computation, name: str | None, alpha: float, beta: float | None = None) -> Computation:
    """The computation with other default coefficients, of one function or of all. One that is given and equals the
    default counts as the default."""

    def change(function: Activation, position: int, d: int) -> Activation:
        kind = function.kind
        if name not in (None, kind.name):
            return function
        if kind.default_alpha is not None and function.alpha.value == Coefficient.of(kind.default_alpha).value:
            function = replace(function, alpha=Coefficient.of(alpha))
        usual = None if beta is None or kind.default_beta is None else Coefficient.of(kind.default_beta).value
        if beta is not None and function.beta.value == usual:
            function = replace(function, beta=Coefficient.of(beta))
        return function

    return with_functions(c, change)


@fault("coefficients.default-zero", clause="coefficients.default")
def default_zero(compute: Compute, c: Computation) -> Outputs:
    """Takes 0 for every coefficient that is not given."""
    return compute(_with_default(c, None, 0.0, 0.0))


@fault("coefficients.default-thresholded-relu", clause="coefficients.default")
def default_thresholded_relu(compute: Compute, c: Computation) -> Outputs:
    """Takes 0 for ThresholdedRelu's alpha where none is given."""
    return compute(_with_default(c, "ThresholdedRelu", 0.0))


@fault("coefficients.default-leaky-relu", clause="coefficients.default")
def default_leaky_relu(compute: Compute, c: Computation) -> Outputs:
    """Takes 0.1 for LeakyRelu's alpha where none is given."""
    return compute(_with_default(c, "LeakyRelu", 0.1))


@fault("coefficients.default-hard-sigmoid", clause="coefficients.default", types=ALL_BUT_BFLOAT16)
def default_hard_sigmoid(compute: Compute, c: Computation) -> Outputs:
    """Takes 1/6 for HardSigmoid's alpha where none is given, as PyTorch has it."""
    return compute(_with_default(c, "HardSigmoid", 1 / 6))


@fault("coefficients.default-others", clause="coefficients.no-default")
def default_others(compute: Compute, c: Computation) -> Outputs:
    """Takes HardSigmoid's coefficients, 0.2 and 0.5, for Affine and ScaledTanh where none are given."""

    def change(function: Activation, position: int, d: int) -> Activation:
        if function.name not in ("Affine", "ScaledTanh") or "activation_alpha" in compute.attributes:
            return function
        return replace(function, alpha=Coefficient.of(0.2), beta=Coefficient.of(0.5))

    return compute(with_functions(c, change))
