"""
Keep pandas and polars frames
=============================

Private transformers keep column names and give pandas or polars frames when asked to.
"""

# %%
# Bounds are declared for every column, from general knowledge about wine and not from these rows.

import matplotlib.pyplot as plt
import pandas as pd
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine

from skldp import BitRandTransformer, privacy_guarantee

wine = load_wine(as_frame=True).data[["alcohol", "hue", "magnesium"]]
low, high = [10, 0, 50], [16, 2, 200]
release = BitRandTransformer(epsilon=30, bounds=(low, high), calibration="exact", debias=True)

# %%
# pandas.

released = release.set_output(transform="pandas").fit_transform(wine)
assert isinstance(released, pd.DataFrame)
print(released.round(2).head(3))

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True, sharey=True)
for axis, frame, title in zip(axes, (wine, released), ("as they are", "as released, epsilon 30 a bottle"), strict=True):
    axis.scatter(frame["alcohol"], frame["hue"], s=14, alpha=0.6)
    axis.set(title=title, xlabel="alcohol", ylabel="hue")
plt.show()

# %%
# polars.

released = release.set_output(transform="polars").fit_transform(pl.DataFrame(wine.to_dict("list")))
assert isinstance(released, pl.DataFrame)
print(released.head(3))

# %%
# Columns can have different budgets. A column that passes a ColumnTransformer unchanged is not protected, and the
# guarantee is infinite.

columns = make_column_transformer(
    (BitRandTransformer(epsilon=8, bounds=(10, 16), calibration="exact", debias=True), ["alcohol"]),
    (BitRandTransformer(epsilon=12, bounds=(0, 2), calibration="exact", debias=True), ["hue"]),
    verbose_feature_names_out=False,
).set_output(transform="pandas")
print(columns.fit_transform(wine).round(2).head(3))
print(privacy_guarantee(columns))
