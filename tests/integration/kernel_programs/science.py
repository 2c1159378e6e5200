import hashlib, io, sys
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt, numpy as np, pandas as pd
random = np.random.default_rng(7); a = random.normal(size=(200, 200)); print(round(float(np.linalg.norm(a @ a.T - (a @ a.T).T)), 6), np.linalg.eigvalsh(np.diag(np.arange(5.0))), np.fft.fft(np.ones(8)).real.tolist())
np.save("/tmp/a.npy", a); print(np.array_equal(np.load("/tmp/a.npy", mmap_mode="r"), a))
frame = pd.DataFrame({"kind": ["x", "y"] * 500, "value": np.arange(1000)}); frame.to_csv("/tmp/f.csv", index=False); print(pd.read_csv("/tmp/f.csv").groupby("kind").value.agg(["mean", "max"]).to_string())
figure, axes = plt.subplots(); axes.plot(frame.value, np.sin(frame.value / 50)); axes.set_title("a chart"); figure.savefig("/tmp/c.png", metadata={"Software": None})
png = open("/tmp/c.png", "rb").read(); print(png[:8], hashlib.sha256(png).hexdigest(), plt.imread("/tmp/c.png").shape)
