"""Faults of the choice of activations: by gate, direction and coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...numbers.activations import ACTIVATIONS, Activation, Coefficient
from ...recurrent.computation import Computation
from ...recurrent.rnn import CELLS
from ..alterations import configured, revalued, with_functions
from ..fault import ALL_BUT_BFLOAT16, WIDE, Compute, Outputs, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

SEVERAL = tuple(op for op, cell in CELLS.items() if len(cell.activations) > 1)
ONE = tuple(op for op in CELLS if op not in SEVERAL)

Functions = tuple[Activation, ...]


def _usual(c: Computation) -> Functions:
    return tuple(Activation(ACTIVATIONS[name]) for name in c.configuration.cell.activations)


def _with_lists(c: Computation, change: Callable[[Functions, int], Functions]) -> Computation:
    """Return the computation with other functions of each direction, change(functions, d)."""
    return configured(c, activations=tuple(change(fs, d) for d, fs in enumerate(c.configuration.activations)))


def _by_default(compute: Compute, c: Computation, changed: Callable[[Activation, int], Activation]) -> Outputs:
    """Return the outputs with other functions, changed(function, d), if the node lists none and the defaults apply."""
    default = "activations" not in compute.attributes and c.configuration.activations[0] == _usual(c)
    return compute(with_functions(c, lambda f, position, d: changed(f, d)) if default else c)


def _identity(function: Activation) -> Activation:
    return revalued(function, lambda x, alpha, beta: x)


_HARD = Activation(ACTIVATIONS["HardSigmoid"], Coefficient.of(0.2), Coefficient.of(0.5))

fault("activations.ignored", "activations", "Ignores the attribute activations and computes with the defaults.",
    lambda c: _with_lists(c, lambda fs, d: _usual(c)))
fault("activations.backward-as-forward", "activations.order",
    "Runs the backward direction with the forward direction's activations.",
    lambda c: _with_lists(c, lambda fs, d: c.configuration.activations[0]))
fault("activations.backward-default", "activations.order",
    "Takes the attribute activations for the forward direction only; the backward one runs with the defaults.",
    lambda c: _with_lists(c, lambda fs, d: _usual(c) if d else fs))
fault("activations.reversed", "activations.order", "Reads the functions of each direction in the opposite order.",
    lambda c: _with_lists(c, lambda fs, d: fs[::-1]), operators=SEVERAL)
fault("activations.interleaved", "activations.order",
    "Reads activations as each function of both directions side by side, instead of one direction after the other.",
    lambda c: _with_lists(c, lambda fs, d: sum(c.configuration.activations, ())[d::len(c.configuration.directions)]),
    operators=SEVERAL)
fault("activations.first-for-all", "activations.order", "Applies each direction's first function everywhere.",
    lambda c: _with_lists(c, lambda fs, d: (fs[0],) * len(fs)), operators=SEVERAL)
fault_of_run("activations.default-backward-missing", "activations.default",
    "Without activations fills in the defaults of one direction only; the backward one has no functions.",
    lambda compute, c: _by_default(compute, c, lambda f, d: _identity(f) if d else f))
fault_of_run("activations.default-hard", "activations.default",
    "Without activations takes HardSigmoid instead of Sigmoid.",
    lambda compute, c: _by_default(compute, c, lambda f, d: _HARD if f.name == "Sigmoid" else f),
    operators=SEVERAL, types=ALL_BUT_BFLOAT16)
fault_of_run("activations.default-relu", "activations.default", "Without activations takes Relu instead of Tanh.",
    lambda compute, c: _by_default(compute, c, lambda f, d: Activation(ACTIVATIONS["Relu"])), operators=ONE)


@fault_of_run("activations.other-case-identity", "activations.letter-case",
    "Takes a name in another letter case for no function at all and silently applies none.")
def other_case_is_identity(compute: Compute, c: Computation) -> Outputs:
    names = [n.decode() if isinstance(n, bytes) else n for n in compute.attributes.get("activations", ())]
    each = len(c.configuration.cell.activations)

    def change(function: Activation, position: int, d: int) -> Activation:
        strange = names and names[d * each + position] not in ACTIVATIONS
        return _identity(function) if strange else function

    return compute(with_functions(c, change))


def _with_alpha(c: Computation, change: Callable[[Activation, float | None], float | None]) -> Computation:
    """Return the computation with other alphas, change(function, default), of the functions that use one.

    None leaves an alpha unchanged.
    """

    def changed(function: Activation, position: int, d: int) -> Activation:
        alpha = change(function, function.kind.default_alpha) if function.kind.uses_alpha else None
        return function if alpha is None else replace(function, alpha=Coefficient.of(alpha))

    return with_functions(c, changed)


def _with_beta(c: Computation, change: Callable[[Activation], float]) -> Computation:
    """Return the computation with other betas of the functions that use one."""
    return with_functions(c, lambda f, p, d: replace(f, beta=Coefficient.of(change(f))) if f.kind.uses_beta else f)


def _with_alphas(c: Computation, dealt: Callable[[list[Coefficient]], list[Coefficient]]) -> Computation:
    """Return the computation with the used alphas assigned in another way, in the order of the functions that use
    one."""
    used = [f.alpha for fs in c.configuration.activations for f in fs if f.kind.uses_alpha]
    alphas = iter(dealt(used))
    return with_functions(c, lambda f, position, d: replace(f, alpha=next(alphas)) if f.kind.uses_alpha else f)


def _forward_alphas(c: Computation) -> int:
    return sum(f.kind.uses_alpha for f in c.configuration.activations[0])


fault("alpha.ignored", "activation-alpha", "Ignores activation_alpha: every function that has a default takes it.",
    lambda c: _with_alpha(c, lambda f, usual: usual))
fault("alpha.one-without-default", "activation-alpha",
    "Ignores activation_alpha: functions take their default, and 1 where they have none.",
    lambda c: _with_alpha(c, lambda f, usual: 1.0 if usual is None else usual))
fault("alpha.zero-as-default", "activation-alpha", "Takes an alpha of 0 for one that is not given.",
    lambda c: _with_alpha(c, lambda f, usual: usual if float(f.alpha.value) == 0 else None), operators=SEVERAL)
fault("alpha.not-consumed", "activation-alpha",
    "Gives every function that uses an alpha the first entry of activation_alpha.",
    lambda c: _with_alphas(c, lambda used: used[:1] * len(used)))
fault("alpha.reversed", "activation-alpha", "Hands activation_alpha out from its end.",
    lambda c: _with_alphas(c, lambda used: used[::-1]))


@fault("alpha.restarted", "activation-alpha",
    "Starts activation_alpha again from its first entry for the backward direction.")
def alpha_restarted(c: Computation) -> Computation:
    first = _forward_alphas(c)
    return _with_alphas(c, lambda used: (used[:first] + (used[:first] or used) * len(used))[: len(used)])


@fault_of_run("alpha.backward-from-{}", "activation-alpha",
    "Hands activation_alpha out to the backward direction from behind its entry number {0} on.",
    proved=False, numbers=(1, 2, 3, 4, 5))
def alpha_backward_from(compute: Compute, c: Computation, entry: int) -> Outputs:
    taken = [Coefficient(float(alpha)) for alpha in compute.attributes.get("activation_alpha", ())][entry:]
    forward = _forward_alphas(c)
    return compute(_with_alphas(c, lambda used: [*used[:forward], *taken, *used[forward + len(taken) :]]))


fault("beta.ignored", "activation-beta",
    "Ignores activation_beta: functions take 0.5 where that is their default, and 0 elsewhere.",
    lambda c: _with_beta(c, lambda f: f.kind.default_beta or 0.0))


@fault_of_run("beta.restarted", "activation-beta",
    "Starts activation_beta again from its first entry for the backward direction.", proved=False)
def beta_restarted(compute: Compute, c: Computation) -> Outputs:
    betas = iter([Coefficient(float(beta)) for beta in compute.attributes.get("activation_beta", ())])

    def change(function: Activation, position: int, d: int) -> Activation:
        if d == 0 or not function.kind.uses_beta:
            return function
        return replace(function, beta=next(betas, function.beta))

    return compute(with_functions(c, change))


# These faults read attributes before types matter: core does not have their cases in all types.
fault_of_run("beta.zero-beside-alpha", "activation-beta",
    "Takes 0 for every beta where activation_alpha is given and activation_beta is not.",
    lambda compute, c: compute(
        _with_beta(c, lambda f: 0.0)
        if "activation_alpha" in compute.attributes and "activation_beta" not in compute.attributes else c
    ), types=WIDE)


# With two functions, RNN has no third position that distinguishes this from the interpretation by-position.
@fault("beta.with-alpha", "activation-beta",
    "Takes an entry of activation_beta for every function that uses an alpha, whether it uses a beta or not.",
    operators=SEVERAL, types=ALL_BUT_BFLOAT16)
def beta_with_alpha(c: Computation) -> Computation:
    betas = [f.beta for fs in c.configuration.activations for f in fs if f.kind.uses_beta]
    taken = 0

    def change(function: Activation, position: int, d: int) -> Activation:
        nonlocal taken
        taken += function.kind.uses_alpha
        if not (function.kind.uses_alpha and function.kind.uses_beta):
            return function
        beta = betas[taken - 1] if taken <= len(betas) else Coefficient.of(function.kind.default_beta or 0.0)
        return replace(function, beta=beta)

    return with_functions(c, change)


def _swapped(function: Activation) -> Activation:
    both = function.kind.uses_alpha and function.kind.uses_beta
    return replace(function, alpha=function.beta, beta=function.alpha) if both else function


fault("coefficients.swapped", "activation-alpha",
    "Takes activation_alpha for activation_beta, and the other way round.",
    lambda c: with_functions(c, lambda f, position, d: _swapped(f)))


@fault("coefficients.by-name", "activation-alpha",
    "Gives all functions of one name the coefficients of the first of them.", proved=False)
def coefficients_by_name(c: Computation) -> Computation:
    first: dict[str, Activation] = {}
    return with_functions(c, lambda f, position, d: first.setdefault(f.name, f))


def _with_default(c: Computation, name: str | None, alpha: float, beta: float | None = None) -> Computation:
    """Return the computation with other default coefficients, of one function or of all.

    A given coefficient that equals the default counts as the default.
    """

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


fault("coefficients.default-zero", "coefficients.default", "Takes 0 for every coefficient that is not given.",
    lambda c: _with_default(c, None, 0.0, 0.0))
fault("coefficients.default-thresholded-relu", "coefficients.default",
    "Takes 0 for ThresholdedRelu's alpha where none is given.",
    lambda c: _with_default(c, "ThresholdedRelu", 0.0))
fault("coefficients.default-leaky-relu", "coefficients.default", "Takes 0.1 for LeakyRelu's alpha where none is given.",
    lambda c: _with_default(c, "LeakyRelu", 0.1))
fault("coefficients.default-hard-sigmoid", "coefficients.default",
    "Takes 1/6 for HardSigmoid's alpha where none is given, as PyTorch has it.",
    lambda c: _with_default(c, "HardSigmoid", 1 / 6), types=ALL_BUT_BFLOAT16)


@fault_of_run("coefficients.default-others", "coefficients.no-default",
    "Takes HardSigmoid's coefficients, 0.2 and 0.5, for Affine and ScaledTanh where none are given.")
def default_others(compute: Compute, c: Computation) -> Outputs:
    def change(function: Activation, position: int, d: int) -> Activation:
        if function.name not in ("Affine", "ScaledTanh") or "activation_alpha" in compute.attributes:
            return function
        return replace(function, alpha=_HARD.alpha, beta=_HARD.beta)

    return compute(with_functions(c, change))
