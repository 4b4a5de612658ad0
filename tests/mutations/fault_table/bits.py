"""Faults of bits."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

BITS = "mechanisms/test_sampled_bits.py"

MUTATIONS = [
    # Bits.
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "np.greater_equal(words, self.n_decided",
        "np.greater(words, self.n_decided",
        BITS,
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "below = np.searchsorted(self.boundaries, drawn[near])",
        'below = np.searchsorted(self.boundaries, drawn[near], "right")',
        BITS,
    ),
    Mutation("mechanisms/_bits/kernels.py", "if words[i] >= n_decided:", "if words[i] > n_decided:", BITS),
    Mutation(
        "mechanisms/_bits/kernels.py",
        "if boundaries[middle] < drawn[k]:",
        "if boundaries[middle] <= drawn[k]:",
        BITS,
    ),
    Mutation("mechanisms/_bits/mask_sampling.py", "tied = [k for k in tied if firsts[k] == prefix]", "tied = []", BITS),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "return below + len(tied)",
        "return below",
        f"{BITS} mechanisms/test_mask_sampling.py",
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "codes &= self.masks[1].draw(noise,",
        "codes &= self.masks[0].draw(noise,",
        BITS,
    ),
    Mutation(
        "mechanisms/_bits/flip_laws.py",
        "larger - smaller).astype(np.float64) / smaller",
        "larger - smaller).astype(np.float64) / larger",
        BITS,
    ),
    Mutation(
        "mechanisms/_bits/unbiased.py",
        "lower += noise.bernoulli(fraction.astype(np.uint64))",
        "lower += noise.bernoulli(fraction.astype(np.uint64) // np.uint64(2))",
        BITS,
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "of_one = of_left.at(np.array([k]), left.size)",
        "of_one = of_left.at(np.array([0]), left.size)",
        "mechanisms/test_mask_sampling.py",
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "of_left = noise.at(left, size)",
        "of_left = noise.at(left - left, size)",
        "mechanisms/test_rows.py",
    ),
    Mutation(
        "mechanisms/_bits/decoding.py",
        "return squares / float(decoder.signs[1]) ** 2 - variance",
        "return (squares - variance) / float(decoder.signs[1]) ** 2",
        "mechanisms/test_bit_flip.py",
    ),
]
