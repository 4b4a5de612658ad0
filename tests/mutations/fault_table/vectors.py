"""Faults of vectors."""

from mutations.fault_table._mutation import SPARSE, SPHERE, Mutation

__all__ = ["MUTATIONS"]

VECTORS = "mechanisms/test_sampled_vectors.py"

MUTATIONS = [
    Mutation(
        "mechanisms/_vector/utility_bounds.py",
        "tail = delta / (4 * max(1, n_lengths))",
        "tail = delta",
        "mechanisms/test_projection.py",
    ),
    Mutation("mechanisms/_vector/utility_bounds.py", "delta / (2 * n)", "0.999", "mechanisms/test_projection.py"),
    # Vectors.
    Mutation(
        "mechanisms/_vector/privunit.py",
        "inside = noise.bernoulli(self.cap_threshold, n)",
        "inside = noise.bernoulli(self.cap_threshold + self.cap_threshold // 1024, n)",
        VECTORS,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "np.where(inside, self.cap_probability, 1 - self.cap_probability)",
        "np.where(inside, self.cap_probability * (1 + 1e-3), 1 - self.cap_probability)",
        VECTORS,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "        released[...] = rows\n",
        "        released[...] = (rows / np.sqrt(np.einsum('ij,ij->i', rows, rows))[:, None]).astype(rows.dtype)\n",
        SPHERE,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "        along[zero], norms[zero] = 0.0, 1.0\n",
        "        norms[zero] = 1.0\n",
        SPHERE,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "        round_steps(rows, self.step)\n",
        "        rows *= self.step\n",
        "mechanisms/test_privunit.py",
    ),
    Mutation("mechanisms/_vector/sphere.py", "_FLOAT64_BELOW = 16\n", "_FLOAT64_BELOW = 0\n", f"{VECTORS} {SPHERE}"),
    Mutation("mechanisms/_vector/multivariate_laplace.py", "_SQUEEZE = 0.0331", "_SQUEEZE = 0.02", VECTORS),
    Mutation(
        "mechanisms/_vector/multivariate_laplace.py",
        "square[unsure] / 2 + b * (1 - cube",
        "square[unsure] / 2 + shape * (1 - cube",
        VECTORS,
    ),
    Mutation(
        "mechanisms/_vector/multivariate_laplace.py",
        "n) * (self.sensitivity / self.epsilon)",
        "n) * (1 / self.epsilon)",
        VECTORS,
    ),
    Mutation("mechanisms/_vector/multivariate_laplace.py", "noise.at(waiting, n)", "noise", "mechanisms/test_rows.py"),
    Mutation("mechanisms/_vector/privunit.py", "noise.at(again, len(rows))", "noise", "mechanisms/test_rows.py"),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "second_moment - across * self.radius**2 * np.eye",
        "second_moment - across * np.eye",
        "mechanisms/test_privunit.py",
    ),
    Mutation(
        "mechanisms/_vector/projected_release.py",
        "np.clip(projected, -most, most)",
        "projected",
        "mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/projected_release.py",
        "max(2, len(self.vocabulary))",
        "2",
        "mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/gaussian_width.py",
        "(m + 1) // 2",
        "max(1, m // 2)",
        "mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/gaussian_width.py",
        "math.log(n_vectors - 1) - math.log(2)",
        "-math.log(2)",
        "mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "np.logaddexp(*of_signs) - math.log(2)",
        "np.maximum(*of_signs)",
        "study/test_audit_tasks.py",
    ),
    Mutation("mechanisms/_vector/sparse_stretch.py", "left.any()", "left.max() > prime", SPARSE),
    Mutation("mechanisms/_vector/sparse_stretch.py", "(k - 1) * min(shared, n_bands)", "k * shared // 2", SPARSE),
    Mutation("mechanisms/_vector/sparse_stretch.py", "k * (1 + math.log(d / k))", "k * math.log(d / k)", SPARSE),
    Mutation("mechanisms/_vector/projected_release.py", "sparse_bound(2 * int(", "sparse_bound(int(", SPARSE),
    Mutation(
        "mechanisms/_vector/scaled_rows.py",
        "self.inner._draw(self._scaled(rows, workspace), noise, out, workspace)",
        "self.inner._draw(rows.astype(float), noise, out, workspace)",
        "estimators/test_embeddings.py",
    ),
    Mutation(
        "mechanisms/_vector/scaled_rows.py",
        "self.inner.domain.clip(scaled).rows",
        "scaled",
        "estimators/test_embeddings.py",
    ),
]
