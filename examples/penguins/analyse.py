"""How do three species of penguin differ, and does a bigger penguin have longer flippers?

Reads /data/penguins.csv, prints a table, draws /out/penguins.png.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import pandas as pd  # noqa: E402

penguins = pd.read_csv("/data/penguins.csv").dropna(subset=["flipper_length_mm", "body_mass_g"])

table = penguins.groupby("species").agg(
    penguins=("species", "size"),
    bill_mm=("bill_length_mm", "mean"),
    flipper_mm=("flipper_length_mm", "mean"),
    mass_g=("body_mass_g", "mean"),
)
print(table.round(1).to_string())

overall = penguins["flipper_length_mm"].corr(penguins["body_mass_g"])
print(f"\nflipper length and body mass: correlation {overall:.2f} over {len(penguins)} penguins")

figure, axes = plt.subplots(figsize=(7, 5), dpi=120)
for species, group in penguins.groupby("species"):
    axes.scatter(group["flipper_length_mm"], group["body_mass_g"], s=18, alpha=0.7, label=species)
axes.set_xlabel("flipper length, mm")
axes.set_ylabel("body mass, g")
axes.set_title("Palmer penguins")
axes.legend()
figure.tight_layout()
figure.savefig("/out/penguins.png")
print("wrote /out/penguins.png")
